"""The query of energy counters, on the warehouse's own tables."""

from __future__ import annotations

from pathlib import Path

import duckdb
import polars as pl

from analytics.inputs import conform
from tests.support.analytics_frames import HOUR, MINUTE, NOON

SQL = Path(__file__).parents[3] / "sql"


def asked(*readings: tuple[int, float | None, int | None]) -> list[tuple[object, ...]]:
    """Store readings (minutes after noon, joules, instance) and return what two hours show."""
    with duckdb.connect() as connection:
        for path in sorted((SQL / "migrations" / "warehouse").glob("*.sql")):
            for statement in duckdb.extract_statements(path.read_text()):
                connection.sql(statement)
        for minute, energy_j, instance in readings:
            connection.execute(
                "insert into device_sample (sampled_at, cluster, node, device_uuid, source, "
                "energy_j, instance_id) values (?, 'c', 'n', 'g', 't', ?, ?)",
                [NOON + minute * MINUTE, energy_j, instance],
            )
        text = (SQL / "queries" / "energy_by_hour.sql").read_text()
        ends = {"from_at": NOON, "until_at": NOON + 2 * HOUR}
        rows = pl.DataFrame(connection.sql(text, params=ends).to_arrow_table())
    frame = conform("energy_by_hour", rows)
    return frame.select("hour_at", "first_at", "first_j", "last_at", "last_j").rows()


def test_the_first_and_last_reading_of_each_hour() -> None:
    assert asked((0, 1.0, None), (30, 2.0, None), (59, 3.0, None), (60, 4.0, None)) == [
        (NOON, NOON, 1.0, NOON + 59 * MINUTE, 3.0),
        (NOON + HOUR, NOON + HOUR, 4.0, NOON + HOUR, 4.0),
    ]


def test_only_the_period_is_read() -> None:
    assert asked((-1, 1.0, None), (120, 2.0, None)) == []
    assert len(asked((0, 1.0, None), (119, 2.0, None))) == 2


def test_what_was_not_read_is_no_reading_and_zero_is_one() -> None:
    assert asked((0, None, None)) == []
    ((_, first_at, first_j, last_at, last_j),) = asked((1, 0.0, None), (2, None, None))
    assert (first_at, first_j, last_at, last_j) == (NOON + MINUTE, 0.0, NOON + MINUTE, 0.0)


def test_instances_have_no_counter_of_their_own() -> None:
    assert asked((0, 1.0, 3)) == []
