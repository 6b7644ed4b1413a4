"""Taking acts back: once, by a person's word, or by the timer that was set when they were done.

An undoing is an act of its own in the ledger, with the same care: written down first, rehearsed,
held to the object that was read, and ended by what is seen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from enforcer.actuators import BeforeImage, Order, Refusal, RefusalReason, before_image, restore
from enforcer.entries import BY_TIMER, RESTORED_BY_OTHERS, UNDO, Entry, Outcome
from enforcer.gateway.port import Write
from enforcer.hands import Hands, carry_out
from enforcer.ledger import Draft
from steward.errors import ClusterError, ConflictError, DeniedError, FencedError, RefusedError

ASKED: Final = "undo_asked"
"""Reason of an undoing that a person asked for."""
FIRST_RETRY: Final = timedelta(minutes=1)
"""After this time an undoing by timer that failed is tried again; then after twice as long."""
MOST_DOUBLINGS: Final = 6


class Undoing(StrEnum):
    """What became of one undoing."""

    OPEN = "open"
    """Written; not yet seen on the object."""
    DONE = "done"
    """Somebody had put it back already, or it was rehearsed only."""
    REFUSED = "refused"
    """It cannot be taken back."""
    FAILED = "failed"
    OVERTAKEN = "overtaken"
    """Another act on the workload is under way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Undone:
    """One act and what became of its undoing."""

    entry: Entry
    result: Undoing
    detail: str | None = None
    undoing_id: str | None = None
    """Name of the undoing in the ledger; None: none was begun."""


def undoable(entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
    """Return the acts that may be taken back, newest first.

    Failed ones too: their object may have been changed all the same.
    """
    found = [
        one
        for one in entries
        if one.before is not None
        and not one.is_undo
        and not one.is_dry_run
        and one.outcome in {Outcome.DONE, Outcome.FAILED}
    ]
    return tuple(sorted(found, key=lambda one: -one.row_id))


def due(entries: tuple[Entry, ...], *, now: datetime) -> tuple[Entry, ...]:
    """Return the acts whose timer has run out, oldest first."""
    ready = [
        one
        for one in undoable(entries)
        if one.outcome is Outcome.DONE
        and one.undo_at is not None
        and one.undo_at <= now
        and _may_retry(one, now=now)
    ]
    return tuple(sorted(ready, key=lambda one: one.row_id))


def _may_retry(entry: Entry, *, now: datetime) -> bool:
    if entry.undo_failed_at is None:
        return True
    factor = 1 << min(entry.undo_failure_count - 1, MOST_DOUBLINGS)
    return now >= entry.undo_failed_at + FIRST_RETRY * factor


def undo(entry: Entry, hands: Hands, *, reason: str = ASKED) -> Undone:
    """Take one act back.

    Args:
        entry: one of ``undoable``.
        hands: of the leader, or of a person.
        reason: why, ``undo_asked`` or ``undo_timer``.

    Raises:
        FencedError: another replica leads now.
        ClusterError: the object cannot be read; nothing was begun.
    """
    before = before_image(entry.before or "")

    def found() -> Write | Refusal:
        order = Order(action_id=entry.action_id, at=hands.clock.now())
        return restore(before, hands.gateway.read(before.holder), order=order)

    def again() -> Write | None:
        fresh = found()
        return None if isinstance(fresh, Refusal) else fresh

    first = found()
    if isinstance(first, Refusal):
        return _refused(entry, first, hands)
    known = hands.ledger.known(at=hands.clock.now())
    draft = _draft(entry, before, reason=reason, hands=hands)
    begun = hands.ledger.begin(draft, known=known)
    if begun is None:
        return Undone(entry=entry, result=Undoing.OVERTAKEN)
    return _written(entry, begun, first, again=again, hands=hands)


def undo_due(hands: Hands) -> tuple[Undone, ...]:
    """Take back every act whose timer has run out; one that cannot be read waits."""
    found: list[Undone] = []
    for entry in due(hands.ledger.entries().all(), now=hands.clock.now()):
        try:
            found.append(undo(entry, hands, reason=BY_TIMER))
        except FencedError:
            raise
        except ClusterError as error:
            found.append(Undone(entry=entry, result=Undoing.FAILED, detail=error.message))
    return tuple(found)


def _draft(entry: Entry, before: BeforeImage, *, reason: str, hands: Hands) -> Draft:
    """Return the undoing; each try has a name of its own."""
    is_dry_run = hands.reach.is_dry_run
    tries = hands.ledger.entries().undo_count(entry.row_id)
    return Draft(
        plan_id=f"{'dry-' if is_dry_run else ''}undo-{entry.row_id}-{tries}",
        number=0,
        step=UNDO,
        workload_uid=entry.workload_uid,
        tenant_id=entry.tenant_id,
        target=before.holder,
        gpu_milli=entry.gpu_milli,
        reasons=(reason,),
        evidence={"undoes": entry.action_id},
        policy=entry.policy,
        rule=entry.rule,
        before=entry.before,
        undoes_id=entry.row_id,
        is_dry_run=is_dry_run,
    )


def _refused(entry: Entry, refusal: Refusal, hands: Hands) -> Undone:
    """Note that it was put back by hand, or that nothing can be done."""
    if refusal.reason is RefusalReason.RESTORED_BY_OTHERS and entry.outcome is Outcome.DONE:
        hands.ledger.note_restored(entry, reason=RESTORED_BY_OTHERS, detail=refusal.detail)
        return Undone(entry=entry, result=Undoing.DONE, detail=refusal.detail)
    return Undone(entry=entry, result=Undoing.REFUSED, detail=refusal.detail)


def _written(
    entry: Entry, begun: Entry, write: Write, *, again: Callable[[], Write | None], hands: Hands
) -> Undone:
    try:
        carry_out(write, again=again, gateway=hands.gateway)
    except FencedError:
        raise
    except (ConflictError, DeniedError, RefusedError) as error:
        hands.ledger.end(begun, Outcome.FAILED, detail=error.message)
        return Undone(entry=entry, result=Undoing.FAILED, detail=error.message)
    except ClusterError as error:
        return _open(entry, begun, detail=error.message)
    if hands.reach.is_dry_run:
        hands.ledger.end(begun, Outcome.DONE, detail="rehearsed only")
        return Undone(entry=entry, result=Undoing.DONE, detail="rehearsed only")
    return _open(entry, begun)


def _open(entry: Entry, begun: Entry, *, detail: str | None = None) -> Undone:
    return Undone(entry=entry, result=Undoing.OPEN, detail=detail, undoing_id=begun.action_id)
