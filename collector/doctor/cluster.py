"""Asks the API server once for all that the collector would follow, and keeps what it told."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from collector.discovery_kubernetes import ExporterTargets
from collector.lifecycle.lifecycle import PATIENCE, Lifecycle
from collector.lifecycle.ownership_rules import OwnershipRules
from collector.lifecycle.requests import request_of
from collector.ownership import OwnershipLevel
from collector.sources.kubernetes.access import ApiAccess
from collector.sources.kubernetes.api_error import ApiError
from collector.sources.kubernetes.change import Change, ChangeType, ObjectKey
from collector.sources.kubernetes.listing import listed
from collector.sources.kubernetes.objects import ENDED_PHASES, Pod
from collector.sources.kubernetes.objects_cluster import Event, Node, ResourceSlice
from collector.sources.kubernetes.owner_metadata import OwnerMetadata
from collector.sources.kubernetes.permissions import MissingPermission, missing_permissions
from collector.sources.kubernetes.resource import KubernetesObject, Resource
from collector.sources.kubernetes.resources import RESOURCES
from collector.sources.kubernetes.served import served_groups, served_versions
from collector.sources.kubernetes.server_facts import account_name, server_version
from steward.clock import Clock

ANSWER_S: Final = 20.0
"""For each request; a list is asked for page by page."""
_NO_KEY: Final = ObjectKey(namespace=None, name="", uid="")


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamlessPod:
    """A pod that holds GPUs and belongs to no team."""

    namespace: str
    name: str
    gpu_count: int | None
    """Devices, instances or shares; None where it holds them by claims."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterView:
    """What one API server told."""

    server: str
    version: str
    account: str | None
    served: Mapping[Resource, str | None]
    """The version in which each kind is read; None where the server has none of those we read."""
    groups: Mapping[str, frozenset[str]]
    """All versions of each API group that the server has."""
    missing: Sequence[MissingPermission]
    """Of kinds that are served, and of other kinds that own pods."""
    unread: Mapping[str, str]
    """Why kinds could not be read that may be, by kind."""
    nodes: Sequence[Node] | None
    """None where nodes may not be listed."""
    slices: Sequence[ResourceSlice] = ()
    teamless: Sequence[TeamlessPod] = ()
    oldest_event_at: datetime | None = None
    """None where there is no event, or they may not be listed."""


@dataclass(slots=True)
class _Gathering:
    """Objects while they are listed."""

    lifecycle: Lifecycle
    exporters: ExporterTargets
    nodes: list[Node] | None = None
    slices: list[ResourceSlice] = field(default_factory=list)
    pods: list[Pod] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)

    def take(
        self, resource: Resource, objects: Iterable[KubernetesObject], *, at: datetime
    ) -> None:
        """Take all objects of a kind, as the collector takes its first list."""
        if resource.decode is Node:
            self.nodes = []
        for found in objects:
            self._keep(found)
            self._tell(resource, found, at=at)
        self._apply(
            Change(
                resource=resource,
                type=ChangeType.SYNCED,
                key=_NO_KEY,
                object=None,
                observed_at=at,
            )
        )

    def settle(self, now: datetime) -> None:
        """Have everything told; lists that may not be read are not waited for."""
        self.lifecycle.advance(now + PATIENCE)
        while self.lifecycle.has_more:
            self.lifecycle.advance(now + PATIENCE)

    def _keep(self, found: KubernetesObject) -> None:
        match found:
            case Node() if self.nodes is not None:
                self.nodes.append(found)
            case ResourceSlice():
                self.slices.append(found)
            case Pod():
                self.pods.append(found)
            case Event():
                self.events.append(found)
            case _:
                return

    def _tell(self, resource: Resource, found: KubernetesObject, *, at: datetime) -> None:
        metadata = found.metadata
        key = ObjectKey(namespace=metadata.namespace, name=metadata.name, uid=metadata.uid)
        self._apply(
            Change(resource=resource, type=ChangeType.ADDED, key=key, object=found, observed_at=at)
        )

    def _apply(self, change: Change) -> None:
        self.exporters.apply(change)
        if change.resource not in self.exporters.resources:
            self.lifecycle.apply(change)


