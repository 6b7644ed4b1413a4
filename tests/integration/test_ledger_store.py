"""A simulated fleet's ledger: from the store as from readings, and whole after ``kill -9``."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from analytics.schemas.usage import KEYS, LEAVES, OVERLAYS
from dashboard.reports.arrow import frame
from dashboard.reports.ledger_build import Order, build
from dashboard.reports.ledger_compose import compose, spans
from dashboard.reports.ledger_readings import Bookkeeper
from sql.warehouse import EmbeddedWarehouse, open_embedded
from steward.clock import FixedClock
from steward.ids import BatchId
from steward.period import Period
from steward.ports import ArrowTable, Parameter
from tests.support.simulated_fleets import UNTIL_AT, batches, parameters

FLEET = parameters(days=3, node_count=6, cadence_s=600)
FROM_AT = UNTIL_AT - timedelta(days=3)
HOUR = timedelta(hours=1)
CLOCK = FixedClock(datetime(2026, 7, 1, tzinfo=UTC))
EXACT = ("started_at", "ended_at", *KEYS, "wall_ticks", *LEAVES, "memory_peak_bytes")
NAMES = ("ledger", "rest", "ledger_caveat")
BUILDER = """
import sys
from contextlib import closing
from pathlib import Path
from dashboard.reports.ledger_build import Order, build
from sql.limits import Limits
from sql.warehouse import EmbeddedWarehouse
from steward.clock import SystemClock

class Telling(EmbeddedWarehouse):
    def append(self, table, rows, *, batch_id):
        print("storing", table, flush=True)
        receipt = super().append(table, rows, batch_id=batch_id)
        print("stored", table, flush=True)
        return receipt

with closing(Telling(Path(sys.argv[1]), limits=Limits())) as warehouse:
    build(warehouse, Order(), clock=SystemClock())
