"""Why a job waits, in words: the resource it lacks, what said so, and the nearest fix."""

from __future__ import annotations

import pytest

from tests.support.analytics_frames import HOUR, MINUTE, NOON
from tests.support.queue_story import Story

FULL = tuple(f"n1/{index}" for index in range(8))
NONE = "none found: GPUs must come free"
NO_QUOTA = "none found: quota must come free"
NEVER = "none found: as it is, it can never start"
NO_GPUS = "not a matter of GPUs"
NOT_PASSED = "has quota; an admission check has not passed"
OWN = "queue team-a itself"
SAID = "WaitingForQuota: 4 more needed"
RAISED = "a limit raised"
ONE_NODE = "1 node of H100 has the GPUs"


def queued(*, used: float = 8.0, models: str = "H100", **facts: object) -> Story:
    """A job of four GPUs without quota in a queue of eight, whose node is free but for one GPU."""
    story = Story().node().hold("n1/0").job(gpu_count=4, gpu_models=models).steps(created=0)
    story.waits_for_quota(0, "WaitingForQuota", "4 more needed")
    return story.quota(used_gpu_count=used, **facts)


def admitted(gpus: int = 4, **job: object) -> Story:
    """A job that has quota and no place, on one node of eight of which one is held."""
    story = Story().node().hold("n1/0").job(gpu_count=gpus, **job)
    return story.steps(created=0, quota_reserved=0, admitted=0)


