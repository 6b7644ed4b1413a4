"""The ledger of a simulated fleet, read through the named queries: nothing is lost."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import duckdb
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from analytics.bookkeeping import BOOK_INPUTS, Books, hour_borders, keep_books
from analytics.bookkeeping.shapes_now import learnt_shapes
from analytics.inputs import conform
from analytics.schemas.usage import KEYS, LEAVES
from analytics.usage import totals
from steward.period import Period
from steward.units import TICKS_PER_GPU_HOUR, TICKS_PER_MICROSECOND
from tests.support.simulated_fleets import batches, parameters

SQL = Path(__file__).parents[2] / "sql"
FLEET = parameters(days=1, node_count=12, cadence_s=300)
DAY = Period(FLEET.from_at, FLEET.until_at)


class Stored:
    """A fleet in the warehouse's own tables, and what the queries say of it."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Create the tables and store every batch."""
        self._connection = connection
        for path in sorted((SQL / "migrations" / "warehouse").glob("*.sql")):
            for statement in duckdb.extract_statements(path.read_text()):
                connection.sql(statement)
        for batch in batches(FLEET):
            connection.register("batch_rows", batch.rows)
            connection.sql(f"insert into {batch.table} by name select * from batch_rows")  # noqa: S608  # names from the collector
            connection.unregister("batch_rows")

    def frames(self, period: Period) -> dict[str, pl.DataFrame]:
        ends: dict[str, datetime] = {"from_at": period.from_at, "until_at": period.until_at}
        return {
            name: pl.DataFrame(
                self._connection.sql(
                    (SQL / "queries" / f"{name}.sql").read_text(), params=ends
                ).to_arrow_table()
            )
            for name in BOOK_INPUTS
        }


@pytest.fixture(scope="module")
def stored() -> Iterator[Stored]:
    with duckdb.connect() as connection:
        yield Stored(connection)


@pytest.fixture(scope="module")
def frames(stored: Stored) -> dict[str, pl.DataFrame]:
    return stored.frames(DAY)


@pytest.fixture(scope="module")
def shapes(frames: dict[str, pl.DataFrame]) -> pl.DataFrame:
    return learnt_shapes(conform("workload_current", frames["workload_current"]))


@pytest.fixture(scope="module")
def day(frames: dict[str, pl.DataFrame], shapes: pl.DataFrame) -> Books:
    return keep_books(frames, DAY, borders=hour_borders(DAY), shapes=shapes)


def test_every_device_and_hour_adds_up_to_the_wall_clock(
    day: Books, frames: dict[str, pl.DataFrame]
) -> None:
    found = totals(day.rows, "device_uuid", "started_at").with_columns(
        leaves=pl.sum_horizontal(pl.col(*LEAVES)), wall=pl.col("wall_ticks")
    )
    assert (found["leaves"] == found["wall"]).all()
    assert found["wall"].max() == TICKS_PER_GPU_HOUR
    first = frames["device_history"].group_by("device_uuid").agg(pl.col("observed_at").min())
    lives = [DAY.until_at - max(born, DAY.from_at) for born in first["observed_at"]]
    wall_us = sum(life // timedelta(microseconds=1) for life in lives)
    assert int(found["wall"].sum()) == wall_us * TICKS_PER_MICROSECOND


def test_no_leaf_is_negative(day: Books) -> None:
    assert day.rows.select(pl.min_horizontal("wall_ticks", *LEAVES).min()).item() == 0


def test_every_leaf_occurs(day: Books) -> None:
    found = totals(day.rows).select(LEAVES).row(0, named=True)
    assert {name for name, ticks in found.items() if ticks == 0} <= {"used_estimated_ticks"}


@pytest.mark.parametrize("hours", [1, 7, 23])
def test_two_parts_of_the_day_are_the_day(
    stored: Stored, day: Books, shapes: pl.DataFrame, hours: int
) -> None:
    middle = DAY.from_at + timedelta(hours=hours)
    parts = [
        keep_books(stored.frames(part), part, borders=hour_borders(part), shapes=shapes)
        for part in (Period(DAY.from_at, middle), Period(middle, DAY.until_at))
    ]
    keys = ["started_at", "ended_at", "device_uuid", "instance_id", *KEYS]
    exact = [*keys, "wall_ticks", *LEAVES, "memory_peak_bytes"]
    both = pl.concat([part.rows for part in parts]).select(exact)
    assert_frame_equal(
        both.sort(keys, nulls_last=True), day.rows.select(exact).sort(keys, nulls_last=True)
    )
    assert_frame_equal(pl.concat([part.rest for part in parts]), day.rest, check_row_order=False)
    assert_frame_equal(pl.concat([part.caveats for part in parts]), day.caveats)


def test_free_gpus_beside_exhausted_processors_are_stranded(day: Books) -> None:
    found = day.rows.filter(reason="no_shape_fits")
    assert found["node"].unique().to_list() == ["l40s-00"]
