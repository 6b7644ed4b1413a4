"""Verdicts on a simulated fleet beside what its workloads really did, which no reading tells."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest

from collector.sources.simulated.behaviours import BEHAVIOURS, BURSTS, SILENT
from collector.sources.simulated.history import Run
from enforcer.decisions import Judgement, Verdict
from enforcer.judging import INFERENCE, judge
from enforcer.snapshot import build
from tests.support.enforcer_history import fleet_history
from tests.support.enforcer_judged import LIMITS
from tests.support.enforcer_world import policy
from tests.support.simulated_fleets import parameters, world
from tests.support.simulated_truth import Holding, Truth

FLEET = parameters(days=2, node_count=6, cadence_s=60)
HOURS = range(4, 48, 4)
SETTLED_S = 3_600 + 600
"""A window, and what loading a model takes."""
Held = tuple[Run, list[Holding], Judgement]


def at_hour(hours: int) -> datetime:
    return FLEET.from_at + timedelta(hours=hours)


def held_at(hours: int) -> Iterator[Held]:
    """Yield every run that holds GPUs at an instant, with its slots and its verdict."""
    history = fleet_history(FLEET, from_at=FLEET.from_at, cell_s=60)
    snapshot = build(history, [policy(LIMITS)], now=at_hour(hours))
    verdicts = {each.uid: judge(each, LIMITS, now=at_hour(hours)) for each in snapshot.workloads}
    holdings: dict[str, list[Holding]] = {}
    for holding in Truth(world(FLEET)).holdings():
        if holding.from_s <= hours * 3_600 < holding.until_s:
            holdings.setdefault(holding.run.request.uid, []).append(holding)
    for uid, slots in sorted(holdings.items()):
        yield slots[0].run, slots, verdicts[uid]


def is_watched(slots: list[Holding], hours: int) -> bool:
    """Tell whether every slot is a device or instance of its own, watched for a whole window."""
    truth, now_s = Truth(world(FLEET)), hours * 3_600
    return all(
        slot.slot.replica is None
        and slot.run.started_s <= now_s - SETTLED_S
        and all(end <= now_s - SETTLED_S or start >= now_s for start, end in truth.unwatched(slot))
        for slot in slots
    )


@pytest.mark.parametrize("hours", HOURS)
def test_whoever_works_is_never_idle(hours: int) -> None:
    for run, _slots, judgement in held_at(hours):
        pattern = BEHAVIOURS[run.request.behaviour].pattern
        if pattern not in {SILENT, BURSTS}:
            assert judgement.verdict is not Verdict.IDLE


@pytest.mark.parametrize("hours", HOURS)
def test_whoever_is_silent_and_watched_is_idle(hours: int) -> None:
    for run, slots, judgement in held_at(hours):
        is_silent = BEHAVIOURS[run.request.behaviour].pattern == SILENT
        if is_silent and is_watched(slots, hours) and run.request.workload_class != INFERENCE:
            assert judgement.verdict is Verdict.IDLE
            quiet = timedelta(seconds=judgement.observed_idle_s)
            assert quiet <= timedelta(hours=hours) - timedelta(seconds=run.scheduled_s)


def test_the_fleet_holds_idle_work_to_find() -> None:
    found = [
        judgement.verdict
        for hours in HOURS
        for run, slots, judgement in held_at(hours)
        if BEHAVIOURS[run.request.behaviour].pattern == SILENT and is_watched(slots, hours)
    ]
    assert found.count(Verdict.IDLE) >= len(HOURS)
