"""Arrow tables from the warehouse as Polars frames, and rows of state tables too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl
from polars import selectors as cs

from steward.ports import ArrowTable


@dataclass(frozen=True, slots=True)
class _Stream:
    """An Arrow table seen as no more than a stream of chunks.

    Polars joins the chunks of tables whose library it knows in one copy, which doubles memory.
    """

    table: ArrowTable

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the table's own stream."""
        return self.table.__arrow_c_stream__(requested_schema)


def frame(table: ArrowTable) -> pl.DataFrame:
    """Return an Arrow table as a Polars frame, chunk by chunk, without one joint copy."""
    return pl.DataFrame(_Stream(table))


def state_frame(rows: Sequence[Mapping[str, object]], schema: pl.Schema) -> pl.DataFrame:
    """Return rows of a state table in declared types; instants are read from their texts.

    Args:
        rows: as the warehouse lists them, newest first; columns not declared are left out.
        schema: of the table's input.
    """
    stored = pl.Schema(
        {name: pl.String() if kind.is_temporal() else kind for name, kind in schema.items()}
    )
    columns = {name: [row.get(name) for row in rows] for name in schema}
    read = pl.DataFrame(columns, schema=stored, strict=False)
    instants = [name for name, kind in schema.items() if kind.is_temporal()]
    told = read.with_columns(cs.by_name(instants).str.to_datetime(time_unit="us", time_zone="UTC"))
    return told.cast(schema)
