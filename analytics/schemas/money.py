"""Rows of the state that money needs: prices, rates, tariffs, budgets, closed periods."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import polars as pl

SCHEMAS: Final[Mapping[str, pl.Schema]] = MappingProxyType({})
