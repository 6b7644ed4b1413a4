"""Builders of ledger rows with harmless defaults: a case shows only what it is about."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from analytics.schemas.usage import LEAVES, OVERLAYS
from steward.units import SECONDS_PER_HOUR, TICKS_PER_GPU_HOUR
from tests.support.analytics_frames import HOUR, NOON, framed

_HELD: Mapping[str, object] = {
    "is_held": True,
    "tenant_id": "team-a",
    "workload_class": "training",
    "workload_uid": "w1",
    "queue": "team-a",
    "priority_class": "standard",
    "owner": "ann",
    "tier": 1,
}
_FREE: Mapping[str, object] = {"is_held": False}
_PLACE: Mapping[str, object] = {"cluster": "c", "node": "n1", "model": "H100"}


def held(**given: object) -> dict[str, object]:
    """Return one row of held time; leaves are given in GPU-hours, as ``used=2, idle=1``."""
    return _row(_HELD, given)


def free(**given: object) -> dict[str, object]:
    """Return one row of time that nobody held."""
    return _row(_FREE, given)


def ledger(*rows: Mapping[str, object]) -> pl.DataFrame:
    """Return ledger rows as the query gives them."""
    return framed("ledger", rows)


def _row(holder: Mapping[str, object], given: Mapping[str, object]) -> dict[str, object]:
    """Turn GPU-hours by short leaf name into ticks that add up to the wall clock."""
    short = {
        "used": "used_measured_ticks",
        **{name.removesuffix("_ticks"): name for name in LEAVES},
    }
    hours = {short[name]: value for name, value in given.items() if name in short}
    ticks = {name: round(float(str(hours.get(name, 0))) * TICKS_PER_GPU_HOUR) for name in LEAVES}
    known = ticks["used_measured_ticks"] + ticks["ineffective_ticks"] + ticks["idle_ticks"]
    seconds = known / TICKS_PER_GPU_HOUR * SECONDS_PER_HOUR
    effective_s = ticks["used_measured_ticks"] / TICKS_PER_GPU_HOUR * SECONDS_PER_HOUR
    overlays = dict.fromkeys(OVERLAYS, 0.0) | {
        "observed_s": seconds,
        "effective_s": effective_s,
        "effective_known_s": seconds,
    }
    rest = {name: value for name, value in given.items() if name not in short}
    return {
        "started_at": NOON,
        "ended_at": NOON + HOUR,
        **_PLACE,
        **holder,
        "wall_ticks": sum(ticks.values()),
        **ticks,
        **overlays,
        **rest,
    }
