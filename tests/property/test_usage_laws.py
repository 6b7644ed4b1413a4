"""Laws of what is read from the ledger: nothing is lost, order does not matter, parts add up."""

from __future__ import annotations

from datetime import timedelta
from fractions import Fraction
from random import Random

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from analytics import decisions, efficiency
from analytics.reports.grouping import GROUPINGS
from analytics.schemas.usage import LEAVES, MEANS
from analytics.spells import IDLE_SPELL_MIN_S, idle_spells, stuck_spells
from analytics.stakes import Charged
from analytics.usage import TREE, totals
from analytics.utilization import COLUMN_HOURS, LEAF_HOURS, leaves, means
from tests.support.analytics_frames import MINUTE, NOON, framed
from tests.support.ledger_rows import ledger

NAME = st.sampled_from(["a", "b", None])
TICKS = st.one_of(st.just(0), st.integers(0, 10**18))
OTHER_SUMS = ("observed_s", "busy_source_s", "graphics_source_s", "stuck_s", "idle_memory_byte_s")
KEYS = ("cluster", "model", "tenant_id", "workload_uid", "owner")


@st.composite
def ledger_row(draw: st.DrawFn) -> dict[str, object]:
    ticks = {leaf: draw(TICKS) for leaf in LEAVES}
    overlays = Random(draw(st.integers(0, 2**32)))  # noqa: S311  # not for secrets
    known = {f"{mean}_known_s": overlays.choice([0.0, overlays.uniform(0, 1e6)]) for mean in MEANS}
    integrals = {f"{mean}_s": overlays.random() * known[f"{mean}_known_s"] for mean in MEANS}
    return {
        "started_at": NOON,
        "ended_at": NOON + 60 * MINUTE,
        "cluster": draw(st.sampled_from(["c", "d"])),
        "node": draw(st.sampled_from(["n1", "n2"])),
        "model": draw(NAME),
        "is_held": draw(st.booleans()),
        "tenant_id": draw(NAME),
        "workload_class": draw(NAME),
        "workload_uid": draw(NAME),
        "queue": draw(NAME),
        "priority_class": draw(NAME),
        "owner": draw(NAME),
        "reason": draw(st.sampled_from([None, "unobserved", "busy_without_holder"])),
        "tier": draw(st.sampled_from([None, 1, 2, 3, 4])),
        "wall_ticks": sum(ticks.values()),
        **ticks,
        **known,
        **integrals,
        **{name: overlays.choice([0.0, overlays.uniform(0, 1e6)]) for name in OTHER_SUMS},
        "memory_peak_bytes": draw(st.one_of(st.none(), st.integers(0, 2**40))),
    }


LEDGERS = st.lists(ledger_row(), max_size=4).map(lambda rows: ledger(*rows))


@st.composite
def rest_row(draw: st.DrawFn) -> dict[str, object]:
    start, length = draw(st.integers(0, 60)), draw(st.integers(1, 25))
    return {
        "cluster": "c",
        "node": "n1",
        "device_uuid": draw(st.sampled_from(["GPU-a", "GPU-b"])),
        "tenant_id": draw(NAME),
        "workload_uid": draw(NAME),
        "is_idle": draw(st.sampled_from([True, True, False, None])),
        "is_stuck": draw(st.sampled_from([True, False, None])),
        "started_at": NOON + start * MINUTE,
        "ended_at": NOON + (start + length) * MINUTE,
        "gpu_share_ratio": draw(st.sampled_from([1.0, 0.5, 1 / 7])),
        "memory_first_bytes": draw(st.sampled_from([None, 0, 2**21])),
        "memory_last_bytes": draw(st.sampled_from([None, 0, 2**21])),
    }


RESTS = st.lists(rest_row(), max_size=14).map(lambda rows: framed("rest", rows))


def shuffled(frame: pl.DataFrame, random: Random) -> pl.DataFrame:
    return frame.sample(fraction=1.0, shuffle=True, seed=random.randint(0, 99))


@given(LEDGERS)
@settings(max_examples=200)
def test_leaves_add_up_to_the_wall(rows: pl.DataFrame) -> None:
    (found,) = leaves(rows).to_dicts()
    wall = found["wall_gpu_hours"]
    assert sum(found[name] for name in LEAF_HOURS) == pytest.approx(wall, rel=1e-9)
    assert sum(found[name] for name in COLUMN_HOURS) == pytest.approx(wall, rel=1e-9)
    exact = totals(rows).row(0, named=True)
    assert sum(exact[name] for name in LEAVES) == exact["wall_ticks"]
    assert sorted(name for parts in TREE.values() for name in parts) == sorted(LEAVES)


@given(LEDGERS, st.sampled_from(KEYS), st.sampled_from(KEYS))
@settings(max_examples=200)
def test_two_keys_roll_up_to_one(rows: pl.DataFrame, first: str, second: str) -> None:
    fine = totals(rows, *dict.fromkeys((first, second)))
    sums = [pl.col("wall_ticks", *LEAVES).cast(pl.Int128).sum()]
    rolled = fine.group_by(first).agg(sums).sort(first, nulls_last=True)
    assert_frame_equal(rolled, totals(rows, first).select(first, "wall_ticks", *LEAVES))


@given(LEDGERS, st.sampled_from([each for each in GROUPINGS if each != "capability"]))
@settings(max_examples=200)
def test_groups_of_any_word_add_up_to_what_it_divides(rows: pl.DataFrame, word: str) -> None:
    grouping = GROUPINGS[word]
    scoped = grouping.scope(rows)
    found = leaves(scoped, *grouping.keys)
    (whole,) = leaves(scoped).to_dicts()
    for name in ("wall_gpu_hours", *LEAF_HOURS):
        assert float(found[name].sum()) == pytest.approx(whole[name], rel=1e-9)


