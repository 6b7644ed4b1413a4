"""Named priorities of Kubernetes and of Kueue; told when they change."""

from __future__ import annotations

from typing import Final

from collector.lifecycle.output import SOURCE, Ledger
from collector.lifecycle.things import Things
from collector.sources.kubernetes.objects_cluster import PriorityClass
from collector.sources.kubernetes.resource import Resource
from collector.sources.kubernetes.resources import WORKLOAD_PRIORITY_CLASSES

KUEUE: Final = "kueue"


class Priorities:
    """Tells priority classes."""

    def __init__(self, ledger: Ledger, things: Things) -> None:
        """Begin with what is remembered."""
        self._ledger = ledger
        self._things = things

    def see(self, resource: Resource, found: PriorityClass) -> None:
        """Tell what is new about a priority class."""
        metadata = found.metadata
        entry = self._things.entry(resource, metadata)
        row: dict[str, object] = {
            "priority_class": metadata.name,
            "priority": found.value,
            "preemption_policy": found.preemption_policy,
            "is_default": bool(found.global_default),
            "is_present": True,
            "source": _source(resource.name),
        }
        self._things.tell_parts("priority_class", entry, {"": row})
        self._things.save(metadata.uid, entry)

    def end(self, uid: str) -> None:
        """Tell that a priority class is gone."""
        entry = self._things.remembered(uid)
        if entry is not None:
            self._ledger.add_observed(
                "priority_class",
                priority_class=entry.name,
                is_present=False,
                source=_source(entry.resource),
            )
            self._things.forget(uid)


def _source(resource: str) -> str:
    """Return whose class it is: the same name may exist in Kubernetes and in Kueue."""
    return KUEUE if resource == WORKLOAD_PRIORITY_CLASSES.name else SOURCE
