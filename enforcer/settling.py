"""Ending acts that were begun: by this replica, or by one that was killed in between.

What an act's object and pods say decides, not what anybody remembers: so a round that was
interrupted anywhere is brought to its end by the next one, however often it is repeated.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from enforcer import telling
from enforcer.actuators import (
    BeforeImage,
    before_image,
    is_effective,
    is_restored,
    is_taken,
    live_pods,
    tidied,
)
from enforcer.actuators.fields import text_at
from enforcer.decisions import TAKING_STEPS, Step
from enforcer.entries import RESTORED_BY_OTHERS, Entry, Outcome
from enforcer.gateway.port import KubernetesObject, Target, Verb, Write
from enforcer.hands import Hands
from steward.errors import ClusterError, FencedError, InputError

NEVER_WRITTEN: Final = "interrupted before it was written: nothing was changed"
NAMED_PODS: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """One open act after a look at it."""

    entry: Entry
    outcome: Outcome
    """PLANNED: still open."""
    detail: str | None = None


def settle(hands: Hands, *, only: frozenset[str] | None = None) -> tuple[Settled, ...]:
    """Look at open acts once, oldest first, and end those whose end is seen.

    An act whose objects cannot be read stays open.

    Args:
        hands: of the leader, or of a person.
        only: names of acts; None: all, which is the leader's business alone.

    Raises:
        FencedError: another replica leads now.
    """
    found = hands.ledger.entries().open()
    return tuple(_settled(one, hands) for one in found if only is None or one.action_id in only)


def _settled(entry: Entry, hands: Hands) -> Settled:
    try:
        found = _seen(entry, hands)
    except FencedError:
        raise
    except (ClusterError, InputError) as error:
        return Settled(entry=entry, outcome=Outcome.PLANNED, detail=error.message)
    if entry.step != Step.NOTIFY and found.outcome is not Outcome.PLANNED:
        hands.ledger.end(entry, found.outcome, detail=found.detail)
    return found


def _seen(entry: Entry, hands: Hands) -> Settled:
    """Return what an act came to, as its objects say now."""
    now = hands.clock.now()
    if entry.step == Step.NOTIFY:
        return _seen_notice(entry, now=now, hands=hands)
    if entry.before is None:
        return Settled(entry=entry, outcome=Outcome.FAILED, detail="it has no before-image")
    before = before_image(entry.before)
    current = hands.gateway.read(before.holder)
    if entry.is_undo:
        return _seen_undo(entry, before, current, now=now, hands=hands)
    return _seen_act(entry, before, current, now=now, hands=hands)


def _seen_notice(entry: Entry, *, now: datetime, hands: Hands) -> Settled:
    """End a notice whose sender is surely gone."""
    if now < entry.begun_at + hands.reach.interrupted_after:
        return Settled(entry=entry, outcome=Outcome.PLANNED)
    is_told = telling.resume(entry, hands=hands, now=now)
    return Settled(entry=entry, outcome=Outcome.DONE if is_told else Outcome.FAILED)


def _seen_act(
    entry: Entry,
    before: BeforeImage,
    current: KubernetesObject | None,
    *,
    now: datetime,
    hands: Hands,
) -> Settled:
    pods = pods_of(before, hands)
    if is_effective(before, current, pods):
        return Settled(entry=entry, outcome=Outcome.DONE)
    if current is not None and not is_taken(before, current):
        if now < entry.begun_at + hands.reach.interrupted_after:
            return Settled(entry=entry, outcome=Outcome.PLANNED, detail="not seen on its object")
        return Settled(entry=entry, outcome=Outcome.FAILED, detail=NEVER_WRITTEN)
    if now >= entry.begun_at + hands.reach.verify:
        return Settled(entry=entry, outcome=Outcome.FAILED, detail=_remains(before, pods, hands))
    if before.verb is Verb.EVICT:
        _evict_again(before, pods, hands)
    return Settled(entry=entry, outcome=Outcome.PLANNED)


def _seen_undo(
    entry: Entry,
    before: BeforeImage,
    current: KubernetesObject | None,
    *,
    now: datetime,
    hands: Hands,
) -> Settled:
    if current is None:
        return Settled(entry=entry, outcome=Outcome.FAILED, detail="its object is gone")
    if is_restored(before, current):
        return _tidied(entry, before, current, now=now, hands=hands)
    if not is_taken(before, current):
        return Settled(entry=entry, outcome=Outcome.DONE, detail="somebody else changed it too")
    if now < entry.begun_at + hands.reach.interrupted_after:
        return Settled(entry=entry, outcome=Outcome.PLANNED)
    return Settled(entry=entry, outcome=Outcome.FAILED, detail=NEVER_WRITTEN)


def _tidied(
    entry: Entry, before: BeforeImage, current: KubernetesObject, *, now: datetime, hands: Hands
) -> Settled:
    """End a restore once the object says to the byte what it said before.

    A value that only made its controller go on is taken away when its pods are back, or when it
    has surely been seen.
    """
    write = tidied(before, current)
    if write is None:
        return Settled(entry=entry, outcome=Outcome.DONE)
    is_seen = now >= entry.begun_at + hands.reach.verify
    if is_seen or live_pods(before, pods_of(before, hands)):
        hands.gateway.write(write)
    return Settled(entry=entry, outcome=Outcome.PLANNED)


def pods_of(before: BeforeImage, hands: Hands) -> tuple[KubernetesObject, ...]:
    """Return the pods among which those of an act are; none where it takes none away."""
    if before.step not in TAKING_STEPS:
        return ()
    return tuple(
        hands.gateway.list(
            api_version="v1",
            kind="Pod",
            namespace=before.subject.namespace,
            labels=before.pod_labels,
        )
    )


def _remains(before: BeforeImage, pods: tuple[KubernetesObject, ...], hands: Hands) -> str:
    """Return what is still there after the time in which it should have gone."""
    names = live_pods(before, pods)
    within = f"after {hands.reach.verify.total_seconds():g} s"
    if not names:
        return f"its quota or its object is not released {within}"
    more = f" and {len(names) - NAMED_PODS} more" if len(names) > NAMED_PODS else ""
    return f"pods are still there {within}: {', '.join(names[:NAMED_PODS])}{more}"


def _evict_again(before: BeforeImage, pods: tuple[KubernetesObject, ...], hands: Hands) -> None:
    """Ask again for an eviction that a disruption budget may allow by now."""
    if not live_pods(before, pods) or any(_is_ending(pod, before.holder) for pod in pods):
        return
    body: KubernetesObject = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": before.holder.name, "namespace": before.holder.namespace},
    }
    write = Write(verb=Verb.EVICT, target=before.holder, body=body, resource_version=None)
    try:
        hands.gateway.write(write)
    except FencedError:
        raise
    except ClusterError:
        return  # it is tried until the act's time is over, and the last look tells


def _is_ending(pod: KubernetesObject, holder: Target) -> bool:
    is_own = text_at(pod, "metadata", "uid") == holder.uid
    return is_own and text_at(pod, "metadata", "deletionTimestamp") is not None


def note_restores(hands: Hands, *, since_at: datetime) -> tuple[Entry, ...]:
    """Find acts that somebody took back by hand, and write that down; return those.

    Args:
        hands: of the leader.
        since_at: acts that ended earlier are not looked at again.
    """
    return tuple(
        entry
        for entry in hands.ledger.entries().all()
        if _may_be_restored(entry, since_at=since_at) and _is_put_back(entry, hands)
    )


def _may_be_restored(entry: Entry, *, since_at: datetime) -> bool:
    return (
        entry.outcome is Outcome.DONE
        and entry.before is not None
        and not entry.is_undo
        and not entry.is_dry_run
        and entry.ended_at is not None
        and entry.ended_at > since_at
    )


def _is_put_back(entry: Entry, hands: Hands) -> bool:
    try:
        before = before_image(entry.before or "")
        current = hands.gateway.read(before.holder)
    except (ClusterError, InputError):
        return False
    if current is None or before.verb is Verb.EVICT or is_taken(before, current):
        return False
    detail = f"{before.holder.kind} {before.holder.name} was put back by somebody else"
    return hands.ledger.note_restored(entry, reason=RESTORED_BY_OTHERS, detail=detail)
