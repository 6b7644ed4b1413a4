"""The Arrow types of columns, and how a table's schema is written with them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pyarrow as pa

INSTANT: Final = pa.timestamp("us", tz="UTC")
TEXT: Final = pa.string()
RATIO: Final = pa.float64()
INTEGER: Final = pa.int32()
BIG: Final = pa.int64()
REAL: Final = pa.float64()
FLAG: Final = pa.bool_()


def schema(columns: Mapping[str, pa.DataType], *, required: str) -> pa.Schema:
    """Return a schema in which the named (space separated) columns refuse null."""
    names = set(required.split())
    return pa.schema(
        [pa.field(name, kind, nullable=name not in names) for name, kind in columns.items()]
    )
