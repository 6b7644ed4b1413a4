"""Long stretches in which held devices rested, or looked busy without working.

The gap rule: two stretches are one spell only where the second starts at the very instant the
first ends, of the same holder on the same device. A reading that is not idle or says nothing,
unobserved time and a change of holder leave no stretch, so each ends a spell, and so does memory
that grew; the border of an hour, at which stretches are stored cut, does not.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from steward.units import MIB_BYTES, MICROS_PER_SECOND, SECONDS_PER_HOUR, SECONDS_PER_MINUTE

IDLE_SPELL_MIN_S: Final = 10 * SECONDS_PER_MINUTE
"""Shorter rest is a pause: loading a batch, writing a checkpoint."""
STUCK_SPELL_MIN_S: Final = 15 * SECONDS_PER_MINUTE
"""Shorter waits of collective operations do happen in healthy work."""
MEMORY_GROWTH_BYTES: Final = MIB_BYTES
"""Memory in use growing by this much or more is a sign of work."""

_OWNER: Final = (
    "cluster",
    "node",
    "device_uuid",
    "instance_id",
    "tenant_id",
    "workload_class",
    "workload_uid",
    "namespace",
    "pod",
)
_SPELL: Final = (*_OWNER, "started_at", "ended_at", "length_s", "gpu_hours")


def idle_spells(rest: pl.DataFrame) -> pl.DataFrame:
    """Return stretches of at least ten minutes in which a holder's device did nothing.

    Args:
        rest: rows of ``rest``, in any order.

    Returns:
        one row per spell and holder, most GPU-hours first (ties by place, holder and time)
            cluster, node, device_uuid, instance_id, tenant_id, workload_class, workload_uid,
            namespace, pod, started_at, ended_at, length_s f64, gpu_hours f64 (length x share held)
        Memory in use that grows by 1 MiB or more, in a stretch or between two, ends a spell; a
        spell over which it grew by as much, little by little, is left out. Unknown memory does
        neither.
    """
    return _spells(rest.filter("is_idle"), min_s=IDLE_SPELL_MIN_S)


def stuck_spells(rest: pl.DataFrame) -> pl.DataFrame:
    """Return stretches of at least 15 minutes that look busy with no pipe and no memory working.

    Power is not consulted, so these are suspects. Columns and order as ``idle_spells``.
    """
    return _spells(rest.filter("is_stuck"), min_s=STUCK_SPELL_MIN_S)


def _spells(stretches: pl.DataFrame, *, min_s: int) -> pl.DataFrame:
    """Join stretches that touch; the caller has filtered, so that windows see few rows."""
    growth = (pl.col("memory_last_bytes") - pl.col("memory_first_bytes")).fill_null(0)
    is_still = growth < MEMORY_GROWTH_BYTES
    keys = ("gpu_hours", *_OWNER, "started_at")
    return (
        _joined(stretches.filter(is_still))
        .with_columns(length_s=_seconds(pl.col("ended_at") - pl.col("started_at")))
        .filter(pl.col("length_s") >= min_s, is_still)
        .sort(*keys, descending=[True] + [False] * (len(keys) - 1), nulls_last=True)
        .select(_SPELL)
    )


def _joined(stretches: pl.DataFrame) -> pl.DataFrame:
    owner = pl.struct(_OWNER)
    jump = pl.col("memory_first_bytes") - pl.col("memory_last_bytes").shift(1)
    is_new = (
        (pl.col("started_at") > pl.col("ended_at").shift(1))
        | (owner != owner.shift(1))
        | (jump >= MEMORY_GROWTH_BYTES).fill_null(value=False)
    )
    hours = _seconds(pl.col("ended_at") - pl.col("started_at")) / SECONDS_PER_HOUR
    return (
        stretches.sort(*_OWNER, "started_at", "ended_at", nulls_last=True)
        .with_columns(spell=is_new.fill_null(value=True).cum_sum())
        .group_by("spell")
        .agg(
            *[pl.col(name).first() for name in (*_OWNER, "started_at")],
            pl.col("ended_at").last(),
            pl.col("memory_first_bytes").drop_nulls().first(),
            pl.col("memory_last_bytes").drop_nulls().last(),
            gpu_hours=(hours * pl.col("gpu_share_ratio")).sum(),
        )
    )


def _seconds(length: pl.Expr) -> pl.Expr:
    return length.dt.total_microseconds() / MICROS_PER_SECOND
