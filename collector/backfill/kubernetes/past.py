"""A cluster's past hour by hour: what changed from one hour to the next, told as changes are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import InitVar, dataclass, field
from datetime import datetime, timedelta
from typing import Final, TypeAlias

from collector.backfill.kubernetes.pods import pods_of
from collector.backfill.kubernetes.series import KubeHour
from collector.backfill.kubernetes.things import things_of
from collector.lifecycle.lifecycle import Lifecycle
from collector.lifecycle.output import Output
from collector.lifecycle.ownership_rules import LABEL_PREFIX, OwnershipRules
from collector.sources.kubernetes.change import Change, ChangeType, ObjectKey
from collector.sources.kubernetes.resource import KubernetesObject, Resource
from collector.sources.kubernetes.resources import PODS, RESOURCES
from steward.period import Period

_ORDER: Final = {each.name: place for place, each in enumerate(RESOURCES)}
_BY_NAME: Final = {each.name: each for each in RESOURCES}
_NOBODY: Final = ObjectKey(namespace=None, name="", uid="")
_Objects: TypeAlias = dict[tuple[str, str], KubernetesObject]


@dataclass(slots=True, kw_only=True)
class KubePast:
    """One cluster on its way through the hours."""

    cluster: str
    rules: OwnershipRules
    memory: InitVar[Mapping[str, bytes]]
    lifecycle: Lifecycle = field(init=False)
    remembered: dict[str, bytes] = field(init=False)
    """What the lifecycle asked to remember, for a checkpoint."""
    objects: _Objects = field(default_factory=dict)
    """As they were at the end of the last hour."""
    _gone: list[tuple[datetime, tuple[str, str], KubernetesObject]] = field(default_factory=list)
    _is_begun: bool = False

    def __post_init__(self, memory: Mapping[str, bytes]) -> None:
        """Go on from what was remembered."""
        self.remembered = dict(memory)
        self.lifecycle = Lifecycle(cluster=self.cluster, rules=self.rules, memory=memory)

    def prime(self, hour: KubeHour, period: Period) -> None:
        """Know again what was there at the end of the last hour; nothing of it is told anew."""
        for _ in self.begin(hour, period):
            continue
        for _ in self.end():
            continue

    def begin(self, hour: KubeHour, period: Period) -> Iterator[Output]:
        """Yield what the hour's objects are worth, before its devices are read."""
        now = self._objects_of(hour)
        self._gone = self._gone_in(hour, now, period=period)
        last_seen = {key: at for at, key, _ in self._gone}
        for key in sorted(now, key=lambda key: (_ORDER[key[0]], key[1])):
            before = self.objects.get(key)
            if before != now[key]:
                kind = ChangeType.ADDED if before is None else ChangeType.MODIFIED
                yield self._apply(kind, key, now[key], at=last_seen.get(key, period.until_at))
        if not self._is_begun:
            self._is_begun = True
            for resource in RESOURCES:
                if not resource.is_optional:
                    yield self._synced(resource, at=period.until_at)
        self.objects = now

    def end(self) -> Iterator[Output]:
        """Yield the ends of what was gone by the end of the hour, after its devices were read."""
        for at, key, last in sorted(self._gone, key=lambda gone: (gone[0], gone[1])):
            self.objects.pop(key, None)
            yield self._apply(ChangeType.DELETED, key, last, at=at + timedelta(seconds=1))
        self._gone = []

    def _objects_of(self, hour: KubeHour) -> _Objects:
        known = labels_read(self.rules)
        found: _Objects = dict(things_of(hour, known_labels=known))
        for uid, pod in pods_of(hour, known_labels=known).items():
            found[PODS.name, uid] = pod
        return found

    def _gone_in(
        self, hour: KubeHour, now: _Objects, *, period: Period
    ) -> list[tuple[datetime, tuple[str, str], KubernetesObject]]:
        """Return what was not there any more at the hour's end, and when it was last."""
        gone = [(period.from_at, key, last) for key, last in self.objects.items() if key not in now]
        for key, last in now.items():
            if key[0] == PODS.name and hour.present is not None and key[1] not in hour.present:
                gone.append((hour.last_seen.get(key[1], period.from_at), key, last))
        return gone

    def _apply(
        self, kind: ChangeType, key: tuple[str, str], last: KubernetesObject, *, at: datetime
    ) -> Output:
        metadata = last.metadata
        return self._taken(
            Change(
                resource=_BY_NAME[key[0]],
                type=kind,
                key=ObjectKey(namespace=metadata.namespace, name=metadata.name, uid=key[1]),
                object=last,
                observed_at=at,
            )
        )

    def _synced(self, resource: Resource, *, at: datetime) -> Output:
        return self._taken(
            Change(
                resource=resource,
                type=ChangeType.SYNCED,
                key=_NOBODY,
                object=None,
                observed_at=at,
            )
        )

    def _taken(self, change: Change) -> Output:
        output = self.lifecycle.apply(change)
        for key, content in output.remember.items():
            if content is None:
                self.remembered.pop(key, None)
            else:
                self.remembered[key] = content
        return output


def labels_read(rules: OwnershipRules) -> frozenset[str]:
    """Return the labels that rules of ownership read: their true names are worth finding."""
    conditions = [name for rule in rules.class_rules for name, _ in rule.conditions]
    named = {
        name.removeprefix(LABEL_PREFIX) for name in conditions if name.startswith(LABEL_PREFIX)
    }
    return frozenset({*rules.team_labels, *rules.owner_labels, *named})
