"""The pieces a composed ledger is made of: hours, chunks, portions, sums, clusters."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import polars as pl
import pytest

from analytics.schemas.usage import LEAVES, OVERLAYS, SCHEMAS
from dashboard.reports import ledger_readings
from dashboard.reports.cluster import of_cluster, refuse_unknown
from dashboard.reports.hours import ceil_hour, floor_day, floor_hour, runs
from dashboard.reports.ledger_compose import portions, spans
from dashboard.reports.ledger_days import StoredBuild, day_build_id
from dashboard.reports.ledger_readings import chunks
from dashboard.reports.ledger_store import input_counts_of
from dashboard.reports.ledger_sums import LARGEST_TICKS, by_span, narrowed
from steward.errors import UsageError
from steward.period import Period
from tests.support.ledger_rows import free, held, ledger
from tests.support.report_builders import FrameReader

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
MIDNIGHT = datetime(2026, 5, 4, tzinfo=UTC)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
TICK = timedelta(microseconds=1)


@pytest.mark.parametrize(
    ("at", "floor", "ceil"),
    [
        pytest.param(NOON - TICK, NOON - HOUR, NOON, id="a tick before"),
        pytest.param(NOON, NOON, NOON, id="exactly"),
        pytest.param(NOON + TICK, NOON, NOON + HOUR, id="a tick after"),
        pytest.param(
            NOON.astimezone(timezone(timedelta(hours=5, minutes=30))), NOON, NOON,
            id="in a zone of half hours",
        ),
    ],
)  # fmt: skip
def test_whole_hours(at: datetime, floor: datetime, ceil: datetime) -> None:
    assert (floor_hour(at), ceil_hour(at), floor_day(at)) == (floor, ceil, MIDNIGHT)


@pytest.mark.parametrize(
    ("numbers", "found"),
    [
        pytest.param([], [], id="none"),
        pytest.param([3], [(3, 4)], id="one"),
        pytest.param([5, 3, 4], [(3, 6)], id="in any order"),
        pytest.param([1, 3, 4], [(1, 2), (3, 5)], id="with a gap"),
    ],
)
def test_runs(numbers: list[int], found: list[tuple[int, int]]) -> None:
    hours = runs([MIDNIGHT + number * HOUR for number in numbers])
    assert hours == [Period(MIDNIGHT + a * HOUR, MIDNIGHT + b * HOUR) for a, b in found]


@pytest.mark.parametrize(
    ("cuts", "count"),
    [
        pytest.param([], 1, id="none"),
        pytest.param([NOON], 1, id="at the start"),
        pytest.param([NOON + DAY], 1, id="at the end"),
        pytest.param([NOON - TICK, NOON + DAY + TICK], 1, id="outside"),
        pytest.param([NOON + HOUR, NOON + TICK], 3, id="in any order"),
        pytest.param([NOON + HOUR, NOON + HOUR], 2, id="twice the same"),
        pytest.param([(NOON + HOUR).astimezone(timezone(8 * HOUR))], 2, id="in another zone"),
    ],
)
def test_spans_are_disjoint_parts_of_the_period(cuts: list[datetime], count: int) -> None:
    parts = spans(Period(NOON, NOON + DAY), cuts)
    assert len(parts) == count
    assert [part.from_at for part in parts[1:]] == [part.until_at for part in parts[:-1]]
    assert (parts[0].from_at, parts[-1].until_at) == (NOON, NOON + DAY)


@pytest.mark.parametrize(
    ("most", "hours"),
    [
        pytest.param(1, [12, 1, 1, 1, 9], id="each hour is too much"),
        pytest.param(59, [12, 1, 1, 10], id="one less than two hours"),
        pytest.param(60, [12, 2, 10], id="exactly two hours"),
        pytest.param(1000, [12, 12], id="a day is too little"),
    ],
)
def test_chunks_end_at_midnight_or_before_they_hold_too_much(
    monkeypatch: pytest.MonkeyPatch, most: int, hours: list[int]
) -> None:
    monkeypatch.setattr(ledger_readings, "CHUNK_READING_COUNT", most)
    counts = {MIDNIGHT + DAY + number * HOUR: 30 for number in range(3)}
    found = list(chunks([Period(NOON, NOON + DAY)], counts))
    assert [chunk.length // HOUR for chunk in found] == hours


def test_a_chunk_of_a_part_of_an_hour() -> None:
    part = Period(NOON + TICK, NOON + HOUR / 2)
    assert list(chunks([part], {})) == [part]


@pytest.mark.parametrize(
    ("days", "lengths"),
    [
        pytest.param([1], [[1]], id="one day"),
        pytest.param([31], [[31]], id="exactly as much"),
        pytest.param([32], [[31], [1]], id="one day more"),
        pytest.param([30, 1, 1], [[30, 1], [1]], id="of several pieces"),
    ],
)
def test_portions(days: list[int], lengths: list[list[int]]) -> None:
    pieces, at = [], MIDNIGHT
    for count in days:
        piece = Period(at, at + count * DAY)
        pieces.append((piece, piece))
        at = piece.until_at
    found = list(portions(pieces, 31 * DAY))
    assert [[piece.length // DAY for piece, _span in portion] for portion in found] == lengths


def test_rows_of_one_span_and_key_are_one() -> None:
    rows = by_span(ledger(held(used=1, idle=2), held(used=3), free(free_idle=4)))
    assert rows.schema == SCHEMAS["ledger"]
    assert rows.select("is_held", "wall_ticks").rows() == [
        (False, 4 * 18_144_000_000_000),
        (True, 6 * 18_144_000_000_000),
    ]


@pytest.mark.parametrize(
    ("ticks", "row_count"),
    [
        pytest.param(0, 1, id="zero"),
        pytest.param(LARGEST_TICKS - 1, 1, id="just inside"),
        pytest.param(LARGEST_TICKS, 2, id="exactly at the limit"),
        pytest.param(5 * LARGEST_TICKS + 7, 6, id="far beyond"),
    ],
)
def test_a_sum_beyond_64_bits_is_shared_out_exactly(ticks: int, row_count: int) -> None:
    one = ledger(held(stuck_s=2.5)).with_columns(
        pl.lit(ticks, dtype=pl.Int128).alias("wall_ticks"),
        pl.lit(ticks // 3, dtype=pl.Int128).alias("idle_ticks"),
        pl.lit(ticks - ticks // 3, dtype=pl.Int128).alias("unknown_ticks"),
    )
    rows = narrowed(one)
    assert rows.height == row_count
    assert rows.schema == SCHEMAS["ledger"]
    assert rows["idle_ticks"].cast(pl.Int128).sum() == ticks // 3
    assert rows["wall_ticks"].cast(pl.Int128).sum() == ticks
    assert (rows.select(pl.sum_horizontal(LEAVES)).to_series() == rows["wall_ticks"]).all()
    assert rows.select(pl.col(OVERLAYS).sum()).equals(one.select(pl.col(OVERLAYS).sum()))


def test_a_day_lacks_its_build_while_an_hour_does() -> None:
    hours = {
        MIDNIGHT + number * HOUR: StoredBuild(build_id=f"h{number}", built_at=NOON, build_count=1)
        for number in range(24)
    }
    whole = day_build_id(MIDNIGHT, hours)
    changed = hours | {NOON: StoredBuild(build_id="other", built_at=NOON, build_count=2)}
    assert whole is not None
    assert day_build_id(MIDNIGHT, changed) not in {whole, None}
    del hours[NOON]
    assert day_build_id(MIDNIGHT, hours) is None


@pytest.mark.parametrize(
    ("build_id", "counts"),
    [
        pytest.param("2026050412.86400.0.ab.0.cd", (86_400, 0), id="told"),
        pytest.param("2026050412.86400.0.ab", None, id="too short"),
        pytest.param("2026050412.x.0.ab.0.cd", None, id="no number"),
    ],
)
def test_what_was_stored_is_read_from_the_id(build_id: str, counts: tuple[int, int] | None) -> None:
    assert input_counts_of(build_id) == counts


DEVICES = pl.DataFrame({"cluster": ["east", "west"], "device_key": [1, 2]})


def test_one_cluster_is_kept_with_what_belongs_to_all() -> None:
    rows = {
        "device_history": DEVICES,
        "utilization_sample": pl.DataFrame({"device_key": [1, 2, 2, 3]}),
        "state.price": pl.DataFrame({"cluster": ["east", None, "west"], "price_id": [1, 2, 3]}),
        "state.budget": pl.DataFrame({"budget_id": [1]}),
    }
    kept = of_cluster(rows, "west")
    assert kept["device_history"].rows() == [("west", 2)]
    assert kept["utilization_sample"]["device_key"].to_list() == [2, 2]
    assert kept["state.price"]["price_id"].to_list() == [2, 3]
    assert kept["state.budget"].height == 1


def test_an_unknown_cluster_names_the_known_ones() -> None:
    reader = FrameReader({"known_cluster": pl.DataFrame({"cluster": ["east", "west"]})})
    refuse_unknown(reader, "east")
    with pytest.raises(UsageError) as caught:
        refuse_unknown(reader, "north")
    assert caught.value.hint == "the clusters are east, west"
