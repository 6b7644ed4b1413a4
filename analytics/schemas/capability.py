"""Rows of what the house recorded of GPU models."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import polars as pl

from analytics.schemas.columns import INSTANT, rows

SCHEMAS: Final[Mapping[str, pl.Schema]] = MappingProxyType(
    {
        "state.capability": rows(
            capability_id=pl.Int64,
            gpu_model=pl.String,
            tier=pl.String,
            memory_bytes=pl.Int64,
            source=pl.String,
            author=pl.String,
            recorded_at=INSTANT,
        ),
    }
)
"""Of rows for one model, however spelled, the one with the highest capability_id counts."""