def read_cluster(
    access: ApiAccess, *, exporters: ExporterTargets, rules: OwnershipRules, clock: Clock
) -> ClusterView:
    """Return what the server tells of itself and of all kinds that may be listed.

    Args:
        access: whom to ask, and as whom.
        exporters: is told the pods that are exporters.
        rules: whose a pod is.
        clock: dates what is seen.

    Raises:
        ApiError: the server does not answer, or not to this account.
    """
    version = server_version(access, answer_s=ANSWER_S)
    wanted = (*RESOURCES, *exporters.resources)
    served = served_versions(access, wanted, answer_s=ANSWER_S)
    there = [resource for resource in wanted if served.get(resource) is not None]
    missing = missing_permissions(access, there, answer_s=ANSWER_S)
    unlistable = {(one.group, one.resource) for one in missing if one.verb == "list"}
    owners = OwnerMetadata(access)
    gathering = _Gathering(Lifecycle(cluster="doctor", rules=rules, source=owners), exporters)
    unread = {one.name: "its API group does not answer" for one in wanted if one not in served}
    for resource in there:
        if (resource.group, resource.plural) not in unlistable:
            unread |= _listed(access, resource, served=served, into=gathering, clock=clock)
    gathering.settle(clock.now())
    return ClusterView(
        server=access.server,
        version=version,
        account=account_name(access, answer_s=ANSWER_S),
        served=served,
        groups=served_groups(access, answer_s=ANSWER_S),
        missing=[*missing, *_ungettable(owners)],
        unread=unread,
        nodes=gathering.nodes,
        slices=gathering.slices,
        teamless=teamless_pods(gathering.pods, lifecycle=gathering.lifecycle),
        oldest_event_at=_oldest(gathering.events),
    )


def _ungettable(owners: OwnerMetadata) -> list[MissingPermission]:
    """Return the owners of pods that are asked for one by one and may not be."""
    return [
        MissingPermission(group=group, resource=plural, verb="get")
        for group, plural in sorted(owners.refused)
    ]


def _listed(
    access: ApiAccess,
    resource: Resource,
    *,
    served: Mapping[Resource, str | None],
    into: _Gathering,
    clock: Clock,
) -> Mapping[str, str]:
    """List a kind; return why that failed, in whole or in part, by kind."""
    try:
        found = listed(access, resource, version=served[resource] or "", answer_s=ANSWER_S)
    except ApiError as error:
        return {resource.name: error.message}
    into.take(resource, found.objects, at=clock.now())
    if found.undecodable_count:
        return {resource.name: f"{found.undecodable_count} objects are not of the known shape"}
    return {}


def teamless_pods(pods: Iterable[Pod], *, lifecycle: Lifecycle) -> list[TeamlessPod]:
    """Return the pods that hold GPUs and whose owner's team is not known, by name."""
    claiming = {
        (one.namespace, one.pod) for holdings in lifecycle.holdings().values() for one in holdings
    }
    found = []
    for pod in pods:
        namespace, name = pod.metadata.namespace or "", pod.metadata.name
        count = request_of(pod.spec, pod.metadata.annotations).gpu_count
        if not _is_placed(pod) or not (count or (namespace, name) in claiming):
            continue
        owner = lifecycle.owner_of(namespace, name)
        if owner is not None and owner.level is OwnershipLevel.UNATTRIBUTED:
            found.append(TeamlessPod(namespace=namespace, name=name, gpu_count=count))
    return sorted(found, key=lambda one: (one.namespace, one.name))


def _is_placed(pod: Pod) -> bool:
    return pod.spec.node_name is not None and pod.status.phase not in ENDED_PHASES


def _oldest(events: Iterable[Event]) -> datetime | None:
    stamps = (event.metadata.creation_timestamp for event in events)
    return min((stamp for stamp in stamps if stamp is not None), default=None)
