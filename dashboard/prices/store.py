"""The state tables that money needs, as the command line reads and writes them."""

from __future__ import annotations

import polars as pl

from analytics.inputs import SCHEMAS, STATE, conform
from analytics.schemas.columns import INSTANT
from dashboard.prices.words import iso
from dashboard.reports.arrow import state_frame
from steward.ports import StateReader, StateValue


def rows(reader: StateReader, table: str) -> pl.DataFrame:
    """Return the rows of a state table, newest first, in declared types."""
    name = f"{STATE}{table}"
    return conform(name, state_frame(reader.state_rows(table), SCHEMAS[name]))


def records(frame: pl.DataFrame) -> list[dict[str, object]]:
    """Return rows with instants as texts, for listings."""
    texts = frame.with_columns(
        pl.col(name).map_batches(_texts, return_dtype=pl.String)
        for name, kind in frame.schema.items()
        if kind == INSTANT
    )
    return texts.to_dicts()


def _texts(instants: pl.Series) -> pl.Series:
    return pl.Series([None if at is None else iso(at) for at in instants], dtype=pl.String)


StoredRow = dict[str, StateValue]
"""A row to insert."""
