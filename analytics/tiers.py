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
"""Tensor, DRAM, floating-point and integer activity together, below which nothing is done."""
STUCK_POWER_BELOW_RATIO: Final = 0.3
"""A device that draws at least this much of the power between idle and limit does something."""

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
INTEGER_PIPE: Final = "integer_active_ratio"
"""Few exporters tell it: where the column is missing it counts as unknown."""
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
        integer_active_ratio is used where the samples have it.
    """
    whole = with_integer_pipe(samples)
    clamped = whole.with_columns(pl.col(*RATIOS, INTEGER_PIPE).clip(0, 1))
    bounded = _with_power_ratio(clamped, power_bounds)
    return (
        bounded.with_columns(
            apparent_ratio=apparent,
            apparent_source=_apparent_source(),
            tier=tier(),
            is_idle=is_idle(),
            is_stuck=is_stuck(),
        )
        .with_columns(effective_ratio=effective())
        .with_columns(
            gap_ratio=(pl.col("apparent_ratio") - pl.col("effective_ratio")).clip(lower_bound=0)
        )
        .drop("power_ratio")
    )


def with_integer_pipe(samples: pl.DataFrame) -> pl.DataFrame:
    """Return samples with integer_active_ratio, null where they did not have it."""
    if INTEGER_PIPE in samples.columns:
        return samples
    return samples.with_columns(pl.lit(None, dtype=pl.Float32).alias(INTEGER_PIPE))


def _with_power_ratio(samples: pl.DataFrame, bounds: pl.DataFrame | None) -> pl.DataFrame:
    if bounds is None:
        return samples.with_columns(power_ratio=pl.lit(None, dtype=pl.Float64))
    joined = samples.join(bounds, on=["model", "is_mig"], how="left", maintain_order="left")
    return joined.with_columns(power_ratio=power_ratio()).drop("power_idle_w", "power_limit_w")


def power_ratio() -> pl.Expr:
    """Return where power_w lies between power_idle_w and power_limit_w; null where unknown."""
    idle, limit = pl.col("power_idle_w"), pl.col("power_limit_w")
    return pl.when(limit > idle).then(((pl.col("power_w") - idle) / (limit - idle)).clip(0, 1))


def _apparent_source() -> pl.Expr:
    return (
        pl.when(pl.col("busy_ratio").is_not_null())
        .then(pl.lit("busy"))
        .when(pl.col("graphics_active_ratio").is_not_null())
        .then(pl.lit("graphics"))
    )


def tier() -> pl.Expr:
    """Return how use is known (i8), of clamped ratios and power_ratio."""
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


def effective() -> pl.Expr:
    """Return effective utilisation, of clamped ratios, power_ratio and tier."""
    compute = pl.max_horizontal(_tensor / TENSOR_PEAK_RATIO, *_FLOAT_PIPES, INTEGER_PIPE)
    saturation = pl.max_horizontal(compute, _dram / DRAM_PEAK_RATIO).clip(upper_bound=1)
    known_by = pl.col("tier")
    return (
        pl.when(known_by == TIER_PIPES)
        .then(pl.min_horizontal(_sm, saturation))
        .when(known_by == TIER_SM)
        .then(_sm)
        .when(known_by == TIER_POWER)
        .then(pl.col("power_ratio"))
    )


def is_idle() -> pl.Expr:
    """Return whether the device was at rest, of clamped ratios; null where nothing says."""
    graphics, busy = pl.col("graphics_active_ratio"), pl.col("busy_ratio")
    at_rest = (
        pl.when(_sm.is_not_null())
        .then(_sm < IDLE_BELOW_RATIO)
        .when(graphics.is_not_null())
        .then(graphics < IDLE_BELOW_RATIO)
        .otherwise(busy == 0)
    )
    return at_rest & (_dram < IDLE_BELOW_RATIO).fill_null(value=True)


def is_stuck() -> pl.Expr:
    """Return whether the device looks busy while nothing works, of clamped ratios.

    Where power is known between idle and limit (power_ratio), it must be low as well.
    """
    is_quiet = (pl.col("power_ratio") < STUCK_POWER_BELOW_RATIO).fill_null(value=True)
    work = pl.sum_horizontal(_tensor, _dram, *_FLOAT_PIPES, INTEGER_PIPE)
    return pl.when(_pipes_known).then(
        (apparent >= STUCK_APPARENT_RATIO) & (work < STUCK_WORK_BELOW_RATIO) & is_quiet
    )
