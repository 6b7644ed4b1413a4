"""Stored builds of the ledger with harmless defaults, and a bookkeeper that counts readings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

import polars as pl

from analytics.bookkeeping import BOOK_ROWS, Books, hour_borders
from analytics.bookkeeping.spans import span_frame
from analytics.schemas.columns import INSTANT
from analytics.schemas.usage import LEAVES, OVERLAYS, SCHEMAS
from dashboard.reports.arrow import frame
from dashboard.reports.ledger_readings import Kept, ends
from steward.ids import new_batch_id
from steward.period import Period
from steward.ports import Reader, Writer
from steward.units import TICKS_PER_GPU_HOUR, TICKS_PER_MICROSECOND
from tests.support.warehouse_rows import NOON

TICKS_PER_READING = 1_000_003
"""A prime, so that sums made in a wrong way do not come out right by chance."""
ABSENT = frozenset({"tier", "instance_id", "memory_peak_bytes"})
BUILD_ROW: Mapping[str, object] = {
    "built_at": NOON,
    "build_id": "b1",
    "grain": "hour",
    "starts_at": NOON,
    "row_count": 1,
    "stray_device_count": 0,
    "indistinct_device_count": 0,
    "unplaced_allocation_count": 0,
    "unplaced_gpu_hours": 0.0,
    "has_holders": True,
    "code_version": "test",
}
LEDGER_ROW: Mapping[str, object] = {
    "build_id": "b1",
    "cluster": "c",
    "node": "n1",
    "model": "H100",
    "is_held": True,
    "tenant_id": "team-a",
    "tier": 1,
    "wall_ticks": TICKS_PER_GPU_HOUR,
    **dict.fromkeys(LEAVES, 0),
    "used_measured_ticks": TICKS_PER_GPU_HOUR,
    **dict.fromkeys(OVERLAYS, 0.0),
}
REST_ROW: Mapping[str, object] = {
    "build_id": "b1",
    "hour_at": NOON,
    "cluster": "c",
    "node": "n1",
    "device_uuid": "GPU-0",
    "is_idle": True,
    "started_at": NOON,
    "ended_at": NOON,
    "gpu_share_ratio": 1.0,
}


def store(writer: Writer, table: str, *rows: Mapping[str, object]) -> None:
    """Append rows as they are given."""
    names = sorted({name for row in rows for name in row})
    columns = {name: [row.get(name) for row in rows] for name in names}
    kinds = {name: INSTANT for name in names if name.endswith("_at")}
    writer.append(
        table,
        pl.DataFrame(columns, schema_overrides=kinds, infer_schema_length=None),
        batch_id=new_batch_id(),
    )


def build_row(**given: object) -> dict[str, object]:
    """Return a row of ``ledger_build``."""
    return {**BUILD_ROW, **given}


def hour_row(at: datetime, **given: object) -> dict[str, object]:
    """Return a row of ``ledger_hour``."""
    return {**LEDGER_ROW, "device_uuid": "GPU-0", "hour_at": at, **given}


def day_row(at: datetime, **given: object) -> dict[str, object]:
    """Return a row of ``ledger_day``."""
    return {**LEDGER_ROW, "day_at": at, **given}


def rest_row(at: datetime, **given: object) -> dict[str, object]:
    """Return a row of ``rest_stretch``."""
    return {**REST_ROW, "hour_at": at, "started_at": at, "ended_at": at, **given}


@dataclass(slots=True)
class CountingBookkeeper:
    """Stands in for measures: each reading is so many used ticks, the rest of the wall is free.

    ``asked`` remembers the chunks.
    """

    reader: Reader
    asked: list[Period] = field(default_factory=list)

    def keep(self, chunk: Period) -> Kept:
        """Return books whose leaves add up to the wall clock of every device."""
        self.asked.append(chunk)
        spans = span_frame(chunk, hour_borders(chunk)).with_columns(
            started_at=_instant("start_us"), ended_at=_instant("end_us")
        )
        devices = frame(self.reader.query("device_history", ends(chunk)))
        known = devices.select("cluster", "node", "device_uuid", "device_key").unique()
        wall = (pl.col("end_us") - pl.col("start_us")) * TICKS_PER_MICROSECOND
        used = pl.col("reading_count").fill_null(0).cast(pl.Int64) * TICKS_PER_READING
        rows = (
            known.join(spans, how="cross")
            .join(self._counted(chunk), on=["device_key", "started_at"], how="left")
            .with_columns(wall_ticks=wall, used_measured_ticks=used, is_held=pl.lit(value=False))
            .with_columns(free_idle_ticks=pl.col("wall_ticks") - pl.col("used_measured_ticks"))
            .sort("started_at", "cluster", "device_uuid")
        )
        books = Books(
            rows=_filled(rows, BOOK_ROWS),
            rest=pl.DataFrame(schema=SCHEMAS["rest"]),
            caveats=_filled(spans.rename({"started_at": "starts_at"}), SCHEMAS["ledger_caveat"]),
        )
        return Kept(books=books, shapes_version="test")

    def _counted(self, chunk: Period) -> pl.DataFrame:
        """Return readings by device and span; spans begin at whole hours or with the chunk."""
        rows = frame(self.reader.query("utilization_sample", ends(chunk)))
        at = pl.col("sampled_at").dt.convert_time_zone("UTC")
        inside = rows.filter(at >= chunk.from_at, at < chunk.until_at)
        started = pl.max_horizontal(at.dt.truncate("1h"), pl.lit(chunk.from_at, dtype=INSTANT))
        return inside.group_by("device_key", started.alias("started_at")).agg(
            pl.len().alias("reading_count")
        )


def _instant(name: str) -> pl.Expr:
    return pl.from_epoch(name, time_unit="us").dt.replace_time_zone("UTC")


def _filled(rows: pl.DataFrame, schema: pl.Schema) -> pl.DataFrame:
    """Return the rows in the schema; absent numbers are 0, absent texts and tiers null."""
    return rows.select(
        pl.col(name).cast(kind)
        if name in rows.columns
        else pl.lit(None if name in ABSENT or kind == pl.String else 0).cast(kind).alias(name)
        for name, kind in schema.items()
    )
