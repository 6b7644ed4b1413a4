"""The stored rows behind questions of who has which device, together."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """The stored rows that decide who had which device when (declared in ``analytics.inputs``)."""

    nodes: pl.DataFrame
    devices: pl.DataFrame
    events: pl.DataFrame
    allocations: pl.DataFrame