@given(LEDGERS, st.randoms(use_true_random=False), st.sampled_from(KEYS))
@settings(max_examples=200)
def test_order_of_rows_does_not_matter(rows: pl.DataFrame, random: Random, key: str) -> None:
    other = shuffled(rows, random)
    assert_frame_equal(leaves(rows, key), leaves(other, key), rel_tol=1e-9)
    assert_frame_equal(means(rows, key), means(other, key), rel_tol=1e-9)
    boards = pl.DataFrame(
        schema={"cluster": pl.String, "model": pl.String, "memory_total_bytes": pl.Int64}
    )
    assert_frame_equal(efficiency.jobs(rows, boards), efficiency.jobs(other, boards), rel_tol=1e-9)


@given(LEDGERS, st.sampled_from(["a", "b"]))
@settings(max_examples=200)
def test_filtering_last_changes_no_number_that_is_kept(rows: pl.DataFrame, kept: str) -> None:
    is_kept = pl.col("tenant_id") == kept
    for measure in (leaves, means):
        last = measure(rows, "tenant_id").filter(is_kept)
        first = measure(rows.filter(is_kept), "tenant_id")
        assert_frame_equal(last, first, rel_tol=1e-9)


@given(LEDGERS)
@settings(max_examples=200)
def test_shares_and_means_stay_within_bounds(rows: pl.DataFrame) -> None:
    found = [*leaves(rows, "model").iter_columns(), *means(rows, "model").iter_columns()]
    for column in found:
        if column.name.endswith("_ratio") and column.name != "coverage_ratio":
            assert column.drop_nulls().is_between(0, 1 + 1e-9).all()


@given(LEDGERS)
@settings(max_examples=200)
def test_unknown_use_never_counts_as_idle_or_used(rows: pl.DataFrame) -> None:
    silent = rows.with_columns(
        pl.lit(0, dtype=pl.Int64).alias(name) for name in LEAVES if name != "unknown_ticks"
    ).with_columns(wall_ticks="unknown_ticks")
    (found,) = leaves(silent).to_dicts()
    assert found["utilization_ratio"] is None
    assert found["used_gpu_hours"] == found["allocated_idle_gpu_hours"] == 0


@given(RESTS, st.randoms(use_true_random=False))
@settings(max_examples=200)
def test_spells_do_not_depend_on_the_order_of_stretches(rest: pl.DataFrame, random: Random) -> None:
    distinct = rest.unique(["device_uuid", "tenant_id", "workload_uid", "started_at"])
    for find in (idle_spells, stuck_spells):
        assert_frame_equal(find(distinct), find(shuffled(distinct, random)), rel_tol=1e-9)


@given(RESTS, st.integers(1, 80))
@settings(max_examples=200)
def test_spells_do_not_depend_on_where_stretches_are_cut(rest: pl.DataFrame, minute: int) -> None:
    at = pl.lit(NOON + minute * MINUTE)
    distinct = _apart(rest).with_columns(
        memory_first_bytes=pl.lit(0, dtype=pl.Int64), memory_last_bytes=pl.lit(0, dtype=pl.Int64)
    )
    is_cut = (pl.col("started_at") < at) & (pl.col("ended_at") > at)
    pieces = pl.concat(
        [
            distinct.filter(~is_cut),
            distinct.filter(is_cut).with_columns(ended_at=at.cast(distinct.schema["ended_at"])),
            distinct.filter(is_cut).with_columns(started_at=at.cast(distinct.schema["ended_at"])),
        ]
    )
    assert_frame_equal(idle_spells(pieces), idle_spells(distinct), rel_tol=1e-9)


@given(RESTS)
@settings(max_examples=200)
def test_a_spell_is_long_and_holds_no_more_than_was_at_rest(rest: pl.DataFrame) -> None:
    found = idle_spells(rest)
    assert (found["length_s"] >= IDLE_SPELL_MIN_S).all()
    length = (pl.col("ended_at") - pl.col("started_at")) / timedelta(hours=1)
    most = rest.filter("is_idle").select((length * pl.col("gpu_share_ratio")).sum()).item()
    assert float(found["gpu_hours"].sum()) <= most + 1e-9


@given(LEDGERS, st.integers(0, 10**9))
@settings(max_examples=200)
def test_money_at_stake_is_ticks_times_price(rows: pl.DataFrame, rate: int) -> None:
    priced = Charged(
        rows=rows.with_columns(
            rate_micros=pl.lit(rate, dtype=pl.Int64), currency=pl.lit("USD"), job=pl.lit("j")
        ),
        factors={"USD": Fraction(1)},
    )
    for one in (decisions.lend(priced), *decisions.unstrand(priced)):
        expected = one.stake.ticks * rate if one.stake.ticks else (one.stake.parts or 0)
        assert (one.stake.parts or 0) == expected
        assert one.stake.priced_ticks == one.stake.ticks


def _apart(rest: pl.DataFrame) -> pl.DataFrame:
    """Return stretches of which no two of one device overlap: the first given stays."""
    kept: list[dict[str, object]] = []
    for row in rest.to_dicts():
        same = [one for one in kept if one["device_uuid"] == row["device_uuid"]]
        if all(one["ended_at"] <= row["started_at"] or one["started_at"] >= row["ended_at"]  # type: ignore[operator]  # instants
               for one in same):  # fmt: skip
            kept.append(row)
    return pl.DataFrame(kept, schema=rest.schema)
