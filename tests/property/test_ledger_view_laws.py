"""Laws of what reports ask of the ledger: summed over what they do not name, they say the same."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from analytics.efficiency import jobs
from analytics.inputs import SCHEMAS, empty
from analytics.reports.catalogue import REPORTS
from analytics.reports.model import Question, Report, ReportDefinition
from analytics.schemas.usage import ASKED, LEAVES, OVERLAYS
from dashboard.reports.ledger_compose import without
from dashboard.reports.ledger_sums import by_span
from steward.period import Period
from tests.support.analytics_frames import HOUR, NOON, ONE_HOUR, framed
from tests.support.ledger_rows import free, held, ledger
from tests.support.price_rows import price

Frames = dict[str, pl.DataFrame]
READERS = {name: each for name, each in REPORTS.items() if "ledger" in each.inputs}
ASKINGS = [(name, by) for name, each in READERS.items() for by in (None, *each.groupings)]
DAY = timedelta(days=1)
NAME = st.sampled_from(["a", "b", None])
HOURS = st.integers(0, 7).map(lambda sevenths: sevenths / 7)
PLACE = {
    "cluster": st.sampled_from(["c", "d"]),
    "node": st.sampled_from(["n1", "n2"]),
    "model": st.sampled_from(["H100", "T4", None]),
}
SEEN = st.fixed_dictionaries(
    {
        name: st.floats(0, 3600, allow_subnormal=False)
        for name in OVERLAYS
        if name.endswith("_s") and name != "idle_memory_byte_s"
    }
)
HELD = st.builds(
    lambda row, seen: held(**row, **(seen if row["tier"] else {})),
    st.fixed_dictionaries(
        {
            **PLACE,
            **dict.fromkeys(
                ("tenant_id", "workload_class", "workload_uid", "queue", "priority_class", "owner"),
                NAME,
            ),
            "reason": st.sampled_from([None, "unobserved", "busy_without_holder"]),
            "tier": st.sampled_from([None, 1, 2, 3, 4]),
            "used": HOURS,
            "idle": HOURS,
            "unknown": HOURS,
            "memory_peak_bytes": st.sampled_from([None, 0, 2**35]),
        }
    ),
    SEEN,
)
RESERVED = st.fixed_dictionaries(
    {**PLACE, "tenant_id": NAME, "queue": NAME, "reserved_unused": HOURS}
).map(lambda row: free(**row))
FREE = st.builds(
    lambda row, seen: free(**row, **seen),
    st.fixed_dictionaries(
        {
            **PLACE,
            "reason": st.sampled_from([None, "lost", "mig_geometry", "no_shape_fits"]),
            "free_idle": HOURS,
            "down": HOURS,
            "stranded": HOURS,
        }
    ),
    SEEN,
)
LEDGERS = st.lists(st.one_of(HELD, RESERVED, FREE), max_size=8).map(
    lambda rows: by_span(ledger(*rows))
)


def frames_of(definition: ReportDefinition, rows: pl.DataFrame) -> Frames:
    """Return the inputs of a report: this ledger, one price, and nothing else."""
    prices = framed("state.price", [price("4.00", gpu_model="H100")])
    known = {"ledger": rows, "state.price": prices}
    return {name: known.get(name, empty(name)) for name in definition.inputs}


def viewed(definition: ReportDefinition, frames: Frames, question: Question) -> Frames:
    """Return the same inputs with no more of the ledger than the report asks for."""
    rows = frames["ledger"]
    found = dict(frames)
    for name, columns in definition.asks(frames, question).items():
        found[name] = by_span(without(rows, columns))
    for name, more in definition.follows(found, question).items():
        found[name] = over(rows, more.spans, more.columns)
    return found


def over(rows: pl.DataFrame, spans: tuple[Period, ...], columns: tuple[str, ...]) -> pl.DataFrame:
    """Return a view of the ledger over spans of its own."""
    parts = [
        without(rows, columns)
        .filter(pl.col("started_at") >= each.from_at, pl.col("ended_at") <= each.until_at)
        .with_columns(
            started_at=pl.lit(each.from_at, dtype=SCHEMAS["ledger"]["started_at"]),
            ended_at=pl.lit(each.until_at, dtype=SCHEMAS["ledger"]["ended_at"]),
        )
        for each in spans
    ]
    return by_span(pl.concat(parts))


def near(value: float | str | None) -> object:
    """Return what a value may be: a float to twelve digits, all else as it is."""
    return pytest.approx(value, rel=1e-12) if isinstance(value, float) else value


def assert_same(found: Report, expected: Report) -> None:
    """Compare all that two reports say, floating sums to twelve digits."""
    assert found.findings == expected.findings
    for one, other in zip(found.figures, expected.figures, strict=True):
        assert one.key == other.key
        assert one.value == near(other.value), one.key
        assert one.coverage_ratio == near(other.coverage_ratio), one.key
    for table, told in zip(found.tables, expected.tables, strict=True):
        assert table.key == told.key
        assert_frame_equal(table.frame, told.frame, rel_tol=1e-12)


@pytest.mark.parametrize(("name", "by"), ASKINGS)
@given(rows=LEDGERS)
@settings(max_examples=10)
def test_what_is_not_asked_for_is_not_missed(name: str, by: str | None, rows: pl.DataFrame) -> None:
    definition, question = REPORTS[name], Question(period=ONE_HOUR, by=by)
    frames = frames_of(definition, rows)
    narrow = viewed(definition, frames, question)
    assert_same(definition.build(narrow, question), definition.build(frames, question))


@pytest.mark.parametrize(("name", "by"), ASKINGS)
def test_a_report_asks_for_what_the_ledger_has_and_ticks_come_always(
    name: str, by: str | None
) -> None:
    definition, question = REPORTS[name], Question(period=ONE_HOUR, by=by)
    frames = frames_of(definition, ledger(held(used=1), free(free_idle=1)))
    asked = definition.asks(frames, question)
    assert "ledger" in asked
    for view, columns in asked.items():
        assert set(columns) <= set(ASKED), view
        assert len(set(columns)) == len(columns), view


def spent_daily(costs: Mapping[str, list[float]]) -> pl.DataFrame:
    """Return the used GPU-hours of each workload day by day, on one node each."""
    return ledger(
        *[
            held(
                workload_uid=uid,
                node=uid,
                used=hours,
                started_at=MIDNIGHT + number * DAY,
                ended_at=MIDNIGHT + (number + 1) * DAY,
            )
            for uid, by_day in costs.items()
            for number, hours in enumerate(by_day)
        ]
    )


MIDNIGHT = NOON - 12 * HOUR


@pytest.mark.parametrize(
    ("last_day", "views"),
    [
        pytest.param([8.0, 8.0], set(), id="a usual day: who held is not asked"),
        pytest.param([8.0, 80.0], {"ledger.workload"}, id="a day that stands out"),
    ],
)
def test_who_held_is_asked_of_days_that_stand_out(last_day: list[float], views: set[str]) -> None:
    costs = {uid: [8.0] * 9 + [last] for uid, last in zip(("w1", "w2"), last_day, strict=True)}
    definition = REPORTS["cost"]
    question = Question(period=Period(MIDNIGHT, MIDNIGHT + 10 * DAY))
    frames = frames_of(definition, spent_daily(costs))
    narrow = viewed(definition, frames, question)
    assert {name for name in narrow if name.startswith("ledger.")} == views
    report = definition.build(narrow, question)
    assert_same(report, definition.build(frames, question))
    assert report.table("anomalies")["workload_uid"].to_list() == ["w2"] * len(views)


def test_nodes_are_asked_of_what_has_no_price() -> None:
    definition, question = REPORTS["cost"], Question(period=ONE_HOUR)
    rows = ledger(held(used=1), *[held(model="T4", node=node, used=1) for node in ("n1", "n2")])
    narrow = viewed(definition, frames_of(definition, rows), question)
    assert "node" not in narrow["ledger"].columns
    unpriced = definition.build(narrow, question).table("unpriced")
    assert unpriced.select("model", "node_count").rows() == [("T4", 2)]


@given(LEDGERS, st.integers(0, 99))
@settings(max_examples=100)
def test_a_job_is_the_same_in_one_row_or_in_several(rows: pl.DataFrame, seed: int) -> None:
    devices = pl.DataFrame(
        {"cluster": ["c", "d"], "model": ["H100", "T4"], "memory_total_bytes": [2**36, 2**35]}
    )
    ticks = ("wall_ticks", *LEAVES)
    half = rows.with_columns(pl.col(*ticks) // 2, pl.col(OVERLAYS) / 2)
    rest = rows.with_columns(
        *[pl.col(name) - pl.col(name) // 2 for name in LEAVES], pl.col(OVERLAYS) / 2
    ).with_columns(wall_ticks=pl.sum_horizontal(LEAVES))
    parted = pl.concat([half, rest]).sample(fraction=1.0, shuffle=True, seed=seed)
    assert_frame_equal(jobs(parted, devices), jobs(rows, devices), rel_tol=1e-12)
