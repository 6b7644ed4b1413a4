"""Building the ledger: which hours are closed, what is built once, and what late rows change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from dashboard.reports import ledger_readings
from dashboard.reports.ledger_build import Built, Order, build
from dashboard.reports.ledger_compose import compose
from sql.warehouse import EmbeddedWarehouse, open_embedded
from steward.clock import FixedClock
from steward.errors import WarehouseError
from steward.ids import BatchId
from steward.period import Period
from steward.ports import AppendReceipt, ArrowTable, Parameter
from tests.support.ledger_stored import TICKS_PER_READING, CountingBookkeeper, store
from tests.support.warehouse_rows import samples

MONDAY = datetime(2026, 5, 4, tzinfo=UTC)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
TICK = timedelta(microseconds=1)
CLOCK = FixedClock(datetime(2026, 6, 1, tzinfo=UTC))
LEDGER_TABLES = ("ledger_hour", "ledger_day", "rest_stretch", "ledger_build")


@pytest.fixture
def warehouse(tmp_path: Path) -> Iterator[EmbeddedWarehouse]:
    with closing(open_embedded(tmp_path)) as opened:
        yield opened


def observe(warehouse: EmbeddedWarehouse, *instants: datetime) -> None:
    """Store one device and a reading of it at each instant."""
    device = {"cluster": "c", "node": "n", "device_uuid": "GPU-0", "source": "test"}
    store(warehouse, "device", {**device, "observed_at": MONDAY, "is_present": True})
    for at in instants:
        warehouse.append("device_sample", samples(1, at=at), batch_id=BatchId(f"{at}"))


def run(
    warehouse: EmbeddedWarehouse, *, keeper: CountingBookkeeper | None = None, **order: object
) -> Built:
    keep = (CountingBookkeeper(warehouse) if keeper is None else keeper).keep
    return build(warehouse, Order(**order), clock=CLOCK, keep=keep)  # type: ignore[arg-type]  # its own fields


def starts(warehouse: EmbeddedWarehouse, grain: str = "hour") -> list[datetime]:
    parameters: dict[str, Parameter] = {
        "from_at": MONDAY - DAY,
        "until_at": MONDAY + 9 * DAY,
        "grain": grain,
    }
    return pl.DataFrame(warehouse.query("ledger_built", parameters))["starts_at"].to_list()


def stored(warehouse: EmbeddedWarehouse) -> dict[str, pl.DataFrame]:
    """Return all rows of the ledger's tables, in one order."""
    tables = {name: pl.DataFrame(warehouse.sql(f"from {name}")) for name in LEDGER_TABLES}
    return {name: rows.sort(pl.all()) for name, rows in tables.items()}


def used_ticks(warehouse: EmbeddedWarehouse, period: Period) -> int:
    keep = CountingBookkeeper(warehouse).keep
    rows = compose(warehouse, ["ledger"], divided=[period], keep=keep)["ledger"]
    return int(rows["used_measured_ticks"].sum())


@pytest.mark.parametrize(
    ("newest_at", "hour_count"),
    [
        pytest.param(MONDAY + 3 * HOUR - TICK, 1, id="a tick less than an hour after"),
        pytest.param(MONDAY + 3 * HOUR, 2, id="exactly an hour after"),
        pytest.param(MONDAY + 3 * HOUR + TICK, 2, id="a tick more than an hour after"),
    ],
)
def test_an_hour_is_built_an_hour_after_its_end(
    warehouse: EmbeddedWarehouse, newest_at: datetime, hour_count: int
) -> None:
    observe(warehouse, newest_at)
    assert run(warehouse).hour_count == hour_count
    assert starts(warehouse) == [MONDAY + number * HOUR for number in range(hour_count)]


def test_nothing_is_built_of_nothing(warehouse: EmbeddedWarehouse) -> None:
    assert run(warehouse) == Built()


def test_an_hour_without_readings_is_built_too(warehouse: EmbeddedWarehouse) -> None:
    observe(warehouse, MONDAY, MONDAY + 5 * HOUR)
    assert run(warehouse).hour_count == 4