CASES: dict[str, tuple[Story, str, str, str]] = {
    "quota: some of it used": (
        queued(used=6),
        "quota",
        "quota of queue team-a for H100: 6 of 8 used, 2 more needed",
        "with 2 GPUs of H100 it has quota and room on one node",
    ),
    "quota: exactly enough would be left": (
        queued(used=4, guaranteed_gpu_count=4.0).quota("team-b", used_gpu_count=6.0),
        "quota",
        f"quota of cohort all for H100: 2 unused, 2 more needed ({OWN} would have room)",
        "with 2 GPUs of H100 it has quota and room on one node",
    ),
    "quota: the reading shows room": (
        queued(used=4),
        "quota",
        f"quota of queue team-a for H100, though 4 of 8 used were read last ({SAID})",
        NO_QUOTA,
    ),
    "quota: asks for more than it may ever hold": (
        queued(used=0, limit_gpu_count=3.5, guaranteed_gpu_count=3.5),
        "quota",
        "asks for 4 GPUs of H100; queue team-a may never hold more than 3.5",
        "with 3 GPUs of H100 it has quota and room on one node",
    ),
    "quota: more than it may ever hold, and nothing left": (
        queued(used=3.5, limit_gpu_count=3.5, guaranteed_gpu_count=3.5),
        "quota",
        "asks for 4 GPUs of H100; queue team-a may never hold more than 3.5",
        NEVER,
    ),
    "quota: of two models the one of which less is missing": (
        queued(used=8, models="A100|H100")
        .quota(model="A100", limit_gpu_count=5.0, used_gpu_count=2.0),
        "quota",
        "quota of queue team-a for A100: 2 of 5 used, 1 more needed",
        NO_QUOTA,
    ),
    "quota: exactly what it may ever hold": (
        queued(used=1, limit_gpu_count=4.0, guaranteed_gpu_count=4.0),
        "quota",
        "quota of queue team-a for H100: 1 of 4 used, 1 more needed",
        "with 3 GPUs of H100 it has quota and room on one node",
    ),
    "quota: another queue leaves its guarantee unused": (
        queued(used=8).quota("team-b", used_gpu_count=3.0),
        "quota",
        "quota of queue team-a for H100: 8 of 8 used, 4 more needed",
        f"queue team-b leaves 5 of its guaranteed 8 of H100 unused: {RAISED} by 4 would let it in",
    ),
    "quota: another queue leaves too little": (
        queued(used=8).quota("team-b", used_gpu_count=5.0),
        "quota",
        "quota of queue team-a for H100: 8 of 8 used, 4 more needed",
        NO_QUOTA,
    ),
    "quota: a workload of the queue rests": (
        queued(used=8).hold("n1/1", "n1/2", "n1/3", "n1/4", workload_uid="idler")
        .job("idler").rest("n1/1", "n1/2", "n1/3", "n1/4", since=300, until=600, uid="idler"),
        "quota",
        "quota of queue team-a for H100: 8 of 8 used, 4 more needed",
        "releasing idler, at rest for 5.0 h, gives back 4 GPUs of the queue's quota: enough",
    ),
    "quota: another model has quota and room": (
        queued(used=8).node("n2", model="L40S").quota(model="L40S"),
        "quota",
        "quota of queue team-a for H100: 8 of 8 used, 4 more needed",
        "on L40S, which it does not accept, it would fit now",
    ),
    "quota: of a local queue it is that of its cluster queue": (
        queued(used=8, queue="cq").quota(
            "team-a", cohort="cq", guaranteed_gpu_count=None, limit_gpu_count=None
        ),
        "quota",
        "quota of queue team-a for H100: 8 of 8 used, 4 more needed",
        NO_QUOTA,
    ),
    "quota: its size is not recorded": (
        Story().node().hold("n1/0").job(gpu_count=4).steps(created=0)
        .waits_for_quota(0, "WaitingForQuota"),
        "quota",
        "quota of queue team-a, whose size is not recorded (WaitingForQuota)",
        NO_QUOTA,
    ),
    "admission": (
        Story().node().hold("n1/0").job().steps(created=0, quota_reserved=5)
        .job("w2").steps("w2", created=0, quota_reserved=0, admitted=1, scheduled=1),
        "admission",
        "has quota; an admission check has not passed",
        NO_GPUS,
    ),
    "admission: with what the check says": (
        Story().node().hold("n1/0").job().steps(created=0, quota_reserved=5)
        .waits_for_quota(0, "WaitingForQuota")
        .waits_for_quota(5, "UnsatisfiedChecks", "check prov is pending", condition="Admitted")
        .job("w2").steps("w2", created=0, quota_reserved=0, admitted=1, scheduled=1),
        "admission",
        f"{NOT_PASSED} (UnsatisfiedChecks: check prov is pending)",
        NO_GPUS,
    ),
    "admission: a scheduler that tells no admission has let it in": (
        Story().node().hold("n1/0").job().steps(created=0, quota_reserved=5),
        "placement",
        "room for it is free, but it is not placed",
        NONE,
    ),
    "capacity: too few are free": (
        admitted().hold(*FULL[1:6], workload_uid="other"),
        "capacity",
        "2 GPUs of H100 free, 2 more needed",
        "with 2 GPUs of H100 it would fit on one node now",
    ),
    "capacity: none is free": (
        admitted().hold(*FULL[1:]),
        "capacity",
        "0 GPUs of H100 free, 4 more needed",
        NONE,
    ),
    "capacity: more than there are": (
        admitted(gpus=9),
        "capacity",
        "asks for 9 GPUs of H100; there are only 8",
        "with 7 GPUs of H100 it would fit on one node now",
    ),
    "capacity: more than there are, and none free": (
        admitted(gpus=9).hold(*FULL[1:]),
        "capacity",
        "asks for 9 GPUs of H100; there are only 8",
        NEVER,
    ),
    "capacity: exactly as many as there are": (
        admitted(gpus=8),
        "capacity",
        "7 GPUs of H100 free, 1 more needed",
        "with 7 GPUs of H100 it would fit on one node now",
    ),
    "capacity: a model that is not there": (
        admitted(gpu_models="B200"),
        "capacity",
        "0 GPUs of B200 free, 4 more needed",
        "on H100, which it does not accept, it would fit now",
    ),
    "capacity: GPUs at rest would do": (
        admitted(gpus=8).job("holder", queue="team-b").rest("n1/0", since=480, until=600),
        "capacity",
        "7 GPUs of H100 free, 1 more needed",
        "releasing holder, at rest for 2.0 h, frees 1 GPU on n1: it would fit",
    ),
    "capacity: at rest exactly long enough": (
        admitted(gpus=8).job("holder").rest("n1/0", since=540, until=600),
        "capacity",
        "7 GPUs of H100 free, 1 more needed",
        "releasing holder, at rest for 1.0 h, frees 1 GPU on n1: it would fit",
    ),
    "capacity: at rest not long enough": (
        admitted(gpus=8).job("holder").rest("n1/0", since=541, until=600),
        "capacity",
        "7 GPUs of H100 free, 1 more needed",
        "with 7 GPUs of H100 it would fit on one node now",
    ),
    "capacity: rest that was broken": (
        admitted(gpus=8).job("holder").rest("n1/0", since=0, until=500)
        .rest("n1/0", since=590, until=600),
        "capacity",
        "7 GPUs of H100 free, 1 more needed",
        "with 7 GPUs of H100 it would fit on one node now",
    ),
    "capacity: rest cut at the hour is one rest": (
        admitted(gpus=8).job("holder").rest("n1/0", since=450, until=540)
        .rest("n1/0", since=540, until=600),
        "capacity",
        "7 GPUs of H100 free, 1 more needed",
        "releasing holder, at rest for 2.5 h, frees 1 GPU on n1: it would fit",
    ),
    "placement: scattered over nodes": (
        admitted(gpus=8).node("n2").hold("n2/0", workload_uid="other"),
        "placement",
        "no node has 8 free GPUs of H100: 14 free in all, 7 at most on one node",
        "with 7 GPUs of H100 it would fit on one node now",
    ),
    "placement: GPUs at rest on the right node": (
        admitted(gpus=8).node("n2").hold("n2/0", workload_uid="other").job("other")
        .rest("n2/0", since=300, until=600, uid="other"),
        "placement",
        "no node has 8 free GPUs of H100: 14 free in all, 7 at most on one node",
        "releasing other, at rest for 5.0 h, frees 1 GPU on n2: it would fit",
    ),
    "placement: workers of a gang": (
        admitted(gpus=16).node("n2").node("n3").hold("n2/0", "n3/0").worker("w1", 8),
        "placement",
        "0 of 2 workers of 8 GPUs of H100 have a place: 21 free in all, 7 at most on one node",
        "with 7 GPUs of H100 it would fit on one node now",
    ),
    "placement: a gang of unknown workers": (
        admitted(gpus=10).node("n2").hold("n2/0"),
        "placement",
        "14 GPUs of H100 free, 7 at most on one node",
        "with 7 GPUs of H100 it would fit on one node now",
    ),
    "placement: CPUs are short": (
        admitted(gpus=4, cpu_milli=50_000).job("holder", cpu_milli=60_000),
        "placement",
        "50 CPUs short: 1 node of H100 has the GPUs, with 36 free beside them at most",
        "with 2 GPUs of H100 it would fit on one node now",
    ),
    "placement: exactly enough CPUs": (
        admitted(gpus=4, cpu_milli=36_000).job("holder", cpu_milli=60_000).pod_says(0),
        "placement",
        "room for it is free, but it is not placed (Unschedulable)",
        NONE,
    ),
    "placement: memory is short": (
        admitted(gpus=4, memory_bytes=2**40).job("holder", memory_bytes=2**39),
        "placement",
        f"1024.0 GiB of memory short: {ONE_NODE}, with 512.0 free beside them at most",
        "with 2 GPUs of H100 it would fit on one node now",
    ),
    "placement: what CPUs a holder took is not known": (
        admitted(gpus=4, cpu_milli=50_000).pod_says(0, "Unschedulable", "0/1 nodes are available"),
        "placement",
        "room for it is free, but it is not placed (Unschedulable: 0/1 nodes are available)",
        NONE,
    ),
    "placement: topology": (
        Story().node().hold("n1/0").job(gpu_count=4).steps(created=0)
        .waits_for_quota(0, "TopologyPlacementFailed", "fits only 1 out of 2 pods in rack"),
        "placement",
        "topology: fits only 1 out of 2 pods in rack",
        "on L40S, which it does not accept, it would fit now",
    ),
    "placement: parts of a GPU": (
        Story().node(gpus=1).instances("n1/0", 1, 1, 1).job(gpu_milli=429)
        .hold("n2/0").steps(created=0, quota_reserved=0, admitted=0),
        "placement",
        "0.429 GPUs of H100 free in parts, but not 1 of 0.429 GPU each",
        "not computed for parts of a GPU",
    ),
    "other: suspended": (
        Story().node().hold("n1/0").job().steps(created=0).waits_for_quota(0, "Suspended"),
        "other",
        "it is suspended",
        NO_GPUS,
    ),
    "other: misconfigured": (
        Story().node().hold("n1/0").job().steps(created=0)
        .waits_for_quota(0, "Misconfigured", "LocalQueue team-a doesn't exist"),
        "other",
        "its queue is misconfigured: LocalQueue team-a doesn't exist",
        NO_GPUS,
    ),
    "other: a word nobody knows is told as it is": (
        Story().node().hold("n1/0").job().steps(created=0).waits_for_quota(0, "MoonPhase", "new"),
        "other",
        "MoonPhase: new",
        NO_GPUS,
    ),
    "other: asks for no GPU": (
        Story().node().hold("n1/0").job(gpu_count=0, queue=None).steps(created=0),
        "other",
        "asks for no GPU: CPU or memory",
        NO_GPUS,
    ),
    "unknown: nothing was said": (
        Story().node().hold("n1/0").job().steps(created=0),
        "unknown",
        "unknown: no condition or event says why",
        NO_GPUS,
    ),
    "unknown: no holders": (
        Story().node().job(queue=None).steps(created=0).pod_says(0),
        "unknown",
        "unknown: who holds GPUs is not recorded (Unschedulable)",
        NO_GPUS,
    ),
    "unknown: nothing is known of what it asks for": (
        Story().node().hold("n1/0").job(gpu_count=None, queue=None).steps(created=0),
        "unknown",
        "unknown: what it asks for is not recorded",
        NO_GPUS,
    ),
}  # fmt: skip
CASES["placement: topology"][0].node("n2", model="L40S")


