"""Storing builds of the ledger: ids made of what is held, and rows as the tables want them.

A build of an hour is named ``hour.readings.holdings.content.generation.chunk``: what was stored of
the hour when it was built, a digest of its exact columns, how many builds it had before, and the
chunk it was stored with. The first three tell late rows, the fourth whether anything came out
differently; the last keeps rows that a killed build left behind apart from those that count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

import polars as pl
from polars import selectors as cs

from analytics.bookkeeping import Books
from analytics.schemas.columns import INSTANT
from analytics.schemas.usage import KEYS, LEAVES, OVERLAYS, SCHEMAS
from dashboard.reports.hours import TICK
from dashboard.reports.ledger_days import StoredBuild, digest
from dashboard.reports.ledger_readings import Kept
from steward.ids import BatchId
from steward.ports import Writer
from steward.version import __version__

ID_PARTS: Final = 6
OUTCOME_PARTS: Final = 4
"""The parts of a build's id up to its content."""
ROWS_PER_APPEND: Final = 50_000
"""Some 20 MB: far below what one request may carry."""
HASH_SEED: Final = 7
DEVICE: Final = ("device_uuid", "instance_id")
SUMS: Final = ("wall_ticks", *LEAVES, *OVERLAYS, "memory_peak_bytes")
TELLING_DIGITS: Final = 9
"""Digits by which floating sums are compared: their last ones differ from run to run."""
_EXACT: Final = (*DEVICE, *KEYS, "wall_ticks", *LEAVES)


def input_counts_of(build_id: str) -> tuple[int, int] | None:
    """Return readings and holdings stored when an hour was built; None: the id does not tell."""
    parts = build_id.split(".")
    is_told = len(parts) == ID_PARTS and parts[1].isdecimal() and parts[2].isdecimal()
    return (int(parts[1]), int(parts[2])) if is_told else None


def hour_builds(
    books: Books,
    hours: Sequence[datetime],
    *,
    counts: Mapping[datetime, tuple[int, int]],
    known: Mapping[datetime, StoredBuild],
) -> dict[datetime, str]:
    """Return the ids of those hours that differ from their newest build.

    Args:
        books: the ledger of one chunk.
        hours: the hours of the chunk.
        counts: readings and holdings stored of each hour.
        known: the newest build of each hour that has one.
    """
    contents = _contents(books)
    prefixes = {
        at: ".".join(
            (
                f"{at:%Y%m%d%H}",
                *(str(each) for each in counts.get(at, (0, 0))),
                contents.get(at, "0"),
            )
        )
        for at in hours
    }
    changed = {
        at: prefix
        for at, prefix in prefixes.items()
        if at not in known or known[at].build_id.split(".")[:OUTCOME_PARTS] != prefix.split(".")
    }
    numbered = {
        at: f"{prefix}.{known[at].build_count if at in known else 0}"
        for at, prefix in changed.items()
    }
    chunk = digest(list(numbered.values()))
    return {at: f"{prefix}.{chunk}" for at, prefix in numbered.items()}


def store_hours(
    writer: Writer,
    kept: Kept,
    builds: Mapping[datetime, str],
    *,
    known: Mapping[datetime, StoredBuild],
    now: datetime,
) -> int:
    """Store these builds and return how many rows of the ledger they hold.

    Raises:
        WarehouseError: the warehouse cannot serve; what is stored does not count yet.
    """
    chunk = digest(list(builds.values()))
    named = pl.DataFrame(
        {"hour_at": list(builds), "build_id": list(builds.values())},
        schema={"hour_at": INSTANT, "build_id": pl.String},
    )
    rows = _of_hours(kept.books.rows, named).select("build_id", "hour_at", *_ordered())
    rest = _of_hours(kept.books.rest, named).select("build_id", "hour_at", *SCHEMAS["rest"].names())
    append(writer, "ledger_hour", rows, name=chunk)
    append(writer, "rest_stretch", rest, name=chunk)
    counted = named.join(rows.group_by("hour_at").len("row_count"), on="hour_at", how="left")
    told = counted.join(kept.books.caveats, left_on="hour_at", right_on="starts_at", how="left")
    append(
        writer,
        "ledger_build",
        _build_rows(told, known, now).with_columns(shapes_version=pl.lit(kept.shapes_version)),
        name=chunk,
    )
    return rows.height


