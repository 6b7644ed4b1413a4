"""What a board draws at rest: the floor from which its power says how hard it works."""

from __future__ import annotations

import polars as pl

from analytics.bookkeeping.material import Material
from analytics.lifetimes import DEVICE
from analytics.tiers import IDLE_BELOW_RATIO


def power_floors(stock: Material) -> pl.DataFrame:
    """Return what boards of each model draw at rest, learnt from the readings.

    A board in MIG mode draws more at rest, and its power belongs to no instance: boards with MIG
    instances are left out and get no floor.

    Returns:
        one row per model that was seen at rest, ascending: model str, power_idle_w f64
            the median over boards of the lowest power that each was seen to draw at rest
    """
    plain = _plain_boards(stock.devices)
    at_rest = (pl.col("busy_ratio") == 0) | (
        pl.col("busy_ratio").is_null() & (pl.col("graphics_active_ratio") < IDLE_BELOW_RATIO)
    )
    lowest = (
        stock.samples.filter(pl.col("instance_id").is_null() & (pl.col("power_w") > 0) & at_rest)
        .group_by("device_key")
        .agg(pl.col("power_w").cast(pl.Float64).min())
    )
    return (
        plain.join(lowest, on="device_key")
        .group_by("model")
        .agg(power_idle_w=pl.col("power_w").median())
        .filter(pl.col("model").is_not_null())
        .sort("model")
    )


def floors_by_device(devices: pl.DataFrame, floors: pl.DataFrame) -> pl.DataFrame:
    """Return device_uuid and power_idle_w of the boards that have a floor."""
    return _plain_boards(devices).join(floors, on="model").select(DEVICE, "power_idle_w")


def _plain_boards(devices: pl.DataFrame) -> pl.DataFrame:
    """Return device_uuid, device_key and model (the last told) of boards without MIG instances."""
    return (
        devices.sort("observed_at")
        .group_by(DEVICE)
        .agg(
            pl.col("device_key").first(),
            pl.col("model").drop_nulls().last(),
            has_instances=pl.col("instance_id").is_not_null().any(),
        )
        .filter(~pl.col("has_instances"))
        .drop("has_instances")
        .sort(DEVICE)
    )
