"""Declared shapes of the stored rows that measures read, and the one border where they are checked.

Each schema is named after the query that fills it. Nothing here measures.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import polars as pl
from polars import selectors as cs

from analytics.schemas import capability, governance, lifecycle, money, telemetry, usage
from steward.errors import InputError

SCHEMAS: Final[Mapping[str, pl.Schema]] = MappingProxyType(
    {
        **telemetry.SCHEMAS,
        **usage.SCHEMAS,
        **lifecycle.SCHEMAS,
        **money.SCHEMAS,
        **governance.SCHEMAS,
        **capability.SCHEMAS,
    }
)
"""Columns and dtypes by query name; a query may return them in any integer or float width."""

COMPOSED: Final = ("ledger", "rest", "ledger_caveat")
"""Inputs that no single query fills: what is built, and readings where nothing is built yet."""
STATE: Final = "state."
"""Inputs of this prefix are rows of the state table of that name."""


OPTIONAL: Final[Mapping[str, frozenset[str]]] = MappingProxyType({"ledger": frozenset(usage.ASKED)})
"""Columns that rows may lack: a report that asked for less does not read them."""


def queries() -> tuple[str, ...]:
    """Return the inputs that a named query of the same name fills."""
    return tuple(name for name in SCHEMAS if name not in COMPOSED and not name.startswith(STATE))


def conform(name: str, frame: pl.DataFrame) -> pl.DataFrame:
    """Return the declared columns of a query's rows, in UTC, with NaN turned into null.

    Raises:
        InputError: a declared column is missing that is not ``OPTIONAL``.
    """
    declared = SCHEMAS[name]
    missing = sorted(set(declared) - set(frame.columns) - OPTIONAL.get(name, frozenset()))
    if missing:
        raise InputError(
            f"rows of {name} lack the column(s) {', '.join(missing)}",
            hint="select every column that the query declares",
        )
    schema = {column: kind for column, kind in declared.items() if column in frame.columns}
    zoned = frame.select(*schema).with_columns(
        cs.datetime(time_zone="*").dt.convert_time_zone("UTC")
    )
    typed = zoned.cast(pl.Schema(schema))
    spoiled = typed.select(cs.float().is_nan().any())
    nan_columns = [name for name in spoiled.columns if spoiled[name].item()]
    return typed.with_columns(pl.col(nan_columns).fill_nan(None)) if nan_columns else typed


def empty(name: str) -> pl.DataFrame:
    """Return no rows of a query, with its declared columns."""
    return pl.DataFrame(schema=SCHEMAS[name])
