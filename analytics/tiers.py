"""What one reading says: apparent and effective utilisation, how well known, idle or not.

Formulas: roofline over device-slice ratios. Compute saturation is the busiest pipe over its
practical peak, memory saturation is DRAM activity over its practical peak, and effective
utilisation is the nearer of the two, never above SM activity.
"""

from __future__ import annotations

from typing import Final

import polars as pl

TENSOR_PEAK_RATIO: Final = 0.93
"""Practical ceiling of the tensor pipe's activity."""
DRAM_PEAK_RATIO: Final = 0.80
"""Practical ceiling of DRAM activity."""
IDLE_BELOW_RATIO: Final = 0.01
"""SM, graphics and DRAM activity below this count as idle."""
STUCK_APPARENT_RATIO: Final = 0.95
"""A device that works on nothing but looks at least this busy is suspected stuck."""
STUCK_WORK_BELOW_RATIO: Final = 0.02
"""Tensor, DRAM and floating-point activity together, below which nothing is worked on."""

TIER_PIPES: Final = 1
"""Pipes and DRAM (and SM activity where known): measured."""
TIER_SM: Final = 2
"""SM activity only: an upper bound."""
TIER_POWER: Final = 3
"""Power between idle and limit: a proxy."""
TIER_APPARENT: Final = 4
"""Apparent utilisation only: effective utilisation is unknown."""

RATIOS: Final = (
    "busy_ratio",
    "graphics_active_ratio",
    "sm_active_ratio",
    "tensor_active_ratio",
    "dram_active_ratio",
    "fp64_active_ratio",
    "fp32_active_ratio",
    "fp16_active_ratio",
)
_FLOAT_PIPES: Final = ("fp64_active_ratio", "fp32_active_ratio", "fp16_active_ratio")

apparent: Final = pl.coalesce("busy_ratio", "graphics_active_ratio")
_sm: Final = pl.col("sm_active_ratio")
_tensor: Final = pl.col("tensor_active_ratio")
_dram: Final = pl.col("dram_active_ratio")
_pipes_known: Final = _dram.is_not_null() & (
    _tensor.is_not_null() | pl.all_horizontal(pl.col(name).is_not_null() for name in _FLOAT_PIPES)
)


def with_readings(
    samples: pl.DataFrame, *, power_bounds: pl.DataFrame | None = None
) -> pl.DataFrame:
    """Return samples with what each one says of utilisation.

    Args:
        samples: any grain, with the ratios of ``RATIOS`` (f32 or f64, null where unknown); with
            ``power_bounds`` also model str, is_mig bool, power_w f64.
        power_bounds: one row per model and MIG mode (the idle floor differs by mode)
            model str, is_mig bool, power_idle_w f64, power_limit_w f64
            None: no proxy from power; such readings have tier 4.

    Returns:
        the same rows in the same order, ratios clamped to 0..1, and added
            apparent_ratio, apparent_source ("busy" | "graphics"), effective_ratio, gap_ratio,
            tier i8 (1..4), is_idle bool, is_stuck bool
        Each is null where the reading cannot say; a null reading is never idle.
    """
    clamped = samples.with_columns(pl.col(RATIOS).clip(0, 1))
    bounded = _with_power_ratio(clamped, power_bounds)
    return (
        bounded.with_columns(
            apparent_ratio=apparent,
            apparent_source=_apparent_source(),
            tier=_tier(),
            is_idle=_is_idle(),
            is_stuck=_is_stuck(),
        )
        .with_columns(effective_ratio=_effective())
        .with_columns(
            gap_ratio=(pl.col("apparent_ratio") - pl.col("effective_ratio")).clip(lower_bound=0)
        )
        .drop("power_ratio")
    )


def _with_power_ratio(samples: pl.DataFrame, bounds: pl.DataFrame | None) -> pl.DataFrame:
    if bounds is None:
        return samples.with_columns(power_ratio=pl.lit(None, dtype=pl.Float64))
    idle, limit = pl.col("power_idle_w"), pl.col("power_limit_w")
    usable = limit > idle
    ratio = pl.when(usable).then(((pl.col("power_w") - idle) / (limit - idle)).clip(0, 1))
    joined = samples.join(bounds, on=["model", "is_mig"], how="left", maintain_order="left")
    return joined.with_columns(power_ratio=ratio).drop("power_idle_w", "power_limit_w")


def _apparent_source() -> pl.Expr:
    return (
        pl.when(pl.col("busy_ratio").is_not_null())
        .then(pl.lit("busy"))
        .when(pl.col("graphics_active_ratio").is_not_null())
        .then(pl.lit("graphics"))
    )


def _tier() -> pl.Expr:
    return (
        pl.when(_pipes_known)
        .then(pl.lit(TIER_PIPES, dtype=pl.Int8))
        .when(_sm.is_not_null())
        .then(pl.lit(TIER_SM, dtype=pl.Int8))
        .when(pl.col("power_ratio").is_not_null())
        .then(pl.lit(TIER_POWER, dtype=pl.Int8))
        .when(apparent.is_not_null())
        .then(pl.lit(TIER_APPARENT, dtype=pl.Int8))
    )


def _effective() -> pl.Expr:
    compute = pl.max_horizontal(_tensor / TENSOR_PEAK_RATIO, *_FLOAT_PIPES)
    saturation = pl.max_horizontal(compute, _dram / DRAM_PEAK_RATIO).clip(upper_bound=1)
    tier = pl.col("tier")
    return (
        pl.when(tier == TIER_PIPES)
        .then(pl.min_horizontal(_sm, saturation))
        .when(tier == TIER_SM)
        .then(_sm)
        .when(tier == TIER_POWER)
        .then(pl.col("power_ratio"))
    )


def _is_idle() -> pl.Expr:
    graphics, busy = pl.col("graphics_active_ratio"), pl.col("busy_ratio")
    at_rest = (
        pl.when(_sm.is_not_null())
        .then(_sm < IDLE_BELOW_RATIO)
        .when(graphics.is_not_null())
        .then(graphics < IDLE_BELOW_RATIO)
        .otherwise(busy == 0)
    )
    return at_rest & (_dram < IDLE_BELOW_RATIO).fill_null(value=True)


def _is_stuck() -> pl.Expr:
    work = pl.sum_horizontal(_tensor, _dram, *_FLOAT_PIPES)
    return pl.when(_pipes_known).then(
        (apparent >= STUCK_APPARENT_RATIO) & (work < STUCK_WORK_BELOW_RATIO)
    )
