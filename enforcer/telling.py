"""Delivering one notice: what is about to be told is written down first, then what arrived."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from enforcer.decisions import Decision
from enforcer.entries import Entry, Outcome, instant_text
from enforcer.facts import Workload
from enforcer.hands import Hands
from enforcer.ledger import Draft, Known, Row
from enforcer.notify import Channel, OwnerWarning, Told, annotate


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """Whether any channel reached the owner."""

    is_delivered: bool
    detail: str | None


def tell_owner(
    decision: Decision, workload: Workload, draft: Draft, *, known: Known, hands: Hands
) -> Delivery | None:
    """Tell a workload's owner on every channel; None: somebody else did, or acts on it now."""
    now = hands.clock.now()
    warning = OwnerWarning(
        action_id=draft.action_id,
        workload=workload,
        decision=decision,
        told_at=now,
        act_at=max(decision.act_at or now, now),
    )
    if draft.is_dry_run:
        hands.ledger.record(draft, Outcome.DONE, known=known, detail=warning.text)
        return Delivery(is_delivered=True, detail="rehearsed only")
    rows = [_row(warning, channel, is_delivered=False, hands=hands) for channel in hands.channels]
    entry = hands.ledger.begin(draft, known=known, notices=rows)
    if entry is None:
        return None
    return _delivered(entry, warning, hands=hands)


def _delivered(entry: Entry, warning: OwnerWarning, *, hands: Hands) -> Delivery:
    told = [(channel, channel.tell(warning)) for channel in hands.channels]
    rows = [
        _row(warning, channel, is_delivered=True, hands=hands, detail=one.detail)
        for channel, one in told
        if one.is_delivered
    ]
    if rows and hands.reach.may_write(entry.target):
        annotate(hands.gateway, warning)
    detail = _faults([one for _channel, one in told])
    outcome = Outcome.DONE if rows else Outcome.FAILED
    hands.ledger.end(entry, outcome, detail=detail, notices=rows)
    return Delivery(is_delivered=bool(rows), detail=detail)


def resume(entry: Entry, *, hands: Hands, now: datetime) -> bool:
    """End a notice whose sender was interrupted: as delivered only where that is certain.

    Returns:
        whether it was delivered; if not, a later round tells the owner anew.
    """
    pending = [row for row in hands.ledger.notices(entry.action_id) if row["is_delivered"] == 0]
    by_name = {channel.name: channel for channel in hands.channels}
    arrived = [_as_delivered(row, now) for row in pending if _has_arrived(row, by_name, entry)]
    outcome = Outcome.DONE if arrived else Outcome.FAILED
    detail = None if arrived else "interrupted before it is known to have arrived"
    hands.ledger.end(entry, outcome, detail=detail, notices=arrived)
    return bool(arrived)


def _has_arrived(row: Mapping[str, object], by_name: Mapping[str, Channel], entry: Entry) -> bool:
    channel = by_name.get(str(row["channel"]))
    return channel is not None and channel.was_told(entry.action_id, entry.target)


def _as_delivered(row: Mapping[str, object], now: datetime) -> Row:
    """Return the notice as delivered now: an earlier time could not be shown."""
    kept = {
        name: value if value is None or isinstance(value, int) else str(value)
        for name, value in row.items()
        if name not in {"notice_id", "recorded_at"}
    }
    return {**kept, "is_delivered": 1, "told_at": instant_text(now)}


def _row(
    warning: OwnerWarning,
    channel: Channel,
    *,
    is_delivered: bool,
    hands: Hands,
    detail: str | None = None,
) -> Row:
    evidence = warning.workload.evidence
    since_at = None if evidence is None else evidence.idle_since_at
    return {
        "cluster": hands.ledger.cluster,
        "workload_uid": warning.workload.uid,
        "policy": warning.decision.policy,
        "policy_version": warning.decision.policy_version,
        "rule": warning.decision.rule or "",
        "channel": channel.name,
        "is_delivered": int(is_delivered),
        "detail": detail or warning.text,
        "idle_since_at": None if since_at is None else instant_text(since_at),
        "act_at": instant_text(warning.act_at),
        "told_at": instant_text(hands.clock.now()),
        "idempotency_key": f"{warning.action_id}/{channel.name}",
    }


def _faults(told: list[Told]) -> str | None:
    faults = [f"{one.channel}: {one.detail}" for one in told if not one.is_delivered]
    return "; ".join(faults) or None
