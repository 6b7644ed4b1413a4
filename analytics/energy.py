"""Energy that devices used between two readings of their counters, and only where it can be so.

A counter restarts when the driver is reloaded, and firmware has been seen to run below zero. A
difference is believed up to twice what the board may draw in that time; a larger one is no reading,
and its interval is unknown, never 0.
"""

from __future__ import annotations

from typing import Final

import polars as pl

LARGEST_POWER_W: Final = 5_000.0
"""Limit of a board that does not tell its own: above any single board of 2026."""
SLACK_RATIO: Final = 2.0
"""Boards exceed their limit for moments, and exporters read late."""
SHORTEST_S: Final = 60.0
"""An exporter that reads every 30 s shows the energy of 30 s between two scrapes of 5 s."""
_DEVICE: Final = ("cluster", "node", "device_uuid")


def used_energy(samples: pl.DataFrame) -> pl.DataFrame:
    """Return the energy between consecutive readings of each board's counter.

    Args:
        samples: one row per board and reading
            cluster str, node str, device_uuid str, sampled_at datetime, energy_j f64 | null,
            power_limit_w f64 | null

    Returns:
        one row per pair of readings that are not null, by cluster, node, device_uuid and time
            cluster str, node str, device_uuid str, from_at datetime, until_at datetime,
            used_j f64 | null
        Null where the counters cannot both be right: such an interval is left out of sums.
    """
    told = samples.filter(pl.col("energy_j").is_not_null()).sort(*_DEVICE, "sampled_at")
    pairs = told.with_columns(
        from_at=pl.col("sampled_at").shift(1).over(_DEVICE),
        before_j=pl.col("energy_j").shift(1).over(_DEVICE),
    ).filter(pl.col("from_at").is_not_null())
    elapsed_s = (pl.col("sampled_at") - pl.col("from_at")).dt.total_microseconds() / 1e6
    limit_w = pl.col("power_limit_w").fill_null(LARGEST_POWER_W)
    return pairs.select(
        *_DEVICE,
        "from_at",
        until_at="sampled_at",
        used_j=believed_j(
            pl.col("before_j"), pl.col("energy_j"), elapsed_s=elapsed_s, limit_w=limit_w
        ),
    )


def believed_j(
    before_j: pl.Expr, after_j: pl.Expr, *, elapsed_s: pl.Expr, limit_w: pl.Expr
) -> pl.Expr:
    """Return the energy between two readings of a counter; null where both cannot be right."""
    grown_j = after_j - before_j
    used_j = pl.when(grown_j >= 0).then(grown_j).otherwise(after_j)
    most_j = limit_w * SLACK_RATIO * pl.max_horizontal(elapsed_s, pl.lit(SHORTEST_S))
    return pl.when(used_j <= most_j).then(used_j)
