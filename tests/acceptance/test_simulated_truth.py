"""What was planted in the simulated fleet is found, with its numbers, and nothing else is."""

from __future__ import annotations

from collections import Counter
from functools import cache

import polars as pl
import pytest

from analytics.bookkeeping import Books, keep_books
from analytics.schemas.usage import LEAVES
from analytics.spells import idle_spells, stuck_spells
from analytics.usage import ALLOCATED, TREE, leaf
from steward.units import SECONDS_PER_MINUTE, TICKS_PER_SECOND
from tests.support.simulated_fleets import parameters, world
from tests.support.simulated_store import fleet_frames, whole_period
from tests.support.simulated_truth import Holding, Truth, exact_share, length_s, ticks, without

CADENCE_S = 120
SEEDS = (7, 11)
IDLE_BEHAVIOURS = {"idle", "one_sm"}
"""At rest all the time. One SM of a hundred at work leaves SM and memory activity below 1 %."""
RESTING_BEHAVIOURS = IDLE_BEHAVIOURS | {"notebook"}
STUCK_BEHAVIOURS = {"deadlock", "one_sm"}
"""Look busy while no pipe and no memory works."""
SLACK_S = 3 * CADENCE_S
"""A reading stands for the time since the one before it: what begins and ends is seen late."""


@cache
def truth(seed: int) -> Truth:
    return Truth(world(parameters(seed=seed, days=2, cadence_s=CADENCE_S)))


@cache
def books(seed: int) -> Books:
    asked = truth(seed).world.parameters
    return keep_books(fleet_frames(asked), whole_period(asked))


def held(seed: int, *columns: str) -> dict[str, dict[str, int]]:
    rows = books(seed).rows.filter("is_held").group_by("workload_uid").agg(pl.col(columns).sum())
    return {row["workload_uid"]: row for row in rows.iter_rows(named=True)}


def is_own(holding: Holding) -> bool:
    """Tell whether the board, or instance, is the holder's alone: its readings are then its own."""
    return holding.slot.replica is None


def workloads(seed: int, behaviours: set[str], *, watched_s: int) -> set[str]:
    """Return the workloads of these behaviours that ran unbroken in sight for so long."""
    return {
        each.run.request.uid
        for each in truth(seed).holdings()
        if each.run.request.behaviour in behaviours
        and is_own(each)
        and truth(seed).watched_s(each) >= watched_s
    }


def shared(seed: int) -> set[str]:
    return {each.run.request.uid for each in truth(seed).holdings() if not is_own(each)}


each_seed = pytest.mark.parametrize("seed", SEEDS)


@each_seed
def test_every_device_second_is_in_exactly_one_leaf(seed: int) -> None:
    rows, known = books(seed).rows, truth(seed)
    assert rows.filter(pl.sum_horizontal(LEAVES) != pl.col("wall_ticks")).is_empty()
    assert rows["wall_ticks"].sum() == (
        len(known.world.fleet.devices) * known.duration_s * TICKS_PER_SECOND
    )


@each_seed
def test_every_workload_holds_what_it_was_given(seed: int) -> None:
    columns = [name for part in ALLOCATED for name in TREE[part]]
    found = {uid: sum(row[name] for name in columns) for uid, row in held(seed, *columns).items()}
    expected = truth(seed).allocated_ticks()
    assert Counter({uid: count for uid, count in found.items() if count}) == Counter(
        {uid: count for uid, count in expected.items() if count}
    )


@each_seed
@pytest.mark.parametrize(
    ("reason", "column"),
    [
        pytest.param("lost", "down_ticks", id="lost boards"),
        pytest.param("cordoned", "down_ticks", id="free boards of the cordoned node"),
        pytest.param("mig_geometry", "stranded_ticks", id="slices without an instance"),
    ],
)
def test_time_without_use_has_its_reason(seed: int, reason: str, column: str) -> None:
    known = truth(seed)
    expected = {
        "lost": known.lost_ticks(),
        "cordoned": known.cordoned_free_ticks(),
        "mig_geometry": known.unconfigured_ticks(),
    }
    rows = books(seed).rows
    assert rows.filter(pl.col("reason") == reason)[column].sum() == expected[reason]


@each_seed
def test_nothing_is_down_that_was_not_planted(seed: int) -> None:
    rows = books(seed).rows
    planted = {"lost", *(["cordoned"] if truth(seed).cordoned_free_ticks() else [])}
    assert set(rows.filter(pl.col("down_ticks") > 0)["reason"]) == planted