"""
"""A build that tells of each append before and after it."""
KILLED_AFTER_LINES = (1, 2, 3, 4, 6)
"""Odd: an append is on its way; even: it is stored and the next is being prepared."""


@pytest.fixture(scope="module")
def unbuilt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fleet")
    with closing(open_embedded(folder)) as warehouse:
        for number, batch in enumerate(batches(FLEET)):
            warehouse.append(batch.table, batch.rows, batch_id=BatchId(f"fleet-{number}"))
    return folder


@pytest.fixture(scope="module")
def warehouse(
    unbuilt: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[EmbeddedWarehouse]:
    folder = tmp_path_factory.mktemp("built") / "warehouse"
    shutil.copytree(unbuilt, folder)
    with closing(open_embedded(folder)) as opened:
        build(opened, Order(), clock=CLOCK)
        yield opened


@dataclass(slots=True)
class Unbuilt:
    """The same warehouse, as if nothing were built."""

    inner: EmbeddedWarehouse

    def query(self, name: str, parameters: Mapping[str, Parameter] | None = None) -> ArrowTable:
        """Ask the warehouse, but for builds."""
        rows = self.inner.query(name, parameters)
        return rows.slice(0, 0) if name == "ledger_built" else rows

    def sql(self, statement: str, *, row_limit: int | None = None) -> ArrowTable:
        """Ask the warehouse."""
        return self.inner.sql(statement, row_limit=row_limit)

    def state_rows(self, table: str) -> list[dict[str, object]]:
        """Ask the warehouse."""
        return self.inner.state_rows(table)


def composed(
    source: EmbeddedWarehouse | Unbuilt, period: Period, *cuts: datetime, cluster: str | None = None
) -> dict[str, pl.DataFrame]:
    keep = Bookkeeper(source=source, cluster=cluster).keep
    return compose(source, NAMES, divided=spans(period, cuts), keep=keep, cluster=cluster)


PERIODS = [
    pytest.param(Period(FROM_AT, FROM_AT + 48 * HOUR), (), id="whole days"),
    pytest.param(Period(FROM_AT + 5 * HOUR, FROM_AT + 30 * HOUR), (), id="whole hours"),
    pytest.param(
        Period(FROM_AT + HOUR / 3, FROM_AT + 50 * HOUR + timedelta(seconds=7, microseconds=3)),
        (),
        id="ragged ends",
    ),
    pytest.param(Period(FROM_AT, UNTIL_AT + HOUR), (), id="up to and beyond the newest row"),
    pytest.param(Period(FROM_AT + HOUR / 4, FROM_AT + HOUR / 2), (), id="inside one hour"),
    pytest.param(
        Period(FROM_AT, FROM_AT + 48 * HOUR),
        (FROM_AT + 16 * HOUR, FROM_AT + 40 * HOUR),
        id="days of a zone",
    ),
    pytest.param(
        Period(FROM_AT, FROM_AT + 30 * HOUR),
        (FROM_AT + 5.5 * HOUR, FROM_AT + 5.75 * HOUR, FROM_AT + 29 * HOUR),
        id="cuts inside an hour",
    ),
]


@pytest.mark.parametrize(("period", "cuts"), PERIODS)
def test_the_store_says_what_readings_say(
    warehouse: EmbeddedWarehouse, period: Period, cuts: tuple[datetime, ...]
) -> None:
    stored = composed(warehouse, period, *cuts)
    read = composed(Unbuilt(warehouse), period, *cuts)
    assert stored["ledger"].height > 0
    assert_frame_equal(stored["ledger"].select(EXACT), read["ledger"].select(EXACT))
    overlays = [pl.col(name) for name in OVERLAYS]
    assert_frame_equal(
        stored["ledger"].select(overlays), read["ledger"].select(overlays), rel_tol=1e-12
    )
    assert_frame_equal(stored["rest"], read["rest"])
    assert_frame_equal(stored["ledger_caveat"], read["ledger_caveat"])


@pytest.mark.parametrize(("period", "cuts"), PERIODS)
def test_every_tick_is_in_one_leaf_of_one_span(
    warehouse: EmbeddedWarehouse, period: Period, cuts: tuple[datetime, ...]
) -> None:
    rows = composed(warehouse, period, *cuts)["ledger"]
    assert (rows.select(pl.sum_horizontal(LEAVES)).to_series() == rows["wall_ticks"]).all()
    ends = {(each.from_at, each.until_at) for each in spans(period, cuts)}
    assert set(rows.select("started_at", "ended_at").unique().rows()) <= ends


def test_spans_add_up_to_the_period(warehouse: EmbeddedWarehouse) -> None:
    period = Period(FROM_AT, FROM_AT + 48 * HOUR)
    parts = composed(warehouse, period, *(FROM_AT + n * HOUR for n in range(48)))["ledger"]
    whole = composed(warehouse, period)["ledger"]
    for name in ("wall_ticks", *LEAVES):
        assert parts[name].cast(pl.Int128).sum() == whole[name].cast(pl.Int128).sum()


def test_one_cluster_of_one_is_all(warehouse: EmbeddedWarehouse) -> None:
    period = Period(FROM_AT + HOUR / 3, FROM_AT + 30 * HOUR)
    whole = composed(warehouse, period)
    (name,) = whole["ledger"]["cluster"].unique().to_list()
    exact = [pl.col(name) for name in EXACT]
    narrowed = composed(warehouse, period, cluster=name)["ledger"]
    assert_frame_equal(narrowed.select(exact), whole["ledger"].select(exact))
    assert composed(warehouse, period, cluster="another")["ledger"].is_empty()


def ledger_tables(folder: Path) -> dict[str, pl.DataFrame]:
    """Return what is stored of the ledger, without the time of building, in one order."""
    names = ("ledger_hour", "ledger_day", "rest_stretch", "ledger_build")
    with closing(open_embedded(folder)) as warehouse:
        tables = {name: frame(warehouse.sql(f"from {name}")) for name in names}
    timeless = {name: rows.drop("built_at", strict=False) for name, rows in tables.items()}
    return {name: rows.sort(pl.all()) for name, rows in timeless.items()}


@pytest.mark.slow
@pytest.mark.timeout(600)  # nine processes, each with all of its libraries
def test_a_build_killed_often_ends_as_one_that_was_not(unbuilt: Path, tmp_path: Path) -> None:
    folders = tmp_path / "killed", tmp_path / "whole"
    for folder in folders:
        shutil.copytree(unbuilt, folder)
    told = [killed_after(folders[0], line_count=count) for count in KILLED_AFTER_LINES]
    for folder in folders:
        subprocess.run(command(folder), check=True, stdout=subprocess.DEVNULL)
    killed, whole = (ledger_tables(folder) for folder in folders)
    sys.stdout.write(f"last told before each kill: {told}\n")
    assert {name: rows.height for name, rows in killed.items()} == {
        name: rows.height for name, rows in whole.items()
    }
    for name, rows in killed.items():
        assert_frame_equal(rows, whole[name], rel_tol=1e-12)


def command(folder: Path) -> list[str]:
    return [sys.executable, "-c", BUILDER, str(folder)]


def killed_after(folder: Path, *, line_count: int) -> str:
    """Start a build, kill it once it told so much, and return the last it told."""
    with subprocess.Popen(command(folder), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        told = [process.stdout.readline().strip() for _ in range(line_count)]
        process.kill()
        return next((line for line in reversed(told) if line), "nothing to do")
