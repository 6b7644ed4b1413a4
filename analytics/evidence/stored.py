"""Rows that evidence and standing need, as they come from the warehouse, in declared types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import polars as pl
from polars import selectors as cs

from analytics.inputs import SCHEMAS as REPORT_SCHEMAS
from analytics.schemas.evidence import SCHEMAS as OWN_SCHEMAS
from steward.period import Period
from steward.ports import ArrowTable

CELLED: Final = ("evidence_sample", "evidence_process")
"""Queries that also take ``cell_s``."""
QUERIES: Final = (
    *CELLED,
    "evidence_pod",
    "allocation_history",
    "device_history",
    "node_history",
    "node_place",
    "quota_use",
    "transition_history",
    "workload_current",
)
SCHEMAS: Final[Mapping[str, pl.Schema]] = {
    name: OWN_SCHEMAS[name] if name in OWN_SCHEMAS else REPORT_SCHEMAS[name] for name in QUERIES
}
_KEY: Final = "device_key"


@dataclass(frozen=True, slots=True)
class _Stream:
    """An Arrow table seen as no more than a stream of chunks: no joint copy is made of it."""

    table: ArrowTable

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the table's own stream."""
        return self.table.__arrow_c_stream__(requested_schema)


def frame_of(name: str, table: ArrowTable) -> pl.DataFrame:
    """Return the declared columns of a query's rows, in UTC, with NaN turned into null."""
    schema = SCHEMAS[name]
    typed = (
        pl.DataFrame(_Stream(table))
        .select(*schema)
        .with_columns(cs.datetime(time_zone="*").dt.convert_time_zone("UTC"))
        .cast(schema)
    )
    return typed.with_columns(cs.float().fill_nan(None))


def of_cluster(frames: Mapping[str, pl.DataFrame], cluster: str) -> dict[str, pl.DataFrame]:
    """Return the rows of one cluster; readings are those of its devices."""
    kept = {
        name: frame.filter(pl.col("cluster") == cluster) if "cluster" in frame.columns else frame
        for name, frame in frames.items()
    }
    keys = kept["device_history"].select(_KEY).drop_nulls().unique()
    return {
        name: frame.join(keys, on=_KEY, how="semi", maintain_order="left")
        if "cluster" not in frame.columns
        else frame
        for name, frame in kept.items()
    }


def joined(
    name: str, kept: pl.DataFrame, new: pl.DataFrame, *, period: Period, fresh: Period
) -> pl.DataFrame:
    """Return cells of a period from those kept and those read anew.

    Args:
        name: one of ``CELLED``.
        kept: cells from before.
        new: all cells of the end of the period, which replace what was kept of it.
        period: of the result.
        fresh: the end that was read anew; both begin with a cell.
    """
    begins = pl.col("first_at" if name == "evidence_sample" else "sampled_at")
    old = kept.filter((begins >= period.from_at) & (begins < fresh.from_at))
    return pl.concat([old, new])


def asks(rows: list[Mapping[str, object]]) -> pl.DataFrame:
    """Return rows of ``evidence_ask`` from values."""
    return pl.DataFrame(rows, schema=OWN_SCHEMAS["evidence_ask"], orient="row")
