"""The recorded queue played under quota files: hand-made queues with known answers, and laws."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from enforcer.quota.model import QuotaFile, TeamQuota
from enforcer.quota.whatif import Job, by_team, play
from tests.support.enforcer_quota import H100, NOON, model, quota_file, share, team

HOUR = timedelta(hours=1)
END = NOON + 100 * HOUR


def job(  # noqa: PLR0913 - a builder: each fact has its harmless default
    uid: str,
    *,
    tenant: str | None = "vision",
    gpus: float = 1.0,
    at: float = 0,
    held: float = 1,
    priority: str | None = None,
    models: tuple[str, ...] = (),
) -> Job:
    return Job(
        uid=uid,
        tenant_id=tenant,
        priority_class=priority,
        gpu_count=gpus,
        gpu_models=models,
        created_at=NOON + at * HOUR,
        held=held * HOUR,
        waited=None,
    )


def quota(guaranteed: int, *, borrow: int | None = 0, lend: int | None = None) -> TeamQuota:
    return team("vision", share(guaranteed, borrow=borrow, lend=lend))


def hours(jobs: list[Job], *teams: TeamQuota, capacity: int = 8) -> dict[str, float | None]:
    """Return the waits in hours."""
    found = play(jobs, quota_file(*teams), capacity={H100: capacity}, until_at=END)
    return {uid: None if wait is None else wait / HOUR for uid, wait in found.items()}


def test_two_jobs_on_one_gpu_run_one_after_the_other() -> None:
    jobs = [job("a", held=3), job("b", at=1)]
    assert hours(jobs, quota(1), capacity=1) == {"a": 0, "b": 2}


@pytest.mark.parametrize(
    ("guaranteed", "wait"),
    [
        pytest.param(1, 3, id="one: the second waits"),
        pytest.param(2, 0, id="two: both run"),
        pytest.param(3, 0, id="more changes nothing"),
    ],
)
def test_a_larger_quota_ends_a_wait_that_quota_made(guaranteed: int, wait: float) -> None:
    jobs = [job("a", held=3), job("b")]
    assert hours(jobs, quota(guaranteed))["b"] == wait


@pytest.mark.parametrize(
    ("borrow", "wait"),
    [
        pytest.param(0, 3, id="nothing to borrow"),
        pytest.param(1, 0, id="one to borrow"),
        pytest.param(None, 0, id="as much as is free"),
    ],
)
def test_borrowing_uses_what_is_free(borrow: int | None, wait: float) -> None:
    assert hours([job("a", held=3), job("b")], quota(1, borrow=borrow))["b"] == wait


@pytest.mark.parametrize(
    ("lend", "wait"),
    [
        pytest.param(None, 0, id="all is lent"),
        pytest.param(8, 0, id="the whole guarantee is lent"),
        pytest.param(0, None, id="nothing is lent: it never starts"),
    ],
)
def test_a_guarantee_that_is_not_lent_stays_free(lend: int | None, wait: float | None) -> None:
    owner = team("audio", share(8, borrow=0, lend=lend))
    assert hours([job("a")], owner, quota(0, borrow=8)) == {"a": wait}


def test_higher_priority_goes_first_and_later_ones_fill_what_is_left() -> None:
    jobs = [
        job("first", gpus=8, held=2),
        job("low", gpus=8, at=0.5, priority="low"),
        job("high", gpus=8, at=1, priority="high", held=1),
        job("small", gpus=1, at=1, held=1),
    ]
    assert hours(jobs, quota(9), capacity=9) == {"first": 0, "high": 1, "low": 2.5, "small": 0}


def test_a_model_without_a_share_is_not_the_teams_to_use() -> None:
    assert hours([job("a", models=("L40S",))], quota(8)) == {"a": None}


def test_a_team_that_the_file_does_not_name_is_bound_by_what_is_free() -> None:
    jobs = [job("a", tenant="guests", gpus=8, held=2), job("b", tenant=None, gpus=1)]
    assert hours(jobs, quota(0)) == {"a": 0, "b": 2}


def test_what_never_starts_waits_to_the_end_and_is_counted() -> None:
    jobs = [job("a", gpus=9), job("b", tenant="audio"), job("c", held=2)]
    waits = play(jobs, quota_file(quota(8)), capacity={H100: 8}, until_at=NOON + 10 * HOUR)
    audio, vision = by_team(jobs, waits, until_at=NOON + 10 * HOUR)
    assert (audio.job_count, audio.started_count, audio.gpu_hours_waited) == (1, 1, 0.0)
    assert (vision.job_count, vision.started_count) == (2, 1)
    assert vision.gpu_hours_waited == 90.0
    assert vision.mean_s == 0


def test_nobody_started_has_no_mean_and_no_jobs_is_no_team() -> None:
    jobs = [job("a", gpus=9)]
    waits = play(jobs, quota_file(quota(8)), capacity={H100: 8}, until_at=END)
    (vision,) = by_team(jobs, waits, until_at=END)
    assert (vision.mean_s, vision.median_s) == (None, None)
    assert by_team([], {}, until_at=END) == ()


QUEUES = st.lists(
    st.builds(
        job,
        uid=st.uuids().map(str),
        tenant=st.sampled_from(["vision", "audio", None]),
        gpus=st.sampled_from([0.5, 1.0, 2.0, 4.0, 8.0]),
        at=st.integers(0, 20),
        held=st.integers(1, 10),
        priority=st.sampled_from([None, "low", "high", "unheard of"]),
    ),
    max_size=12,
    unique_by=lambda one: one.uid,
)


def held_at(jobs: list[Job], waits: dict[str, timedelta | None], hour: int) -> dict[str, float]:
    """Return GPUs held in the hour, by team."""
    found: dict[str, float] = {}
    for one in jobs:
        wait = waits[one.uid]
        start = None if wait is None else one.created_at + wait
        at = NOON + hour * HOUR
        if start is not None and start <= at < start + one.held:
            key = one.tenant_id or ""
            found[key] = found.get(key, 0.0) + one.gpu_count
    return found


@settings(max_examples=200)
@given(jobs=QUEUES, guaranteed=st.integers(0, 8), borrow=st.integers(0, 8))
def test_neither_capacity_nor_a_limit_is_ever_exceeded(
    jobs: list[Job], guaranteed: int, borrow: int
) -> None:
    file = quota_file(quota(guaranteed, borrow=borrow), models=(model(),))
    waits = play(jobs, file, capacity={H100: 8}, until_at=END)
    for hour in range(101):
        held = held_at(jobs, waits, hour)
        assert sum(held.values()) <= 8
        assert held.get("vision", 0) <= guaranteed + borrow
    assert all(wait is None or wait >= timedelta() for wait in waits.values())


@settings(max_examples=200)
@given(jobs=QUEUES)
def test_with_room_for_all_nobody_waits(jobs: list[Job]) -> None:
    waits = play(jobs, roomy(), capacity={H100: 1_000}, until_at=END)
    assert set(waits.values()) <= {timedelta()}


def roomy() -> QuotaFile:
    return quota_file(quota(1_000))
