"""Ceilings, caps and overuse: who ranks too high, holds too much, or longer than allowed."""

from __future__ import annotations

from datetime import timedelta

import pytest

from enforcer.quota.holding import HELD_TOO_LONG, TOO_MANY_GPUS, TOO_MANY_WORKLOADS, excesses
from enforcer.quota.model import ANY, Ceiling, HoldingCap
from enforcer.quota.overuse import overuses
from enforcer.quota.priority import ABOVE_CEILING, NOT_RANKED, demotions
from tests.support.enforcer_quota import H100, NOON, holder, quota_file, share, team

DAY = timedelta(days=1)
TICK = timedelta(microseconds=1)


def ceiling(highest: str, *, tenant: str = "vision", workload_class: str = ANY) -> Ceiling:
    return Ceiling(tenant_id=tenant, workload_class=workload_class, highest=highest)


def cap(
    *, workloads: int | None = None, gpus: int | None = None, longest: timedelta | None = None
) -> HoldingCap:
    return HoldingCap(
        workload_class="development",
        per_owner_workload_count=workloads,
        per_owner_gpu_count=gpus,
        longest=longest,
    )


@pytest.mark.parametrize(
    ("priority_class", "expected"),
    [
        pytest.param("low", [], id="below the ceiling"),
        pytest.param("normal", [], id="at the ceiling"),
        pytest.param("high", [("normal", ABOVE_CEILING)], id="above the ceiling"),
        pytest.param("emperor", [("normal", NOT_RANKED)], id="a class nobody ranked"),
        pytest.param(None, [], id="no class at all"),
    ],
)
def test_scenario_42_a_priority_above_the_ceiling_is_demoted_with_a_reason(
    priority_class: str | None, expected: object
) -> None:
    file = quota_file(ceilings=(ceiling("normal"),))
    found = demotions(file, [holder(priority_class=priority_class)])
    assert [(one.wanted, one.reason) for one in found] == expected
    assert all("vision" in one.sentence for one in found)


@pytest.mark.parametrize(
    ("ceilings", "allowed"),
    [
        pytest.param([], None, id="none"),
        pytest.param([ceiling("low", tenant=ANY)], "low", id="of everybody"),
        pytest.param(
            [ceiling("low", tenant=ANY), ceiling("normal", tenant=ANY, workload_class="training")],
            "normal",
            id="of the class before that of everybody",
        ),
        pytest.param(
            [ceiling("normal", tenant=ANY, workload_class="training"), ceiling("high")],
            "high",
            id="of the team before that of the class",
        ),
        pytest.param(
            [ceiling("high"), ceiling("low", workload_class="training")],
            "low",
            id="of both before that of the team",
        ),
    ],
)
def test_the_most_particular_ceiling_counts(ceilings: list[Ceiling], allowed: str | None) -> None:
    assert quota_file(ceilings=tuple(ceilings)).ceiling("vision", "training") == allowed


@pytest.mark.parametrize(
    ("held", "is_too_long"),
    [
        pytest.param(DAY - TICK, False, id="one tick less"),
        pytest.param(DAY, False, id="exactly as long as allowed"),
        pytest.param(DAY + TICK, True, id="one tick more"),
    ],
)
def test_holding_longer_than_allowed_is_told(held: timedelta, is_too_long: bool) -> None:
    found = excesses(quota_file(caps=(cap(longest=DAY),)), [holder(held_for=held)], now=NOON)
    assert [one.reason for one in found] == ([HELD_TOO_LONG] if is_too_long else [])


def test_scenario_23_the_newest_interactive_jobs_of_one_person_are_beyond_the_cap() -> None:
    theirs = [holder(f"w-{age}", held_for=timedelta(hours=age)) for age in (1, 2, 3)]
    others = [
        holder("other", owner="bob"),
        holder("elsewhere", queue="audio"),
        holder("nobody", owner=None),
        holder("training", workload_class="training"),
        holder("waits", is_pending=True),
    ]
    found = excesses(quota_file(caps=(cap(workloads=2),)), [*theirs, *others], now=NOON)
    assert [(one.workload_uid, one.reason) for one in found] == [("w-1", TOO_MANY_WORKLOADS)]


@pytest.mark.parametrize(
    ("gpus", "beyond"),
    [
        pytest.param((0.5, 0.4), [], id="below"),
        pytest.param((0.5, 0.5), [], id="exactly"),
        pytest.param((0.5, 0.6), ["w-1"], id="above"),
        pytest.param((0.0, 1.0), [], id="nothing held counts nothing"),
    ],
)
def test_gpus_of_one_person_are_summed_in_shares(
    gpus: tuple[float, float], beyond: list[str]
) -> None:
    older, newer = gpus
    theirs = [
        holder("w-0", gpu_count=older, held_for=DAY),
        holder("w-1", gpu_count=newer, held_for=DAY / 2),
    ]
    found = excesses(quota_file(caps=(cap(gpus=1),)), theirs, now=NOON)
    assert [one.workload_uid for one in found if one.reason == TOO_MANY_GPUS] == beyond


def test_scenario_35_two_shares_of_sixty_percent_are_over_a_quota_of_one() -> None:
    file = quota_file(team("vision", share(1, borrow=0)))
    two = [holder("a", gpu_count=0.6), holder("b", gpu_count=0.6)]
    (found,) = overuses(file, two)
    assert (found.held_gpu_count, found.guaranteed_gpu_count) == (1.2, 1)
    assert found.is_beyond_limit


@pytest.mark.parametrize(
    ("gpu_count", "expected"),
    [
        pytest.param(8.0, [], id="the whole guarantee"),
        pytest.param(8.5, [False], id="borrowing"),
        pytest.param(12.0, [False], id="all that may be borrowed"),
        pytest.param(12.5, [True], id="beyond the limit"),
    ],
)
def test_borrowing_is_not_yet_beyond_the_limit(gpu_count: float, expected: object) -> None:
    found = overuses(quota_file(), [holder(gpu_count=gpu_count)])
    assert [one.is_beyond_limit for one in found] == expected


def test_a_model_without_a_share_is_held_against_nothing() -> None:
    (found,) = overuses(quota_file(), [holder(gpu_models=("L40S",))])
    assert (found.gpu_model, found.guaranteed_gpu_count, found.is_beyond_limit) == ("L40S", 0, True)
    (unknown,) = overuses(quota_file(), [holder(gpu_models=(H100, "L40S"))])
    assert unknown.gpu_model == "unknown"


def test_who_waits_or_belongs_to_no_named_team_uses_nothing() -> None:
    none = [holder(is_pending=True, gpu_count=99), holder("x", tenant="audio", gpu_count=99)]
    assert overuses(quota_file(), none) == ()
