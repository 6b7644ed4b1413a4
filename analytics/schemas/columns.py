"""How a schema is written."""

from __future__ import annotations

from typing import Final

import polars as pl

INSTANT: Final = pl.Datetime("us", "UTC")
"""Every instant is UTC in microseconds."""


def rows(**columns: pl.DataType | type[pl.DataType]) -> pl.Schema:
    """Return the schema of these columns, in order."""
    return pl.Schema(columns)