def store_day(
    writer: Writer,
    sums: pl.DataFrame,
    caveats: pl.DataFrame,
    *,
    day_at: datetime,
    build_id: str,
    built_at: datetime,
) -> None:
    """Store one day: the sums of its hours, and last the row that makes it count.

    Raises:
        WarehouseError: the warehouse cannot serve; what is stored does not count yet.
    """
    rows = sums.select(
        pl.lit(build_id).alias("build_id"),
        pl.lit(day_at, dtype=INSTANT).alias("day_at"),
        *KEYS,
        *SUMS,
    )
    append(writer, "ledger_day", rows, name=build_id)
    told = caveats.select(
        pl.lit(built_at, dtype=INSTANT).alias("built_at"),
        pl.lit(build_id).alias("build_id"),
        pl.lit("day").alias("grain"),
        pl.lit(day_at, dtype=INSTANT).alias("starts_at"),
        pl.lit(rows.height).alias("row_count"),
        pl.col("stray_device_count").max(),
        pl.col("indistinct_device_count").max(),
        pl.col("unplaced_allocation_count").max(),
        pl.col("unplaced_gpu_hours").sum(),
        pl.col("has_holders").any(),
        pl.lit(__version__).alias("code_version"),
    )
    append(writer, "ledger_build", told, name=build_id)


def append(writer: Writer, table: str, rows: pl.DataFrame, *, name: str) -> None:
    """Store rows in parts whose ids follow from the name: again is not twice."""
    for part, start in enumerate(range(0, rows.height, ROWS_PER_APPEND)):
        writer.append(
            table,
            rows.slice(start, ROWS_PER_APPEND),
            batch_id=BatchId(f"{table}/{name}/{part}"),
        )


def _contents(books: Books) -> dict[datetime, str]:
    """Return a digest of what each hour holds, whatever the order of its rows."""
    telling = cs.float().round_sig_figs(TELLING_DIGITS)
    hashed = [
        rows.select(
            pl.col("started_at").dt.truncate("1h").alias("hour_at"),
            rows.with_columns(telling).hash_rows(seed=HASH_SEED).alias("row_hash"),
        )
        for rows in (books.rows, books.rest)
    ]
    joined = (
        pl.concat(hashed)
        .group_by("hour_at")
        .agg(pl.col("row_hash").bitwise_xor(), pl.len().alias("row_count"))
    )
    return {at: f"{row_hash:016x}{row_count:x}" for at, row_hash, row_count in joined.iter_rows()}


def _of_hours(rows: pl.DataFrame, named: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of the hours that are to be stored, with their builds, in a fixed order."""
    told = rows.with_columns(hour_at=pl.col("started_at").dt.truncate("1h"))
    exact = [name for name in _EXACT if name in rows.columns]
    return told.join(named, on="hour_at").sort("hour_at", "started_at", *exact, nulls_last=True)


def _ordered() -> tuple[str, ...]:
    return ("cluster", "node", "model", *DEVICE, *KEYS[3:], *SUMS)


def _build_rows(
    told: pl.DataFrame, known: Mapping[datetime, StoredBuild], now: datetime
) -> pl.DataFrame:
    """Return one row per build; each is newer than all builds of its hour before it."""
    built_at = [
        max(now, known[at].built_at + TICK) if at in known else now for at in told["hour_at"]
    ]
    return told.select(
        pl.Series("built_at", built_at, dtype=INSTANT),
        "build_id",
        pl.lit("hour").alias("grain"),
        pl.col("hour_at").alias("starts_at"),
        pl.col("row_count").fill_null(0),
        pl.col("stray_device_count").fill_null(0),
        pl.col("indistinct_device_count").fill_null(0),
        pl.col("unplaced_allocation_count").fill_null(0),
        pl.col("unplaced_gpu_hours").fill_null(0.0),
        pl.col("has_holders").fill_null(value=False),
        pl.lit(__version__).alias("code_version"),
    )
