"""The border: declared columns, UTC, NaN is unknown."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import polars as pl
import pytest

from analytics.inputs import SCHEMAS, conform, empty
from analytics.schemas.columns import INSTANT
from steward.errors import InputError


def test_nan_becomes_null_and_zero_stays_zero() -> None:
    given = empty("utilization_sample").cast({"busy_ratio": pl.Float64})
    row = dict.fromkeys(given.columns)
    frame = pl.DataFrame(
        [{**row, "busy_ratio": float("nan")}, {**row, "busy_ratio": 0.0}], schema=given.schema
    )
    assert conform("utilization_sample", frame)["busy_ratio"].to_list() == [None, 0.0]


def test_other_zones_become_utc() -> None:
    at = datetime(2026, 5, 4, 20, tzinfo=timezone(timedelta(hours=8)))
    frame = empty("transition_history").cast({"occurred_at": pl.Datetime("us", "Asia/Shanghai")})
    local = pl.DataFrame(
        {**{name: [None] for name in frame.columns}, "occurred_at": [at.astimezone(UTC)]},
        schema=frame.schema,
    )
    found = conform("transition_history", local)
    assert found.schema["occurred_at"] == INSTANT
    assert found["occurred_at"].to_list() == [datetime(2026, 5, 4, 12, tzinfo=UTC)]


def test_a_missing_column_is_named() -> None:
    with pytest.raises(InputError, match=r"scrape_health lack the column.* target"):
        conform("scrape_health", empty("scrape_health").drop("target"))


@pytest.mark.parametrize("name", SCHEMAS)
def test_no_rows_have_their_columns(name: str) -> None:
    assert conform(name, empty(name)).schema == SCHEMAS[name]
