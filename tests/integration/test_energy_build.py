"""Building energy: with the ledger of a day, once, and again where readings come late."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from dashboard.reports.energy_build import build_energy
from dashboard.reports.ledger_build import Order, build
from sql.warehouse import EmbeddedWarehouse, open_embedded
from steward.clock import FixedClock
from steward.ids import BatchId
from steward.period import Period
from tests.support.ledger_stored import CountingBookkeeper, store
from tests.support.warehouse_rows import samples

MONDAY = datetime(2026, 5, 4, tzinfo=UTC)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
CLOCK = FixedClock(datetime(2026, 6, 1, tzinfo=UTC))
NAMES = ("energy_by_hour", "energy_days", "energy_hours")


@pytest.fixture
def warehouse(tmp_path: Path) -> Iterator[EmbeddedWarehouse]:
    with closing(open_embedded(tmp_path)) as opened:
        device = {"cluster": "c", "node": "n", "device_uuid": "GPU-0", "source": "test"}
        store(opened, "device", {**device, "observed_at": MONDAY, "is_present": True})
        for hour in range(51):
            observe(opened, MONDAY + hour * HOUR, 100.0 * hour)
        yield opened


def observe(warehouse: EmbeddedWarehouse, at: datetime, energy_j: float) -> None:
    rows = samples(1, at=at, energy_j=[energy_j])
    warehouse.append("device_sample", rows, batch_id=BatchId(f"{at}"))


def run(warehouse: EmbeddedWarehouse) -> None:
    build(warehouse, Order(), clock=CLOCK, keep=CountingBookkeeper(warehouse).keep)


def counts(warehouse: EmbeddedWarehouse, from_at: datetime, until_at: datetime) -> list[int]:
    """Return how many rows tell of hours that are read, of days and of hours that are built."""
    ends = {"from_at": from_at, "until_at": until_at}
    return [warehouse.query(name, ends).num_rows for name in NAMES]


def builds(warehouse: EmbeddedWarehouse) -> int:
    return int(pl.DataFrame(warehouse.sql("select count(*) from energy_build")).item())


def test_days_whose_hours_are_all_built_are_read_no_more(warehouse: EmbeddedWarehouse) -> None:
    assert counts(warehouse, MONDAY, MONDAY + 3 * DAY) == [51, 0, 0]
    run(warehouse)
    assert counts(warehouse, MONDAY, MONDAY + 3 * DAY) == [3, 2, 46]


@pytest.mark.parametrize(
    ("from_at", "until_at", "expected"),
    [
        pytest.param(MONDAY, MONDAY + 2 * DAY, [0, 2, 46], id="whole days"),
        pytest.param(MONDAY + HOUR, MONDAY + 2 * DAY, [23, 1, 23], id="the first is cut"),
        pytest.param(MONDAY, MONDAY + 2 * DAY - HOUR, [23, 1, 23], id="the last is cut"),
        pytest.param(MONDAY + HOUR, MONDAY + DAY + HOUR, [24, 0, 0], id="both are cut"),
    ],
)
def test_a_day_that_is_cut_is_read(
    warehouse: EmbeddedWarehouse, from_at: datetime, until_at: datetime, expected: list[int]
) -> None:
    run(warehouse)
    assert counts(warehouse, from_at, until_at) == expected


def test_a_day_between_that_is_not_built_is_read(warehouse: EmbeddedWarehouse) -> None:
    run(warehouse)
    period = (MONDAY - DAY, MONDAY + 2 * DAY)
    store(
        warehouse,
        "energy_build",
        {"built_at": MONDAY, "build_id": "b", "starts_at": MONDAY - 2 * DAY, "code_version": "t"},
    )
    assert counts(warehouse, MONDAY - 2 * DAY, period[1]) == [0, 2, 46]
    observe(warehouse, MONDAY - HOUR, 1.0)
    assert counts(warehouse, MONDAY - 2 * DAY, period[1]) == [1, 2, 46]


def test_what_is_built_is_not_built_again(warehouse: EmbeddedWarehouse) -> None:
    run(warehouse)
    assert builds(warehouse) == 2
    run(warehouse)
    assert builds(warehouse) == 2
    assert build_energy(warehouse, Period(MONDAY, MONDAY + 3 * DAY), clock=CLOCK) == 0


def test_late_readings_build_their_day_again_and_the_newest_counts(
    warehouse: EmbeddedWarehouse,
) -> None:
    run(warehouse)
    observe(warehouse, MONDAY + 3 * HOUR + HOUR / 2, 320.0)
    run(warehouse)
    assert builds(warehouse) == 3
    assert counts(warehouse, MONDAY, MONDAY + 2 * DAY) == [0, 2, 46]
    hours = pl.DataFrame(
        warehouse.query("energy_hours", {"from_at": MONDAY, "until_at": MONDAY + DAY})
    )
    assert hours["used_j"].sum() == 2300
    assert hours.filter(pl.col("hour_at").dt.hour() == 3)["used_j"].to_list() == [100]
