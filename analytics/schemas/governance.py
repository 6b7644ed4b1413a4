"""Rows of quota, verdicts, actions and declared value."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import polars as pl

SCHEMAS: Final[Mapping[str, pl.Schema]] = MappingProxyType({})