@each_seed
def test_idle_holders_are_idle_for_all_the_time_they_were_watched(seed: int) -> None:
    found = held(seed, "idle_ticks", "used_measured_ticks", "ineffective_ticks")
    known = truth(seed)
    short = {}
    for uid in workloads(seed, IDLE_BEHAVIOURS, watched_s=0) - shared(seed):
        holdings = [each for each in known.holdings() if each.run.request.uid == uid]
        watched = sum(
            ticks(each.share, length_s(without([(each.from_s, each.until_s)],
                                               known.unwatched(each))))
            for each in holdings
        )  # fmt: skip
        seen_late = sum(ticks(each.share, SLACK_S) for each in holdings)
        row = found[uid]
        assert row["used_measured_ticks"] + row["ineffective_ticks"] <= seen_late
        if not watched - seen_late - watched // 50 <= row["idle_ticks"] <= watched + seen_late:
            short[uid] = (row["idle_ticks"], watched)
    assert short == {}


@each_seed
def test_idle_spells_name_who_rests_and_nobody_else(seed: int) -> None:
    named = set(idle_spells(books(seed).rest)["workload_uid"])
    certain = workloads(seed, IDLE_BEHAVIOURS, watched_s=10 * SECONDS_PER_MINUTE + 2 * SLACK_S)
    assert certain - named == set()
    may_rest = {
        each.run.request.uid
        for each in truth(seed).holdings()
        if each.run.request.behaviour in RESTING_BEHAVIOURS or not is_own(each)
    }
    assert named - may_rest == set()


@each_seed
def test_stuck_spells_name_who_hangs_and_nobody_else(seed: int) -> None:
    named = set(stuck_spells(books(seed).rest)["workload_uid"])
    certain = workloads(seed, STUCK_BEHAVIOURS, watched_s=15 * SECONDS_PER_MINUTE + 2 * SLACK_S)
    may_hang = workloads(seed, STUCK_BEHAVIOURS, watched_s=0) | shared(seed)
    assert certain
    assert (certain - named, named - may_hang) == (set(), set())


@each_seed
def test_a_silent_exporter_leaves_use_unknown_and_nothing_idle(seed: int) -> None:
    known = truth(seed)
    (silent,) = known.world.faults.silent_nodes
    node = known.world.fleet.nodes[silent.index].name
    assert silent.until_s is not None
    expected = 0
    for each in known.holdings():
        start, end = max(each.from_s, silent.from_s), min(each.until_s, silent.until_s)
        is_there = each.slot.device.node_index == silent.index and start < end
        if is_there and not known.lost(each.slot.device.index):
            expected += ticks(exact_share(each.slot), max(0, end - start - SLACK_S))
    rows = books(seed).rows.filter(pl.col("node") == node)
    assert rows["unknown_ticks"].sum() >= expected


@each_seed
def test_bandwidth_bound_work_is_not_waste(seed: int) -> None:
    """Tensor pipes at rest beside busy memory: effective by the roofline, 0.648 / 0.80."""
    uids = workloads(seed, {"memory_bound"}, watched_s=3600) - shared(seed)
    rows = books(seed).rows.filter(pl.col("workload_uid").is_in(uids) & (pl.col("tier") == 1))
    effective = rows["effective_s"].sum() / rows["effective_known_s"].sum()
    assert effective == pytest.approx(0.81, abs=0.03)


@each_seed
def test_one_busy_sm_looks_busy_and_is_not(seed: int) -> None:
    uids = workloads(seed, {"one_sm"}, watched_s=3600) - shared(seed)
    rows = books(seed).rows.filter(pl.col("workload_uid").is_in(uids))
    whole = rows.filter(pl.col("instance_id").is_null())
    assert whole["apparent_s"].sum() / whole["apparent_known_s"].sum() > 0.95
    assert rows.select(leaf("used").sum()).item() == 0


@each_seed
def test_a_shared_board_is_stuck_only_while_one_of_its_holders_hangs(seed: int) -> None:
    stuck = stuck_spells(books(seed).rest)
    hanging = {
        each.slot.device.uuid
        for each in truth(seed).holdings()
        if each.run.request.behaviour in STUCK_BEHAVIOURS
    }
    assert set(stuck["device_uuid"]) - hanging == set()


@each_seed
def test_nobody_is_at_work_without_a_holder(seed: int) -> None:
    rows = books(seed).rows
    assert rows.filter("is_held")["workload_uid"].null_count() == 0


@each_seed
def test_free_time_is_unknown_until_the_first_holder_is_recorded_and_never_after(
    seed: int,
) -> None:
    rows, known = books(seed).rows, truth(seed)
    first_s = min(each.from_s for each in known.holdings())
    told = rows.filter(pl.col("reason") == "no_holder_recorded")
    boards = len(known.world.fleet.devices) - known.unconfigured_share()
    assert told["unknown_ticks"].sum() == ticks(boards, first_s)
    assert rows.filter(~pl.col("is_held") & pl.col("reason").is_null())["unknown_ticks"].sum() == 0
