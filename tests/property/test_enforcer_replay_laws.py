"""A replay of recorded history decides what was decided live, at every instant of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from enforcer.decisions import Decision, Plan
from enforcer.history import LOOK_BACK, History, history, whole
from enforcer.planning import plan_from
from enforcer.policies.decide import decide
from enforcer.policies.model import Mode, Policy
from enforcer.policies.shipped import default_policy
from enforcer.replay import as_seen, replayed
from enforcer.snapshot import build
from steward.period import Period
from tests.support.enforcer_history import StoredFleet
from tests.support.simulated_fleets import parameters
from tests.support.simulated_store import stored

FLEET = parameters(days=2, cadence_s=600)
EXAMPLES = 200
NOW_AND_THEN = timedelta(hours=6)


def acting(*, on_pressure: bool) -> Policy:
    shipped = default_policy()
    rules = tuple(replace(rule, on_pressure=on_pressure) for rule in shipped.rules)
    return replace(shipped, mode=Mode.ENFORCE, rules=rules)


POLICIES = {name: (acting(on_pressure=name),) for name in (True, False)}
Round = tuple[tuple[Decision, ...], Plan]


def one_round(told: History, policies: tuple[Policy, ...], now: datetime) -> Round:
    snapshot = build(told, policies, now=now)
    decisions = decide(snapshot, policies, snapshot.taken_at)
    return decisions, plan_from(decisions, snapshot, policies, snapshot.taken_at)


@cache
def fleet() -> StoredFleet:
    return StoredFleet(stored(FLEET))


@cache
def recorded() -> History:
    """Return the history that a backtest holds: all of it at once."""
    period = Period(FLEET.from_at, FLEET.until_at)
    return history(fleet(), fleet(), period, cluster=FLEET.cluster)


def seen_live(now: datetime) -> History:
    return history(fleet(), fleet(), Period(now - LOOK_BACK, now), cluster=FLEET.cluster)


@pytest.mark.slow
@pytest.mark.timeout(900)  # each example asks the warehouse as a live round does
@settings(max_examples=EXAMPLES)
@given(seconds=st.integers(600, 2 * 86_400), on_pressure=st.booleans())
def test_replay_decides_and_plans_what_was_decided_and_planned_live(
    seconds: int, on_pressure: bool
) -> None:
    now = whole(FLEET.from_at + timedelta(seconds=seconds))
    policies = POLICIES[on_pressure]
    replay = one_round(as_seen(recorded(), now), policies, now)
    assert replay == one_round(seen_live(now), policies, now)


def test_a_replay_looks_at_every_instant_and_loads_ahead() -> None:
    asked: list[Period] = []

    def load(period: Period) -> History:
        asked.append(period)
        return history(fleet(), fleet(), period, cluster=FLEET.cluster)

    period = Period(FLEET.from_at, FLEET.from_at + timedelta(days=1, hours=1))
    rounds = {
        at: one_round(told, POLICIES[True], at)
        for at, told in replayed(load, period, every=NOW_AND_THEN)
    }
    assert list(rounds) == [period.from_at + number * NOW_AND_THEN for number in range(5)]
    assert len(asked) == 2
    assert all(
        found == one_round(seen_live(at), POLICIES[True], at) for at, found in rounds.items()
    )