@pytest.mark.parametrize(
    ("newest_at", "days"),
    [
        pytest.param(MONDAY + DAY + HOUR - TICK, [], id="one hour lacks"),
        pytest.param(MONDAY + DAY + HOUR, [MONDAY], id="all hours are built"),
        pytest.param(MONDAY + 2 * DAY + HOUR, [MONDAY, MONDAY + DAY], id="two days"),
    ],
)
def test_a_day_is_built_once_all_its_hours_are(
    warehouse: EmbeddedWarehouse, newest_at: datetime, days: list[datetime]
) -> None:
    observe(warehouse, MONDAY, newest_at)
    assert run(warehouse).day_count == len(days)
    assert starts(warehouse, "day") == days


def test_what_is_built_is_not_built_again(warehouse: EmbeddedWarehouse) -> None:
    observe(warehouse, MONDAY, MONDAY + DAY + HOUR)
    run(warehouse)
    before = stored(warehouse)
    keeper = CountingBookkeeper(warehouse)
    assert run(warehouse, keeper=keeper) == Built()
    assert keeper.asked == []
    assert all(rows.equals(before[name]) for name, rows in stored(warehouse).items())


def test_again_stores_nothing_where_nothing_changed(warehouse: EmbeddedWarehouse) -> None:
    observe(warehouse, MONDAY, MONDAY + DAY + HOUR)
    run(warehouse)
    before = stored(warehouse)
    assert run(warehouse, is_again=True) == Built()
    assert all(rows.equals(before[name]) for name, rows in stored(warehouse).items())


def test_only_the_hours_asked_for_are_built(warehouse: EmbeddedWarehouse) -> None:
    observe(warehouse, MONDAY, MONDAY + DAY)
    run(warehouse, from_at=MONDAY + 2 * HOUR + TICK, until_at=MONDAY + 6 * HOUR - TICK)
    assert starts(warehouse) == [MONDAY + 3 * HOUR, MONDAY + 4 * HOUR]


@pytest.mark.parametrize(
    ("looks_back", "first"),
    [
        pytest.param(3 * HOUR - TICK, 24, id="just inside a day"),
        pytest.param(3 * HOUR, 24, id="exactly to midnight"),
        pytest.param(3 * HOUR + TICK, 0, id="just into the day before"),
    ],
)
def test_a_follower_looks_back_over_whole_days(
    warehouse: EmbeddedWarehouse, looks_back: timedelta, first: int
) -> None:
    observe(warehouse, MONDAY, MONDAY + DAY + 4 * HOUR)
    run(warehouse, looks_back=looks_back)
    assert starts(warehouse)[0] == MONDAY + first * HOUR


def test_late_readings_build_their_hour_again(warehouse: EmbeddedWarehouse) -> None:
    observe(warehouse, MONDAY, MONDAY + 5 * HOUR, MONDAY + DAY + HOUR)
    run(warehouse)
    day = Period(MONDAY, MONDAY + DAY)
    assert used_ticks(warehouse, day) == 2 * TICKS_PER_READING

    observe(warehouse, MONDAY + 5 * HOUR + TICK)
    keeper = CountingBookkeeper(warehouse)
    assert run(warehouse, keeper=keeper) == Built(hour_count=1, day_count=1, row_count=2)
    assert keeper.asked == [Period(MONDAY + 4 * HOUR, MONDAY + 7 * HOUR)]
    assert used_ticks(warehouse, day) == 3 * TICKS_PER_READING


def test_a_day_out_of_date_is_not_counted(warehouse: EmbeddedWarehouse) -> None:
    observe(warehouse, MONDAY, MONDAY + 5 * HOUR, MONDAY + DAY + HOUR)
    run(warehouse)
    observe(warehouse, MONDAY + 5 * HOUR + TICK)
    run(warehouse, from_at=MONDAY + HOUR, until_at=MONDAY + 7 * HOUR)
    assert used_ticks(warehouse, Period(MONDAY, MONDAY + DAY)) == 3 * TICKS_PER_READING


