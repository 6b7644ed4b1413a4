"""Small simulated fleets for tests: built once for each set of parameters."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache

import polars as pl
import pyarrow as pa

from collector.batches import Batch
from collector.sources.simulated import SimulationParameters, simulated_batches
from collector.sources.simulated.world import World, build_world

UNTIL_AT = datetime(2026, 6, 15, tzinfo=UTC)


def parameters(
    *,
    seed: int = 7,
    days: int = 1,
    node_count: int = 6,
    cadence_s: int = 600,
    until_at: datetime = UNTIL_AT,
) -> SimulationParameters:
    """Return parameters of a fleet that is quick to make."""
    return SimulationParameters(
        seed=seed, days=days, node_count=node_count, cadence_s=cadence_s, until_at=until_at
    )


@cache
def world(asked: SimulationParameters) -> World:
    """Return the world of these parameters."""
    return build_world(asked)


@cache
def batches(asked: SimulationParameters) -> tuple[Batch, ...]:
    """Return all batches of these parameters."""
    return tuple(simulated_batches(asked))


@cache
def table(asked: SimulationParameters, name: str) -> pl.DataFrame:
    """Return all rows of one table."""
    parts = [batch.rows for batch in batches(asked) if batch.table == name]
    return pl.DataFrame(pa.concat_tables(parts))


def mean(rows: pl.DataFrame, column: str) -> float:
    """Return the mean of what is known."""
    known = rows[column].drop_nulls().to_list()
    return float(sum(known) / len(known))


def extent(rows: pl.DataFrame, column: str) -> tuple[float, float]:
    """Return the smallest and the largest known value."""
    known = rows[column].drop_nulls().to_list()
    return float(min(known)), float(max(known))
