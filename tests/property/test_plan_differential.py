"""Reading by plan gives what reading in full gives, whatever a target's texts do."""

from __future__ import annotations

import random
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.normalize import Planner
from collector.normalize.claims import DeviceClaims
from collector.normalize.dictionary import METRICS
from tests.support.exposition_texts import INTERVAL
from tests.support.exposition_worlds import UNKNOWN_NAMES, World
from tests.support.planned_targets import EagerPlanner, NeverPlanned, Side

NAMES = sorted(METRICS)
PLAIN_NAMES = [name for name in NAMES if METRICS[name].is_plain]


def compare(seed: int, *, names: list[str], step_count: int, has_claims: bool) -> int:
    """Feed the same texts to both sides; return how many the planning side read in full."""
    dice = random.Random(seed)  # noqa: S311 - repeatable test input
    worlds = [
        World(dice, names, dice.choice((1, 2)), is_calm=dice.random() < 0.7) for _ in range(2)
    ]
    claims = [DeviceClaims() if has_claims else None for _ in range(2)]
    planner = dice.choice((Planner, EagerPlanner))
    planned, full = Side(planner, claims[0]), Side(NeverPlanned, claims[1])
    after = timedelta(0)
    for step in range(step_count):
        number = dice.choice((0, 0, 0, 1))
        after += dice.choice((INTERVAL, INTERVAL, INTERVAL, timedelta(minutes=3)))
        if dice.random() < 0.2:
            worlds[number].change_something()
        if dice.random() < 0.8:
            worlds[number].change_numbers()
        text = worlds[number].text()
        one = planned.scrape(number, text, after=after)
        assert one == full.scrape(number, text, after=after), (step, text.decode())
    return planned.full_reads


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    names=st.lists(st.sampled_from([*NAMES, *UNKNOWN_NAMES]), min_size=1, max_size=12, unique=True),
    has_claims=st.booleans(),
)
def test_texts_of_all_dialects(seed: int, names: list[str], *, has_claims: bool) -> None:
    compare(seed, names=names, step_count=12, has_claims=has_claims)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    names=st.lists(st.sampled_from(PLAIN_NAMES), min_size=3, max_size=20, unique=True),
)
def test_texts_of_ordinary_measures(seed: int, names: list[str]) -> None:
    compare(seed, names=names, step_count=12, has_claims=False)


@pytest.mark.parametrize("seed", range(3))
def test_most_texts_of_a_quiet_exporter_are_read_by_plan(seed: int) -> None:
    dice = random.Random(seed)  # noqa: S311 - repeatable test input
    names = [
        "DCGM_FI_DEV_GPU_UTIL",
        "DCGM_FI_DEV_POWER_USAGE",
        "DCGM_FI_PROF_SM_ACTIVE",
        *UNKNOWN_NAMES,
    ]
    world = World(dice, names, 2, is_calm=True)
    side = Side(Planner, None)
    for step in range(20):
        world.change_numbers()
        side.scrape(0, world.text(), after=step * INTERVAL)
    assert side.full_reads <= 2
