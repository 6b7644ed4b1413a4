"""Rows of how work waits and why: transitions, conditions, events, pods."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import polars as pl

SCHEMAS: Final[Mapping[str, pl.Schema]] = MappingProxyType({})
