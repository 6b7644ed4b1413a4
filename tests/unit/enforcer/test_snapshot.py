"""What rules may know at one instant, from rows of the warehouse and of the state."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from enforcer.facts import Exemption, NodeRoom, PodFact, QuotaUse
from enforcer.history import History, state_of, whole
from enforcer.policies.shipped import default_policy
from enforcer.snapshot import Live, build
from steward.period import Period
from tests.support.enforcer_world import (
    CLUSTER,
    GIB_BYTES,
    HOUR,
    MINUTE,
    START,
    WORKING,
    World,
)

NOW = START + 3 * HOUR


def text(at: datetime) -> str:
    return at.isoformat().replace("+00:00", "Z")


def test_a_holder_is_told_as_it_stands() -> None:
    world = World().node().job("GPU-a", kind="PyTorchJob", queue="q", priority=5)
    world.pod(labels_json='{"app": "x", "n": "1"}').reads(until_at=NOW)
    found = world.seen(NOW)
    assert replace(found, evidence=None) == replace(
        found,
        evidence=None,
        cluster=CLUSTER,
        uid="w1",
        api_version="kubeflow.org/v1",
        kind="PyTorchJob",
        namespace="team-a",
        name="w1",
        object_uid="w1",
        resource_version="",
        tenant_id="team-a",
        workload_class="training",
        queue="q",
        priority=5,
        labels={"app": "x", "n": "1"},
        annotations={},
        gpu_models=("H100",),
        mig_profile=None,
        gpu_count=1.0,
        is_gang=True,
        is_pending=False,
        created_at=START,
        admitted_at=START,
        managers=frozenset(),
    )


def test_labels_are_those_that_all_pods_have() -> None:
    world = World().node().workload(gpu_count=2).gpu("GPU-a").gpu("GPU-b")
    world.holds("GPU-a").holds("GPU-b", pod="w1-1", pod_uid="w1-1")
    world.pod(labels_json='{"app": "x", "index": "0"}')
    world.pod("w1-1", labels_json='{"app": "x", "index": "1"}').reads(until_at=NOW)
    found = world.seen(NOW)
    assert found.labels == {"app": "x"}
    assert [pod.name for pod in found.pods] == ["w1-0", "w1-1"]


def test_pods_that_nobody_told_are_those_that_hold() -> None:
    world = World().node().job("GPU-a", "GPU-b").reads(until_at=NOW)
    assert world.seen(NOW).pods == (
        PodFact(
            uid="",
            name="w1-0",
            node="n1",
            phase="Running",
            gpu_count=2,
            labels={},
            has_controller=True,
        ),
    )


def test_a_bare_pod_has_no_controller() -> None:
    world = World().node().job("GPU-a", kind="Pod").reads(until_at=NOW)
    assert [pod.has_controller for pod in world.seen(NOW).pods] == [False]


def test_a_pod_that_ended_is_none_of_its_pods() -> None:
    world = World().node().job("GPU-a").reads(until_at=NOW)
    world.pod("w1-old", finished_at=START + HOUR, observed_at=START + HOUR)
    assert [pod.name for pod in world.seen(NOW).pods] == ["w1-0"]


@pytest.mark.parametrize(
    ("steps", "is_known", "is_pending"),
    [
        pytest.param((), True, True, id="created"),
        pytest.param(("quota_reserved", "admitted"), True, True, id="admitted"),
        pytest.param(("admitted", "evicted"), True, True, id="evicted"),
        pytest.param(("admitted", "scheduled", "started"), True, False, id="runs, GPUs unknown"),
        pytest.param(("admitted", "started", "finished"), False, False, id="over"),
    ],
)
def test_what_waits_is_what_asks_and_holds_nothing(
    steps: tuple[str, ...], is_known: bool, is_pending: bool
) -> None:
    world = World().node().workload("w2", gpu_count=4, gpu_models="A100|H100")
    for number, step in enumerate(steps, 1):
        world.step("w2", step, at=START + number * MINUTE)
    found = {each.uid: each for each in world.snapshot(NOW).workloads}
    assert ("w2" in found) is is_known
    if is_known:
        waiting = found["w2"]
        assert (waiting.is_pending, waiting.gpu_count) == (is_pending, 4.0)
        assert (waiting.gpu_models, waiting.evidence) == (("A100", "H100"), None)


def test_work_without_gpus_is_none_of_our_business() -> None:
    world = World().node().workload("cpu", gpu_count=0)
    assert world.snapshot(NOW).workloads == ()


def test_nothing_of_later_is_known() -> None:
    later = NOW + MINUTE
    world = World().node().job("GPU-a").reads(until_at=NOW + HOUR)
    world.workload("w2").gpu("GPU-b").holds("GPU-b", uid="w2", at=later)
    world._rows["workload_transition"][-1]["occurred_at"] = later
    assert [each.uid for each in world.snapshot(NOW).workloads] == ["w1"]


def test_rooms_are_what_nobody_holds() -> None:
    world = World().node().gpu("GPU-a").gpu("GPU-b").gpu("GPU-c", is_present=False)
    world.gpu("GPU-m").gpu("GPU-m", instance_id=1, mig_profile="1g.10gb")
    world.gpu("GPU-m", instance_id=2, mig_profile="1g.10gb")
    world.workload().holds("GPU-a").workload("w2").holds("GPU-m", uid="w2", instance_id=1)
    plain = NodeRoom(
        cluster=CLUSTER,
        node="n1",
        gpu_model="H100",
        mig_profile=None,
        free_count=1,
        total_count=2,
        is_schedulable=True,
        nvlink_domain=None,
        rack=None,
        free_cpu_milli=96_000 - 16_000,
        free_memory_bytes=(1_000 - 128) * GIB_BYTES,
    )
    assert world.snapshot(NOW).rooms == (plain, replace(plain, mig_profile="1g.10gb"))


@pytest.mark.parametrize(
    ("node", "workload", "free_cpu_milli"),
    [
        pytest.param({}, {"cpu_milli": None}, None, id="a holder's need is not known"),
        pytest.param({"cpu_milli": None}, {}, None, id="the node's own is not known"),
        pytest.param({}, {"cpu_milli": 0}, 96_000, id="a holder needs none"),
        pytest.param({}, {"cpu_milli": 200_000}, 0, id="more is taken than there is"),
    ],
)
def test_processors_that_are_not_known_are_not_zero(
    node: dict[str, object], workload: dict[str, object], free_cpu_milli: int | None
) -> None:
    world = World().node(**node).job("GPU-a", **workload)
    (room,) = world.snapshot(NOW).rooms
    assert room.free_cpu_milli == free_cpu_milli


def test_a_cordoned_node_has_room_that_is_not_schedulable() -> None:
    world = World().node().node(observed_at=START + HOUR, is_schedulable=False).gpu()
    assert [room.is_schedulable for room in world.snapshot(NOW).rooms] == [False]


def test_a_node_that_left_has_no_room() -> None:
    world = World().node().node(observed_at=START + HOUR, is_present=False).gpu()
    assert world.snapshot(NOW).rooms == ()


def test_quota_is_as_last_told() -> None:
    world = World().node().quota(gpu_model="H100", guaranteed_gpu_count=4.0)
    world.quota(observed_at=START + HOUR, gpu_model="H100", guaranteed_gpu_count=8.0)
    world.quota(observed_at=NOW + HOUR, gpu_model="H100", guaranteed_gpu_count=16.0)
    assert world.snapshot(NOW).quotas == (
        QuotaUse(
            cluster=CLUSTER,
            tenant_id="team-a",
            queue="q",
            gpu_model="H100",
            guaranteed_gpu_count=8.0,
            limit_gpu_count=None,
            used_gpu_count=None,
        ),
    )


def leave(**told: object) -> dict[str, object]:
    return {
        "scope_kind": "workload",
        "scope_key": "w1",
        "policy": "*",
        "reason": "demo",
        "approver": "lead",
        "valid_from_at": text(START),
        "valid_until_at": text(NOW + HOUR),
        "recorded_at": text(START),
        **told,
    }


def test_leaves_that_are_granted_and_not_over_are_known() -> None:
    world = World().node().state("exemption", **leave())
    world.state("exemption", **leave(scope_key="over", valid_until_at=text(NOW)))
    world.state("exemption", **leave(scope_key="granted later", recorded_at=text(NOW + MINUTE)))
    assert world.snapshot(NOW).exemptions == (
        Exemption(
            scope_kind="workload",
            scope_key="w1",
            policy="*",
            period=Period(START, NOW + HOUR),
            reason="demo",
        ),
    )


def notice(**told: object) -> dict[str, object]:
    return {
        "cluster": CLUSTER,
        "workload_uid": "w1",
        "rule": "r",
        "is_delivered": 1,
        "idle_since_at": text(START),
        "act_at": text(NOW + HOUR),
        "told_at": text(NOW - HOUR),
        **told,
    }


@pytest.mark.parametrize(
    ("told", "count"),
    [
        pytest.param({}, 1, id="delivered"),
        pytest.param({"is_delivered": 0}, 0, id="not delivered"),
        pytest.param({"cluster": "other"}, 0, id="another cluster's"),
        pytest.param({"told_at": text(NOW + MINUTE)}, 0, id="of later"),
        pytest.param({"workload_uid": "gone"}, 0, id="of nobody who is here"),
    ],
)
def test_only_notices_that_reached_somebody_are_facts(told: dict[str, object], count: int) -> None:
    world = World().node().job("GPU-a").state("notice", **notice(**told))
    assert len(world.snapshot(NOW).notices) == count


@pytest.mark.parametrize(
    ("words", "is_stopped"),
    [
        pytest.param([], False, id="never turned"),
        pytest.param([(None, 1)], True, id="all stopped"),
        pytest.param([(CLUSTER, 1)], True, id="this one stopped"),
        pytest.param([("other", 1)], False, id="another stopped"),
        pytest.param([(None, 1), (CLUSTER, 0)], False, id="stopped, then released"),
        pytest.param([(CLUSTER, 0), (None, 1)], True, id="released, then stopped"),
    ],
)
def test_the_newest_word_of_the_switch_counts(
    words: list[tuple[str | None, int]], is_stopped: bool
) -> None:
    world = World().node()
    for number, (cluster, word) in enumerate(words):
        at = text(START + number * MINUTE)
        world.state("enforcement_switch", cluster=cluster, is_stopped=word, recorded_at=at)
    assert world.snapshot(NOW).health.is_stopped is is_stopped


def test_health_knows_when_anything_was_last_read() -> None:
    world = World().node().job("GPU-a").reads(until_at=START + HOUR)
    assert world.snapshot(NOW).health.telemetry_at == START + 59 * MINUTE
    assert World().node().snapshot(NOW).health.telemetry_at is None


@pytest.mark.parametrize(
    ("seconds", "cell_s", "expected_s"),
    [
        pytest.param(0, 60, 0, id="an end"),
        pytest.param(59, 60, 0, id="before the next"),
        pytest.param(60, 60, 60, id="the next"),
        pytest.param(301, 300, 300, id="of five minutes"),
    ],
)
def test_snapshots_are_taken_at_ends_of_cells(seconds: int, cell_s: int, expected_s: int) -> None:
    at = START + timedelta(seconds=seconds, microseconds=1)
    assert whole(at, cell_s=cell_s) == START + timedelta(seconds=expected_s)


def test_a_snapshot_is_never_of_later_than_asked() -> None:
    world = World().node().job("GPU-a").reads(until_at=NOW)
    assert world.snapshot(NOW + timedelta(seconds=59)).taken_at == NOW


def told_history(world: World) -> History:
    return world.history(NOW)


def test_the_same_facts_have_the_same_name_and_others_another() -> None:
    world = World().node().job("GPU-a").reads(until_at=NOW)
    one, again = world.snapshot(NOW), World.snapshot_of(told_history(world), NOW)
    assert one == again
    working = World().node().job("GPU-a").reads(until_at=NOW, **WORKING)
    assert working.snapshot(NOW).snapshot_id != one.snapshot_id
    assert world.snapshot(NOW - MINUTE).snapshot_id != one.snapshot_id


def test_what_the_live_cluster_says_is_taken_over() -> None:
    live = Live(namespace_labels={"team-a": {"steward/keep": "true"}}, api_error_ratio=0.25)
    world = World().node().job("GPU-a").reads(until_at=NOW)
    found = build(told_history(world), [default_policy()], now=NOW, live=live)
    assert found.workloads[0].namespace_labels == {"steward/keep": "true"}
    assert found.workloads[0].evidence is None, "a rule that exempts judges nobody"
    assert found.health.api_error_ratio == 0.25


def test_without_a_policy_nobody_is_judged() -> None:
    world = World().node().job("GPU-a").reads(until_at=NOW)
    found = build(told_history(world), [], now=NOW)
    assert [each.evidence for each in found.workloads] == [None]


class LongLedger:
    """A state with more acts than one answer holds."""

    def __init__(self, act_count: int) -> None:
        """Number them from 1."""
        self._acts = [{"action_id": number} for number in range(1, act_count + 1)]

    def state_rows(self, table: str) -> list[dict[str, int]]:
        return self._acts[:-3:-1] if table == "action" else []

    def state_after(self, table: str, key: int, *, limit: int = 2) -> list[dict[str, int]]:
        assert table == "action"
        return self._acts[key : key + limit]

    def state_append(self, rows: object, *, seen: object) -> None:
        raise AssertionError(rows, seen)


@pytest.mark.parametrize("act_count", [0, 1, 2, 3, 5])
def test_every_act_counts_however_old(act_count: int) -> None:
    found = state_of(LongLedger(act_count))
    assert [row["action_id"] for row in found["action"]] == list(range(act_count, 0, -1))


def test_where_namespaces_cannot_be_read_nobody_is_judged() -> None:
    world = World().node().job("GPU-a").reads(until_at=NOW)
    live = Live(namespace_labels=None, api_error_ratio=1.0)
    found = build(told_history(world), [default_policy()], now=NOW, live=live)
    assert [each.evidence for each in found.workloads] == [None]


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        pytest.param('{"a": "b", "n": 1}', {"a": "b"}, id="a number is no label"),
        pytest.param("[]", {}, id="no object"),
        pytest.param("{", {}, id="no JSON"),
        pytest.param(None, {}, id="not told"),
    ],
)
def test_labels_that_are_none_stop_nothing(labels: str | None, expected: dict[str, str]) -> None:
    world = World().node().job("GPU-a").pod(labels_json=labels)
    assert world.seen(NOW).labels == expected


@pytest.mark.parametrize(
    ("resources", "profile"),
    [
        pytest.param(["nvidia.com/mig-1g.10gb"] * 2, "1g.10gb", id="instances of one profile"),
        pytest.param(["nvidia.com/mig-1g.10gb", "nvidia.com/gpu"], None, id="of several"),
        pytest.param(["nvidia.com/gpu"], None, id="whole GPUs"),
        pytest.param([None], None, id="not told"),
    ],
)
def test_what_waiting_pods_ask_for(resources: list[str | None], profile: str | None) -> None:
    world = World().node().workload()
    for number, resource in enumerate(resources):
        world.pod(f"w1-{number}", phase="Pending", gpu_resource=resource)
    assert world.seen(NOW).mig_profile == profile
