"""The export as a file: CSV for anything, Parquet with exact decimals or with doubles."""

from __future__ import annotations

import io
from typing import Final, Literal

import polars as pl
from polars import selectors as cs

Decimals = Literal["decimal", "double"]
INSTANT_FORMAT: Final = "%Y-%m-%dT%H:%M:%SZ"
"""How the specification writes instants: UTC, to the second."""


def as_csv(frame: pl.DataFrame) -> str:
    """Return the rows as UTF-8 text without byte order mark.

    Decimals have a point and all of their decimals, an unknown value is an empty cell, and texts
    are as they are: the file is for programs.
    """
    written = frame.with_columns(cs.datetime().dt.strftime(INSTANT_FORMAT))
    return written.write_csv(line_terminator="\n", null_value="")


def as_parquet(frame: pl.DataFrame, *, decimals: Decimals = "decimal") -> bytes:
    """Return the rows as Parquet: instants as UTC timestamps, amounts as told by ``decimals``."""
    typed = frame if decimals == "decimal" else frame.with_columns(cs.decimal().cast(pl.Float64))
    out = io.BytesIO()
    typed.write_parquet(out)
    return out.getvalue()
