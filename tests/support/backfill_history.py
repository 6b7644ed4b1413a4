"""A past that is known to the last value: texts of exporters, and what Prometheus kept of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa

from collector.backfill.api import PrometheusApi
from collector.backfill.prometheus_run import Asked, errand_of, import_into, import_prometheus
from collector.normalize import NormalizeState, normalize
from collector.sources.exposition import ExpositionParser
from sql.access import open_warehouse
from steward.clock import FixedClock
from steward.command import Context
from steward.errors import WarehouseError
from steward.ids import BatchId
from steward.ports import AppendReceipt, ArrowTable, Parameter, Warehouse
from steward.settings import Settings

START = datetime(2026, 1, 5, 6, tzinfo=UTC)
INTERVAL = timedelta(minutes=2)
KEEP_FOREVER = ("--storage.tsdb.retention.time=100y",)
TABLES = (
    "allocation",
    "device",
    "device_event",
    "device_sample",
    "node",
    "pod",
    "scrape",
    "workload",
    "workload_transition",
)


@dataclass(frozen=True, kw_only=True)
class PastTarget:
    """One exporter's texts by scrape; None where it did not answer."""

    instance: str
    job: str
    texts: Mapping[datetime, str | None]
    labels: Mapping[str, str] = field(default_factory=dict)
    """What discovery adds beside instance and job."""


def every(length: timedelta, *, step: timedelta = INTERVAL) -> Iterator[tuple[int, datetime]]:
    """Yield the number and the instant of each scrape."""
    yield from ((number, START + number * step) for number in range(length // step))


def openmetrics(targets: Iterable[PastTarget]) -> list[str]:
    """Return what a server that scraped these targets has, as lines with their times."""
    families: dict[str, list[str]] = {}

    def add(name: str, labels: Mapping[str, str], value: object, at: datetime) -> None:
        pairs = ",".join(f'{key}="{text}"' for key, text in sorted(labels.items()) if text)
        line = f"{name}{{{pairs}}} {value} {at.timestamp():.3f}"
        families.setdefault(name, []).append(line)

    for target in targets:
        parser = ExpositionParser()
        own = {"instance": target.instance, "job": target.job, **target.labels}
        for at, text in target.texts.items():
            add("up", own, 0 if text is None else 1, at)
            add("scrape_duration_seconds", own, 0.25, at)
            if text is None:
                continue
            samples = parser.parse(text).samples
            add("scrape_samples_scraped", own, len(samples), at)
            for name, labels, value, own_ms in samples:
                told = datetime.fromtimestamp(own_ms / 1_000, UTC) if own_ms else at
                add(name, _relabelled(labels.pairs, own), value, told)
    lines: list[str] = []
    for name, family in sorted(families.items()):
        lines += [f"# TYPE {name} gauge", *family]
    return lines


def _relabelled(said: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """Return labels as ``honor_labels: false`` makes them."""
    moved = {f"exported_{name}" if name in own else name: text for name, text in said.items()}
    return {**moved, **own}


def direct_rows(target: PastTarget) -> dict[str, list[dict[str, object]]]:
    """Return the rows that scraping the target directly would have given."""
    parser = ExpositionParser()
    state = NormalizeState(node=target.labels.get("node"), own_pod=target.labels.get("pod"))
    rows: dict[str, list[dict[str, object]]] = {name: [] for name in TABLES}
    for at, text in target.texts.items():
        if text is None:
            continue
        scrape = normalize(
            parser.parse(text),
            target=f"http://{target.instance}/metrics",
            cluster="default",
            scraped_at=at,
            state=state,
        )
        tables = [*scrape.batches(), ("scrape", scrape.scrape_table(duration_s=0.25, body_bytes=0))]
        for name, table in tables:
            rows[name] += table.to_pylist()
    return rows


def stored_rows(folder: Path, table: str) -> list[dict[str, object]]:
    """Return a table's rows."""
    with open_warehouse(Settings(data_dir=folder)) as warehouse:
        return pa.table(warehouse.sql(f"select * from {table}")).to_pylist()  # noqa: S608 - names of this file


def ordered(rows: Iterable[Mapping[str, object]]) -> list[str]:
    """Return rows as texts in one order, so that two lists of them can be compared."""
    return sorted(str(sorted(row.items())) for row in rows)


def asked_for(
    url: str,
    *,
    length: timedelta,
    start: datetime = START,
    match: str = "",
    window_minutes: int = 60,
) -> Asked:
    """Return what a command line asks for."""
    return Asked(
        url=url,
        from_at=start,
        until_at=start + length,
        match=match,
        window_minutes=window_minutes,
        headers_file=None,
    )


def context_of(folder: Path) -> Context:
    """Return settings with this data folder, a month after the known past."""
    return Context(settings=Settings(data_dir=folder), clock=FixedClock(START + timedelta(days=30)))


def run_import(folder: Path, asked: Asked) -> int:
    """Import as the command does."""
    return import_prometheus(context_of(folder), asked)


def run_import_dying(folder: Path, asked: Asked, *, batch_count: int) -> None:
    """Import into a warehouse that stops serving after so many batches.

    Raises:
        WarehouseError: always.
    """
    context = context_of(folder)
    errand = errand_of(context, asked)
    with (
        PrometheusApi(url=errand.question.url) as api,
        open_warehouse(context.settings) as warehouse,
    ):
        import_into(MortalWarehouse(warehouse, batch_count=batch_count), errand, api=api)


class MortalWarehouse:
    """A warehouse that stops serving after some batches."""

    def __init__(self, warehouse: Warehouse, *, batch_count: int) -> None:
        """Serve this many batches."""
        self._warehouse = warehouse
        self._left = batch_count

    def append(self, table: str, rows: ArrowTable, *, batch_id: BatchId) -> AppendReceipt:
        """Store the batch, or fail."""
        if self._left == 0:
            raise WarehouseError("killed", hint="run it again")
        self._left -= 1
        return self._warehouse.append(table, rows, batch_id=batch_id)

    def query(self, name: str, parameters: Mapping[str, Parameter] | None = None) -> ArrowTable:
        """Pass on."""
        return self._warehouse.query(name, parameters)

    def sql(self, statement: str, *, row_limit: int | None = None) -> ArrowTable:
        """Pass on."""
        return self._warehouse.sql(statement, row_limit=row_limit)

    def close(self) -> None:
        """Pass on."""
        self._warehouse.close()
