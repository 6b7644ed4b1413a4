"""The snapshot: everything that rules may know at one instant, from what was stored until then.

Building it reads nothing: the same history and instant give the same snapshot, now and later.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from analytics.evidence.free_rooms import rooms
from analytics.evidence.standing import holdings, standing
from enforcer.decisions import TAKING_STEPS
from enforcer.entries import Entries, delivered_notices, instant, past_actions
from enforcer.facts import Evidence, Exemption, Health, Notice, PastAction, Snapshot, Workload
from enforcer.history import History, StateRows, whole
from enforcer.policies.matching import Book
from enforcer.policies.model import IdleLimits, Policy
from enforcer.snapshot_evidence import evidence_of
from enforcer.snapshot_rows import Beside, Labels, quotas_of, rooms_of, workloads_of
from steward.period import Period

TAKEN: Final = "done"


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """What only the running cluster knows."""

    namespace_labels: Mapping[str, Labels] | None
    """By namespace. None: they could not be read; then no rule that exempts by them can be heeded,
    and so nobody is judged."""
    api_error_ratio: float
    """Failed among the Kubernetes calls of the last ten minutes, 0..1."""


NOT_LIVE: Final = Live(namespace_labels={}, api_error_ratio=0.0)
"""Of a moment in the past."""


def build(
    told: History, policies: Sequence[Policy], *, now: datetime, live: Live = NOT_LIVE
) -> Snapshot:
    """Return what is known at the last end of a cell before ``now``.

    Args:
        told: what was stored, from at least ``history.LOOK_BACK`` before ``now``.
        policies: in force; evidence of each workload is made for the limits of the rule that
            speaks of it. A workload of which no acting rule speaks gets no evidence.
        now: ``taken_at`` is never later; decide with ``taken_at``.
        live: what the cluster itself says.
    """
    at = whole(now, cell_s=told.readings.cell_s)
    actions, notices = _past(told, at), _notices(told, at)
    held = holdings(told.frames["allocation_history"], told.frames["device_history"], at)
    stands = standing(told.frames, held, at=at)
    plain = workloads_of(stands, _beside(actions, live))
    is_exempting_known = live.namespace_labels is not None
    workloads = _with_evidence(plain, told, policies, at=at) if is_exempting_known else plain
    known = {each.uid for each in workloads}
    return Snapshot(
        snapshot_id=_named(told.cluster, workloads, actions, notices=notices, at=at),
        taken_at=at,
        workloads=workloads,
        rooms=rooms_of(
            rooms(
                told.frames["device_history"],
                nodes=told.frames["node_history"],
                places=told.frames["node_place"],
                held=held,
                asked=told.frames["workload_current"],
                at=at,
            )
        ),
        disruptions=(),
        quotas=quotas_of(told.frames["quota_use"], at),
        exemptions=_exemptions(told.state["exemption"], at),
        notices=tuple(each for each in notices if each.workload_uid in known),
        past_actions=actions,
        health=Health(
            telemetry_at=told.readings.newest_at(at),
            api_error_ratio=live.api_error_ratio,
            is_stopped=_is_stopped(told, at),
        ),
    )


def _beside(actions: Iterable[PastAction], live: Live) -> Beside:
    taken = {each.workload_uid for each in actions if _is_standing(each)}
    undone: dict[str, datetime] = {}
    for each in actions:
        if each.undone_at is not None:
            before = undone.get(each.workload_uid, each.undone_at)
            undone[each.workload_uid] = max(before, each.undone_at)
    return Beside(
        namespace_labels=live.namespace_labels or {}, restored=undone, taken=frozenset(taken)
    )


def _is_standing(action: PastAction) -> bool:
    is_taking = action.step in {str(step) for step in TAKING_STEPS}
    return is_taking and action.outcome == TAKEN and action.undone_at is None


def _with_evidence(
    workloads: Sequence[Workload], told: History, policies: Sequence[Policy], *, at: datetime
) -> tuple[Workload, ...]:
    limits = _limits(workloads, policies)
    found = evidence_of(told.readings, limits, cluster=told.cluster, at=at)
    return tuple(_with(each, found.get(each.uid)) for each in workloads)


def _with(workload: Workload, evidence: Evidence | None) -> Workload:
    return workload if evidence is None else replace(workload, evidence=evidence)


def _limits(workloads: Iterable[Workload], policies: Sequence[Policy]) -> dict[str, IdleLimits]:
    book = Book(policies)
    found: dict[str, IdleLimits] = {}
    for workload in workloads:
        spoken = book.spoken(workload)
        if spoken is not None and spoken.rule.idle is not None:
            found[workload.uid] = spoken.rule.idle
    return found


def _until(rows: StateRows, column: str, at: datetime) -> list[Mapping[str, object]]:
    """Return the rows that were there at an instant, oldest first."""
    return [row for row in reversed(rows) if instant(row[column]) <= at]


def _past(told: History, at: datetime) -> tuple[PastAction, ...]:
    entries = Entries(cluster=told.cluster)
    entries.add(_until(told.state["action"], "recorded_at", at))
    return past_actions(entries.all())


def _notices(told: History, at: datetime) -> tuple[Notice, ...]:
    rows = _until(told.state["notice"], "told_at", at)
    return delivered_notices(rows, cluster=told.cluster)


def _exemptions(rows: StateRows, at: datetime) -> tuple[Exemption, ...]:
    """Return leaves that were granted and are not over."""
    return tuple(
        Exemption(
            scope_kind=str(row["scope_kind"]),
            scope_key=str(row["scope_key"]),
            policy=str(row["policy"]),
            period=Period(instant(row["valid_from_at"]), instant(row["valid_until_at"])),
            reason=str(row["reason"]),
        )
        for row in _until(rows, "recorded_at", at)
        if instant(row["valid_until_at"]) > at
    )


def _is_stopped(told: History, at: datetime) -> bool:
    """Tell what the newest word of the switch says, on this cluster or on all."""
    rows = _until(told.state["enforcement_switch"], "recorded_at", at)
    words = [row for row in rows if row["cluster"] in {None, told.cluster}]
    return bool(words) and words[-1]["is_stopped"] == 1


def _named(
    cluster: str,
    workloads: Iterable[Workload],
    actions: Iterable[PastAction],
    *,
    notices: Sequence[Notice],
    at: datetime,
) -> str:
    """Return a name that other facts would not have."""
    content = {
        "cluster": cluster,
        "at": at.isoformat(),
        "workloads": [(each.uid, each.gpu_count, _clock(each)) for each in workloads],
        "actions": [(each.action_id, each.outcome, str(each.undone_at)) for each in actions],
        "notice_count": len(notices),
    }
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:_NAME_LENGTH]


_NAME_LENGTH: Final = 24


def _clock(workload: Workload) -> float | None:
    return None if workload.evidence is None else workload.evidence.observed_idle_s
