"""Events that say why something waits or was moved aside; one row for each and each new count."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from collector.lifecycle.output import Ledger
from collector.lifecycle.things import Things
from collector.sources.kubernetes.objects_cluster import Event, ObjectReference
from collector.sources.kubernetes.resources import EVENTS

KEPT_REASONS: Final = frozenset(
    {
        "FailedScheduling",
        "Preempted",
        "Evicted",
        "TaintManagerEviction",
        "FailedCreate",
        "BackoffLimitExceeded",
        "DeadlineExceeded",
        "OOMKilling",
        "NodeNotReady",
        "NodeNotSchedulable",
        "NodeSchedulable",
        "SystemOOM",
        "FailedMount",
        "FailedAttachVolume",
        "FailedCreatePodSandBox",
        "UnexpectedAdmissionError",
        "Pending",
        "QuotaReserved",
        "Admitted",
        "Requeued",
        "Suspended",
        "Resumed",
        "Stopped",
        "Unschedulable",
        "NotEnoughResources",
        "PodGroupNotReady",
        "Evict",
        "FailedPrepareDynamicResources",
    }
)
"""What the scheduler, controllers, kubelets, Kueue, Volcano and KAI say of waiting and losing."""
KEPT_PREFIXES: Final = ("Evicted", "Preempt", "FailedScheduling")
"""Kueue writes the cause behind: ``EvictedDueToPreempted``."""


class Events:
    """Tells events."""

    def __init__(self, ledger: Ledger, things: Things) -> None:
        """Begin with what is remembered."""
        self._ledger = ledger
        self._things = things

    def see(self, event: Event) -> None:
        """Tell an event that is new, or that came again."""
        if not is_kept(event.reason):
            return
        entry = self._things.entry(EVENTS, event.metadata)
        at = _occurred_at(event) or self._ledger.now
        count = _count(event)
        if not self._things.is_news(entry, at.timestamp(), count):
            return
        about = event.involved_object or event.regarding or ObjectReference()
        self._ledger.add(
            "kubernetes_event",
            occurred_at=at,
            event_uid=event.metadata.uid,
            namespace=about.namespace or event.metadata.namespace,
            kind=about.kind or "",
            name=about.name or "",
            object_uid=about.uid or None,
            type=event.type,
            reason=event.reason,
            message=event.message or event.note,
            occurrence_count=count,
        )
        self._things.save(event.metadata.uid, entry)

    def end(self, uid: str) -> None:
        """Forget an event that the server let go."""
        self._things.forget(uid)


def is_kept(reason: str | None) -> bool:
    """Return whether events of this reason are stored."""
    return reason is not None and (reason in KEPT_REASONS or reason.startswith(KEPT_PREFIXES))


def _occurred_at(event: Event) -> datetime | None:
    series = event.series.last_observed_time if event.series is not None else None
    times = (
        series,
        event.last_timestamp,
        event.deprecated_last_timestamp,
        event.event_time,
        event.first_timestamp,
        event.metadata.creation_timestamp,
    )
    return next((at for at in times if at is not None), None)


def _count(event: Event) -> int:
    """Return how often it happened; an event without a count happened once."""
    series = event.series.count if event.series is not None else None
    counts = (series, event.count, event.deprecated_count)
    return next((count for count in counts if count), 1)
