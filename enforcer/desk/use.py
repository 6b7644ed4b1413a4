"""What an approver should know: what was held lately and since each grant, and to what effect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from enforcer.desk.model import Case, State
from steward.ports import Parameter, Reader
from steward.units import TICKS_PER_GPU_HOUR

LOOK_BACK: Final = timedelta(days=7)
_GRANTED: Final = frozenset({State.GRANTED, State.APPLIED, State.FAILED, State.EXPIRED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """What somebody held in some time, by the ledger's built hours."""

    held_gpu_hours: float
    idle_gpu_hours: float
    unknown_gpu_hours: float
    effective_ratio: float | None
    """Effective utilisation over the time for which it is known; None: for none of it."""
    known_ratio: float | None
    """Share of the held time for which it is known; None: nothing was held."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierGrant:
    """A grant for the same scope, and what was done with it."""

    case: Case
    use: Use | None
    """Since it began, until it ended; None: no hour of it is built."""


def use_of(
    reader: Reader,
    case: Case,
    *,
    from_at: datetime,
    until_at: datetime,
) -> Use | None:
    """Return what the case's workload or team held; None where no hour is built.

    Args:
        reader: the warehouse.
        case: whose scope is meant.
        from_at: the first hour, rounded down.
        until_at: rounded down.
    """
    request = case.request
    is_workload = request.scope_kind == "workload"
    parameters: dict[str, Parameter] = {
        "from_at": _hour(from_at),
        "until_at": _hour(until_at),
        "cluster": request.cluster,
        "tenant_id": None if is_workload else request.tenant_id,
        "workload_uid": request.scope_key if is_workload else None,
    }
    from polars import DataFrame

    row = DataFrame(reader.query("desk_use", parameters)).row(0, named=True)
    if not row["built_hour_count"]:
        return None
    held = _number(row["held_ticks"]) / TICKS_PER_GPU_HOUR
    known_s = _number(row["effective_known_s"])
    return Use(
        held_gpu_hours=held,
        idle_gpu_hours=_number(row["idle_ticks"]) / TICKS_PER_GPU_HOUR,
        unknown_gpu_hours=_number(row["unknown_ticks"]) / TICKS_PER_GPU_HOUR,
        effective_ratio=_number(row["effective_s"]) / known_s if known_s else None,
        known_ratio=known_s / 3600 / held if held else None,
    )


def earlier_grants(
    reader: Reader, case: Case, cases: Sequence[Case], *, now: datetime
) -> tuple[EarlierGrant, ...]:
    """Return what was granted for the same scope before, newest first."""
    request = case.request
    same = [
        one
        for one in cases
        if one.request.request_id < request.request_id
        and one.state in _GRANTED
        and (one.request.cluster, one.request.scope_kind, one.request.scope_key)
        == (request.cluster, request.scope_kind, request.scope_key)
    ]
    return tuple(
        EarlierGrant(
            case=one,
            use=use_of(
                reader,
                one,
                from_at=one.request.period.from_at,
                until_at=min(now, one.request.period.until_at),
            ),
        )
        for one in reversed(same)
    )


def _hour(at: datetime) -> datetime:
    return at.replace(minute=0, second=0, microsecond=0)


def _number(value: object) -> float:
    return 0.0 if value is None else float(str(value))