@pytest.mark.parametrize("case", CASES)
def test_why_it_is_pending(case: str) -> None:
    story, wait_class, blocking, fix = CASES[case]
    (row,) = [each for each in story.pending() if each["workload_uid"] == "w1"]
    assert (row["wait_class"], row["blocking"], row["fix"]) == (wait_class, blocking, fix)


def test_longest_wait_first_with_its_evidence() -> None:
    story = queued(used=6).job("w0").steps("w0", created=-10)
    story.waits_for_quota(30, "ExceedsMaxQuota", "1 too many")
    first, second = story.pending()
    assert (first["workload_uid"], first["evidence"], first["said_at"]) == ("w0", None, None)
    assert second["evidence"] == "condition QuotaReserved: ExceedsMaxQuota: 1 too many"
    assert second["said_at"] == NOON + 30 * MINUTE
    assert second["wait_s"] == 36_000.0


@pytest.mark.parametrize("step", ["scheduled", "finished"])
def test_what_is_over_waits_no_more(step: str) -> None:
    assert queued().steps(**{step: 599}).pending() == []


def test_what_was_said_of_an_earlier_attempt_is_not_evidence() -> None:
    story = queued().steps(quota_reserved=10, admitted=10, scheduled=10, evicted=20)
    story.steps(attempt=2, requeued=30)
    (row,) = story.pending()
    assert (row["attempt"], row["evidence"], row["wait_class"]) == (2, None, "unknown")


def test_class_now_is_that_of_the_end_not_of_the_longest() -> None:
    story = admitted(gpus=8).hold("n1/1", since=0, until=595)
    story.stored["allocation_history"][0]["ended_at"] = NOON + 9 * HOUR + 59 * MINUTE
    (row,) = story.pending()
    assert (row["wait_class"], row["blocking"]) == (
        "placement",
        "room for it is free, but it is not placed",
    )
