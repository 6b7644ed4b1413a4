"""Laws of the ledger: nothing is lost, order does not matter, parts add up to the whole."""

from __future__ import annotations

import os
from datetime import datetime

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from analytics.bookkeeping import BOOK_INPUTS, Books, keep_books
from analytics.bookkeeping.lives import home_spans
from analytics.bookkeeping.material import material
from analytics.schemas.usage import KEYS, LEAVES
from steward.period import Period
from steward.units import TICKS_PER_SECOND
from tests.support.analytics_frames import HOUR, MINUTE, NOON, Row, frames, rows
from tests.support.books import shapes

ROUNDED = {
    "used_measured_ticks",
    "used_estimated_ticks",
    "ineffective_ticks",
    "reserved_unused_ticks",
    "free_idle_ticks",
}
MOST_ROUNDED_TICKS = 64
"""One for each slice that a border cuts, and each queue."""
ROUNDING = 1e-4
"""Guarantees are rounded to parts of a board."""
THREE_HOURS = Period(NOON, NOON + 3 * HOUR)
EXACT = ["wall_ticks", *LEAVES]
pytestmark = pytest.mark.timeout(900)
EXAMPLES = settings(
    max_examples=200 if os.environ.get("CI") else 40,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
"""A ledger takes a tenth of a second: a person waits for fewer."""
DEVICES = st.sampled_from(["GPU-a", "GPU-b", "GPU-c"])
INSTANCES = st.sampled_from([None, None, 1, 2])
STEP = st.integers(-90, 270)
SHARE = st.sampled_from([0.0, 0.1, 0.25, 1 / 7, 3 / 7, 1 / 3, 1.0, None])
RATIO = st.sampled_from([None, 0.0, 0.005, 0.3, 0.4, 1.0, 1.7])
COUNT = st.sampled_from([None, 0.0, 0.5, 1.0, 2.0, 1 / 3])


def at(step: float) -> datetime:
    return NOON + step * MINUTE


@st.composite
def readings(draw: st.DrawFn) -> list[Row]:
    """Draw runs of regular readings with gaps, and single ones."""
    told: list[Row] = []
    for _ in range(draw(st.integers(0, 4))):
        device, instance = draw(DEVICES), draw(INSTANCES)
        start, every = draw(STEP), draw(st.sampled_from([0.5, 1, 7, 20]))
        kept = draw(st.lists(st.booleans(), min_size=1, max_size=30))
        value = {
            name: draw(RATIO)
            for name in ("busy_ratio", "sm_active_ratio", "tensor_active_ratio",
                         "dram_active_ratio", "graphics_active_ratio")
        }  # fmt: skip
        told += [
            {
                "device_uuid": device,
                "instance_id": instance,
                "sampled_at": at(start + number * every),
                "memory_used_bytes": number,
                **value,
            }
            for number, is_kept in enumerate(kept)
            if is_kept
        ]
    return told


ALLOCATION = st.builds(
    lambda device, instance, start, length, share, tenant, reason, replica: {
        "device_uuid": device,
        "instance_id": instance,
        "started_at": at(start),
        "ended_at": None if length is None else at(start + length),
        "gpu_share_ratio": share,
        "tenant_id": tenant,
        "workload_uid": f"w{tenant}",
        "pod": None if reason else f"{device}-{start}",
        "unheld_reason": reason,
        "replica": replica,
    },
    DEVICES,
    INSTANCES,
    STEP,
    st.one_of(st.none(), st.integers(1, 150)),
    SHARE,
    st.sampled_from(["a", "b", None]),
    st.sampled_from([None, None, None, "busy_without_holder", "unobserved"]),
    st.sampled_from([None, 0, 1]),
)
EVENT = st.builds(
    lambda device, kind, step: {"device_uuid": device, "kind": kind, "occurred_at": at(step)},
    DEVICES,
    st.sampled_from(["lost", "returned", "xid"]),
    STEP,
)
STATE = st.builds(
    lambda device, instance, node, step, share, is_present: {
        "device_uuid": device,
        "instance_id": instance,
        "node": node,
        "observed_at": at(step),
        "sm_share_ratio": share,
        "is_present": is_present,
    },
    DEVICES,
    INSTANCES,
    st.sampled_from(["n1", "n1", "n2"]),
    STEP,
    SHARE,
    st.booleans(),
)
NODE = st.builds(
    lambda node, step, schedulable, cpu, is_present: {
        "node": node,
        "observed_at": at(step),
        "is_schedulable": schedulable,
        "cpu_milli": cpu,
        "is_present": is_present,
    },
    st.sampled_from(["n1", "n2"]),
    STEP,
    st.sampled_from([True, True, False, None]),
    st.sampled_from([None, 0, 9_000, 96_000]),
    st.sampled_from([True, True, False]),
)
QUOTA = st.builds(
    lambda queue, model, step, guaranteed, used, borrowed: {
        "queue": queue,
        "tenant_id": queue,
        "gpu_model": model,
        "observed_at": at(step),
        "guaranteed_gpu_count": guaranteed,
        "used_gpu_count": used,
        "borrowed_gpu_count": borrowed,
    },
    st.sampled_from(["qa", "qb"]),
    st.sampled_from(["H100", "A100", None]),
    STEP,
    COUNT,
    COUNT,
    COUNT,
)
WANTED = shapes({"cpu_milli": 4_000, "gpu_milli": 500}, {"gpu_count": 2, "gpu_models": "H100"})


@st.composite
def worlds(draw: st.DrawFn) -> dict[str, pl.DataFrame]:
    born = draw(st.integers(-60, 100))
    devices: list[Row] = [
        {"observed_at": NOON - 2 * HOUR},
        {"device_uuid": "GPU-b", "observed_at": at(born)},
        *draw(st.lists(STATE, max_size=5)),
    ]
    took = rows("allocation_history", *draw(st.lists(ALLOCATION, max_size=8)))
    recorded = [at(draw(st.integers(-90, 60))), *took["started_at"]]
    asked: list[Row] = [{"workload_uid": "wa"}, {"workload_uid": "wb", "gpu_count": 3}]
    told = frames(
        node_history=rows("node_history", {}, {"node": "n2"}, *draw(st.lists(NODE, max_size=4))),
        device_history=rows("device_history", *devices),
        device_event_history=rows("device_event_history", *draw(st.lists(EVENT, max_size=4))),
        allocation_history=took,
        first_allocation=rows("first_allocation", {"started_at": min(recorded)}),
        utilization_sample=rows("utilization_sample", *draw(readings())),
        workload_current=rows("workload_current", *asked),
        quota_history=rows("quota_history", *draw(st.lists(QUOTA, max_size=5))),
    )
    return {name: told[name] for name in BOOK_INPUTS}


def loaded(world: dict[str, pl.DataFrame], period: Period) -> dict[str, pl.DataFrame]:
    """Return of a world what the queries of a period load."""
    from_at, until_at = period.from_at, period.until_at
    sampled, started = pl.col("sampled_at"), pl.col("started_at")
    near = (sampled >= from_at - HOUR) & (sampled < until_at + HOUR)
    touches = (started < until_at) & (pl.col("ended_at").is_null() | (pl.col("ended_at") > from_at))
    keys = {
        "node_history": ["cluster", "node"],
        "device_history": ["cluster", "device_uuid", "instance_id"],
        "quota_history": ["cluster", "queue", "gpu_model"],
    }
    states = {name: _states(world[name], names, period) for name, names in keys.items()}
    sighted = world["device_history"].filter("is_present")
    seen = _states(sighted, keys["device_history"], period)
    states["device_history"] = pl.concat([states["device_history"], seen]).unique()
    return {
        **world,
        **states,
        "utilization_sample": world["utilization_sample"].filter(near),
        "allocation_history": world["allocation_history"].filter(touches),
        "first_allocation": world["first_allocation"].filter(started < until_at),
    }


def _states(told: pl.DataFrame, keys: list[str], period: Period) -> pl.DataFrame:
    """Return states in the period, and all those of the last instant before it."""
    at_ = pl.col("observed_at")
    before = told.filter(at_ < period.from_at).filter(at_ == at_.max().over(keys))
    inside = told.filter((at_ >= period.from_at) & (at_ < period.until_at))
    return pl.concat([before, inside])


def built(
    world: dict[str, pl.DataFrame], period: Period = THREE_HOURS, *borders: datetime
) -> Books:
    return keep_books(world, period, borders=borders, shapes=WANTED)


def lives(world: dict[str, pl.DataFrame]) -> dict[str, int]:
    """Return the minutes of the three hours in which each device existed, told minute by minute.

    That is from when it was first told of, but not while the node it is on was last told as
    removed, unless the device was seen since.
    """
    stock = material(world)
    homes = home_spans(stock, THREE_HOURS).partition_by("device_uuid", as_dict=True)
    nodes = {
        node: told.select("observed_at", "is_present").rows()
        for (node,), told in stock.nodes.sort("observed_at")
        .partition_by("node", as_dict=True)
        .items()
    }
    found: dict[str, int] = {}
    for (device,), told in stock.devices.partition_by("device_uuid", as_dict=True).items():
        stays = homes[device,].rows(named=True)
        states = told.select("observed_at", "is_present").rows()
        minutes = [at(step) for step in range(180)]
        found[device] = sum(_exists(now, stays, states, nodes) for now in minutes)
    return found


def _exists(
    now: datetime,
    stays: list[dict[str, object]],
    states: list[tuple[datetime, bool]],
    nodes: dict[object, list[tuple[datetime, bool]]],
) -> bool:
    if now < min(observed_at for observed_at, _ in states):
        return False
    now_us = int(now.timestamp()) * 1_000_000
    (node,) = [stay["node"] for stay in stays if stay["start_us"] <= now_us < stay["end_us"]]
    said = [state for state in nodes[node] if state[0] <= now]
    if not said or said[-1][1]:
        return True
    removed_at, _ = said[-1]
    return any(removed_at < seen_at <= now for seen_at, is_present in states if is_present)


def guaranteed_ticks(world: dict[str, pl.DataFrame]) -> float:
    """Return what all queues were guaranteed at most, over the whole period."""
    counts = (
        world["quota_history"]
        .group_by("queue", "gpu_model")
        .agg(pl.col("guaranteed_gpu_count").fill_null(0).max())
    )
    most = float(counts["guaranteed_gpu_count"].sum())
    return THREE_HOURS.length_s * most * TICKS_PER_SECOND * (1 + ROUNDING)


def assert_use_is_within_what_is_held(found: pl.DataFrame) -> None:
    held = found.filter("is_held")
    used = held["used_measured_ticks"].sum() + held["used_estimated_ticks"].sum()
    assert used <= held["wall_ticks"].sum() <= found["wall_ticks"].sum()
    allocated = ["used_measured_ticks", "used_estimated_ticks", "ineffective_ticks", "idle_ticks"]
    assert found.filter(~pl.col("is_held")).select(pl.sum_horizontal(allocated).sum()).item() == 0
    assert found.filter(pl.col("effective_s") > pl.col("effective_known_s") + 1e-6).is_empty()


@given(worlds())
@EXAMPLES
def test_every_tick_is_in_exactly_one_leaf(world: dict[str, pl.DataFrame]) -> None:
    found = built(world, THREE_HOURS, NOON + HOUR).rows
    told = {device: minutes * 60 * TICKS_PER_SECOND for device, minutes in lives(world).items()}
    summed = found.group_by("device_uuid").agg(pl.col("wall_ticks").sum())
    assert dict(summed.rows()) == {device: ticks for device, ticks in told.items() if ticks}
    assert (found.select(pl.sum_horizontal(LEAVES)).to_series() == found["wall_ticks"]).all()
    assert found.select((pl.min_horizontal(EXACT) >= 0).all()).item()
    assert_use_is_within_what_is_held(found)
    reserved = found.filter(pl.col("reserved_unused_ticks") > 0)
    assert reserved["queue"].null_count() == 0
    assert reserved["reserved_unused_ticks"].sum() <= guaranteed_ticks(world)


def assert_only_rounding_moved(apart: Books, whole: Books) -> None:
    """Without the border all is the same, but for what is rounded once per slice."""
    one, other = (
        each.rows.select(pl.col(EXACT).sum()).row(0, named=True) for each in (apart, whole)
    )
    moved = {name for name in EXACT if one[name] != other[name]}
    assert moved <= ROUNDED
    assert all(abs(one[name] - other[name]) <= MOST_ROUNDED_TICKS for name in moved)


@given(worlds(), st.integers(1, 179))
@EXAMPLES
def test_both_sides_of_a_border_are_the_whole_to_the_tick(
    world: dict[str, pl.DataFrame], cut: int
) -> None:
    middle = at(cut)
    sides = [Period(NOON, middle), Period(middle, THREE_HOURS.until_at)]
    parts = [built(loaded(world, side), side) for side in sides]
    all_of_it = loaded(world, THREE_HOURS)
    whole = built(all_of_it, THREE_HOURS, middle)
    keys = ["started_at", "ended_at", "device_uuid", "instance_id", *KEYS]
    wanted = [*keys, *EXACT, "memory_peak_bytes"]
    both = pl.concat([part.rows for part in parts]).select(wanted)
    assert_frame_equal(
        both.sort(keys, nulls_last=True), whole.rows.select(wanted).sort(keys, nulls_last=True)
    )
    assert_frame_equal(pl.concat([part.rest for part in parts]), whole.rest, check_row_order=False)
    assert_only_rounding_moved(whole, built(all_of_it))


@given(worlds(), st.randoms(use_true_random=False))
@EXAMPLES
def test_order_and_repeats_do_not_matter(world: dict[str, pl.DataFrame], random: object) -> None:
    doubled = {
        name: pl.concat([frame, frame.head(3)]).sample(
            fraction=1.0,
            shuffle=True,
            seed=random.randint(0, 99),  # type: ignore[attr-defined]  # random.Random
        )
        for name, frame in world.items()
    }
    one, other = built(world, THREE_HOURS, NOON + HOUR), built(doubled, THREE_HOURS, NOON + HOUR)
    exact = [name for name in one.rows.columns if not name.endswith("_s")]
    assert_frame_equal(one.rows.select(exact), other.rows.select(exact))
    assert_frame_equal(one.rest, other.rest)
    assert_frame_equal(one.caveats, other.caveats)


@given(worlds())
@EXAMPLES
def test_null_is_never_idle_nor_used(world: dict[str, pl.DataFrame]) -> None:
    samples = world["utilization_sample"]
    ratios = [name for name in samples.columns if name.endswith("_ratio")]
    silent = samples.with_columns(pl.lit(None, dtype=pl.Float32).alias(name) for name in ratios)
    found = built({**world, "utilization_sample": silent})
    spoken = ["used_measured_ticks", "used_estimated_ticks", "ineffective_ticks", "idle_ticks"]
    assert found.rows.select(pl.sum_horizontal(spoken).sum()).item() == 0
    assert found.rest.is_empty()
