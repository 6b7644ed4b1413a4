"""From a pod to the workload it belongs to: owner by owner, up to the one that has no owner."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from collector.lifecycle.kinds import NO_WORKLOADS, POD_GROUPS, SCHEDULES
from collector.lifecycle.view import MetadataSource, View, controller_of
from collector.sources.kubernetes.objects import Metadata, OwnerReference, Pod
from collector.sources.kubernetes.resources import KUEUE_WORKLOADS, PODS

LONGEST_CHAIN: Final = 16
"""More owners than any known stack has: a circle ends here."""
POD_GROUP_LABEL: Final = "kueue.x-k8s.io/pod-group-name"
ANSWERS_KEPT: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """One object of a chain."""

    resource: str
    """Name in the list of followed kinds; empty where it is not followed."""
    kind: str
    namespace: str | None
    name: str
    uid: str
    metadata: Metadata | None
    """None where nobody answers for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """A pod's (or another object's) owners, from itself to the workload."""

    links: tuple[Link, ...]

    @property
    def root(self) -> Link:
        """Return the workload."""
        return self.links[-1]

    @property
    def run(self) -> Link:
        """Return what is one run of the workload: itself, or what a schedule started."""
        is_scheduled = len(self.links) > 1 and self.root.kind in SCHEDULES
        return self.links[-2] if is_scheduled else self.root


class Chains:
    """Walks from object to owner."""

    def __init__(self, view: View, source: MetadataSource) -> None:
        """Walk in the view, and ask the source for what is not in it."""
        self._view = view
        self._source = source
        self._answers: OrderedDict[str, Metadata | None] = OrderedDict()

    def of(self, resource: str, kind: str, metadata: Metadata) -> Chain:
        """Return the chain of an object."""
        links = [self._link(resource, kind, metadata)]
        while len(links) < LONGEST_CHAIN:
            following = self._next(links[-1])
            if following is None or any(following.uid == each.uid for each in links):
                break
            links.append(following)
        return Chain(links=tuple(links))

    def _link(self, resource: str, kind: str, metadata: Metadata) -> Link:
        return Link(
            resource=resource,
            kind=kind,
            namespace=metadata.namespace,
            name=metadata.name,
            uid=metadata.uid,
            metadata=metadata,
        )

    def _next(self, link: Link) -> Link | None:
        if link.metadata is None or link.resource == POD_GROUPS:
            return None
        group = _pod_group(link)
        if group is not None:
            return group
        owner = controller_of(link.metadata)
        if owner is None or owner.kind in NO_WORKLOADS:
            return None
        resource, known = self._known(owner)
        return Link(
            resource=resource,
            kind=owner.kind,
            namespace=link.namespace if known is None else known.namespace,
            name=owner.name,
            uid=owner.uid,
            metadata=self._answer(owner, link.namespace) if known is None else known,
        )

    def _known(self, owner: OwnerReference) -> tuple[str, Metadata | None]:
        """Return the kind's name and the metadata of a followed owner."""
        if owner.kind == PODS.kind:
            pod = self._view.get(PODS, owner.uid, Pod)
            return PODS.name, None if pod is None else pod.metadata
        resource = self._view.kind_of(owner.uid)
        return ("" if resource is None else resource.name), self._view.metadata_of(owner.uid)

    def _answer(self, owner: OwnerReference, namespace: str | None) -> Metadata | None:
        """Return what the source says of an owner; each is asked for once."""
        if owner.uid not in self._answers:
            found = self._source.get_metadata(
                api_version=owner.api_version,
                kind=owner.kind,
                namespace=namespace,
                name=owner.name,
            )
            is_same = found is not None and found.uid == owner.uid
            self._answers[owner.uid] = found if is_same else None
            if len(self._answers) > ANSWERS_KEPT:
                self._answers.popitem(last=False)
        return self._answers[owner.uid]


def _pod_group(link: Link) -> Link | None:
    """Return the group of plain pods that a pod, or a Kueue Workload, belongs to."""
    name = _pod_group_name(link)
    if name is None:
        return None
    return Link(
        resource=POD_GROUPS,
        kind="PodGroup",
        namespace=link.namespace,
        name=name,
        uid=f"pod-group/{link.namespace}/{name}",
        metadata=link.metadata,
    )


def _pod_group_name(link: Link) -> str | None:
    metadata = link.metadata
    owners = (metadata.owner_references or ()) if metadata is not None else ()
    if metadata is None or any(owner.controller for owner in owners):
        return None
    if link.resource == KUEUE_WORKLOADS.name:
        return link.name if any(owner.kind == PODS.kind for owner in owners) else None
    return (metadata.labels or {}).get(POD_GROUP_LABEL) if link.kind == PODS.kind else None