def test_a_value_that_comes_back_counts_again(warehouse: EmbeddedWarehouse) -> None:
    observe(warehouse, MONDAY, MONDAY + 5 * HOUR)
    run(warehouse)
    first = stored(warehouse)["ledger_hour"].drop("build_id")
    keeper = CountingBookkeeper(warehouse)

    def doubled(chunk: Period) -> ledger_readings.Kept:
        kept = keeper.keep(chunk)
        wrong = pl.col("free_idle_ticks") + 1
        rows = kept.books.rows.with_columns(free_idle_ticks=wrong, wall_ticks=wrong)
        books = type(kept.books)(rows=rows, rest=kept.books.rest, caveats=kept.books.caveats)
        return ledger_readings.Kept(books=books, shapes_version="test")

    assert build(warehouse, Order(is_again=True), clock=CLOCK, keep=doubled).hour_count == 4
    assert run(warehouse, is_again=True).hour_count == 4
    newest = pl.DataFrame(
        warehouse.sql(
            "select * exclude build_id from ledger_hour where build_id in (select arg_max(build_id,"
            " built_at) from ledger_build where grain = 'hour' group by starts_at)"
        )
    )
    assert newest.sort(pl.all()).equals(first.sort(pl.all()))


def test_chunks_hold_a_day_or_their_share_of_readings(
    warehouse: EmbeddedWarehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    observe(warehouse, *(MONDAY + number * HOUR for number in range(24)), MONDAY + 26 * HOUR)
    keeper = CountingBookkeeper(warehouse)
    run(warehouse, keeper=keeper)
    assert [chunk.length for chunk in keeper.asked] == [DAY, HOUR]

    monkeypatch.setattr(ledger_readings, "CHUNK_READING_COUNT", 10)
    keeper = CountingBookkeeper(warehouse)
    run(warehouse, keeper=keeper, is_again=True)
    assert [chunk.length // HOUR for chunk in keeper.asked] == [10, 10, 4, 1]


@dataclass(slots=True)
class Dying:
    """A warehouse that is gone after so many appends; the last of them may still be stored."""

    inner: EmbeddedWarehouse
    left_count: int
    stores_last: bool

    def append(self, table: str, rows: ArrowTable, *, batch_id: BatchId) -> AppendReceipt:
        """Store, or fail for good."""
        self.left_count -= 1
        if self.left_count < 0 or (self.left_count == 0 and not self.stores_last):
            raise WarehouseError("gone", hint="start it again")
        receipt = self.inner.append(table, rows, batch_id=batch_id)
        if self.left_count == 0:
            raise WarehouseError("gone before it answered", hint="start it again")
        return receipt

    def query(self, name: str, parameters: Mapping[str, Parameter] | None = None) -> ArrowTable:
        """Ask the warehouse."""
        return self.inner.query(name, parameters)

    def sql(self, statement: str, *, row_limit: int | None = None) -> ArrowTable:
        """Ask the warehouse."""
        return self.inner.sql(statement, row_limit=row_limit)

    def state_rows(self, table: str) -> list[dict[str, object]]:
        """Ask the warehouse."""
        return self.inner.state_rows(table)


@pytest.mark.parametrize("stores_last", [True, False], ids=["stored", "not stored"])
@pytest.mark.parametrize("append_count", range(1, 7))
def test_a_build_that_dies_at_any_append_is_gone_on_with(
    tmp_path: Path, *, append_count: int, stores_last: bool
) -> None:
    found = []
    for folder in (tmp_path / "once", tmp_path / "twice"):
        folder.mkdir()
        with closing(open_embedded(folder)) as warehouse:
            observe(warehouse, MONDAY, MONDAY + 5 * HOUR, MONDAY + DAY + 3 * HOUR)
            if folder.name == "twice":
                dying = Dying(warehouse, append_count, stores_last)
                keep = CountingBookkeeper(warehouse).keep
                with pytest.raises(WarehouseError):
                    build(dying, Order(), clock=CLOCK, keep=keep)
            run(warehouse)
            found.append(stored(warehouse))
    once, twice = found
    assert {name: rows.height for name, rows in twice.items()} == {
        name: rows.height for name, rows in once.items()
    }
    assert all(rows.equals(once[name]) for name, rows in twice.items())


def test_rows_of_a_killed_build_do_not_count_once_more_is_known(
    warehouse: EmbeddedWarehouse,
) -> None:
    observe(warehouse, MONDAY, MONDAY + 5 * HOUR)
    dying = Dying(warehouse, 1, stores_last=True)
    with pytest.raises(WarehouseError):
        build(dying, Order(), clock=CLOCK, keep=CountingBookkeeper(warehouse).keep)
    observe(warehouse, MONDAY + 7 * HOUR)
    run(warehouse)
    assert stored(warehouse)["ledger_hour"].height == 4 + 6
    assert used_ticks(warehouse, Period(MONDAY, MONDAY + 6 * HOUR)) == 2 * TICKS_PER_READING
