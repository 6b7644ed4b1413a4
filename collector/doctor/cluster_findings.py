"""What the collector cannot see of a cluster, from what the API server told; pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Final

from collector.doctor.cluster import ClusterView
from collector.doctor.codes import Code
from collector.doctor.finding import Finding, counted, fault, fine, gap, lasting, named, note
from collector.doctor.fleet import NodeView
from collector.lifecycle.devices import boards, is_accelerator_driver, offers
from collector.lifecycle.nodes import COUNT_LABEL
from collector.lifecycle.quantities import whole
from collector.lifecycle.requests import PRODUCT_LABELS, WHOLE_GPUS, is_gpu_resource
from collector.lifecycle.sharing import REPLICAS_LABEL, SHARED_STRATEGIES, STRATEGY_LABEL
from collector.sources.kubernetes.objects import Amounts
from collector.sources.kubernetes.objects_cluster import Node, ResourceSlice
from collector.sources.kubernetes.permissions import VERBS, MissingPermission
from collector.sources.kubernetes.resource import Resource
from collector.sources.kubernetes.resources import NODES, PODS

PROJECTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "kueue.x-k8s.io": "Kueue",
        "scheduling.volcano.sh": "Volcano",
        "batch.volcano.sh": "Volcano",
        "scheduling.run.ai": "KAI scheduler",
        "resource.k8s.io": "dynamic resource allocation",
        "jobset.x-k8s.io": "JobSet",
        "trainer.kubeflow.org": "Kubeflow Trainer",
        "kubeflow.org": "Kubeflow",
        "ray.io": "KubeRay",
        "serving.kserve.io": "KServe",
        "leaderworkerset.x-k8s.io": "LeaderWorkerSet",
        "argoproj.io": "Argo Workflows",
    }
)
"""Who brings the kinds of an API group."""
_VITAL: Final = frozenset({NODES.plural, PODS.plural})
"""Without these nothing else of a cluster means anything."""
_MIG_SUFFIX: Final = "-MIG-"


def cluster_findings(view: ClusterView, *, now: datetime) -> list[Finding]:
    """Return what is not seen of the cluster, and one FINE finding that it answers."""
    return [
        _read(view),
        *_permissions(view),
        *_kinds(view),
        *_nodes(view),
        *_teams(view),
        *_events(view, now=now),
    ]


def _read(view: ClusterView) -> Finding:
    account = view.account or "an account that it does not name"
    nodes = "" if view.nodes is None else f", {counted(len(view.nodes), 'node')}"
    projects = _projects(one.group for one, version in view.served.items() if version is not None)
    beside = f"; of optional parts it has {', '.join(projects)}" if projects else ""
    return fine(
        Code.CLUSTER_READ,
        view.server,
        message=f"Kubernetes {view.version} answers to {account}{nodes}{beside}",
    )


def _permissions(view: ClusterView) -> Iterator[Finding]:
    """Yield one finding for each API group, as a ClusterRole has one rule for each."""
    groups: defaultdict[str, list[MissingPermission]] = defaultdict(list)
    for one in view.missing:
        groups[one.group].append(one)
    for group in sorted(groups):
        lacking = groups[group]
        plurals = sorted({one.resource for one in lacking})
        verbs = sorted({verb for one in lacking for verb in _needed(one)})
        is_vital = not group and not _VITAL.isdisjoint(plurals)
        tell = fault if is_vital else gap
        yield tell(
            Code.PERMISSION_MISSING,
            view.server,
            message=f"{view.account or 'the account'} may not {_verbs(lacking)}"
            + (f" of {group}" if group else ""),
            remedy=f'add to its ClusterRole: {{apiGroups: ["{group}"], '
            f"resources: [{', '.join(plurals)}], verbs: [{', '.join(verbs)}]}}",
        )


def _needed(one: MissingPermission) -> tuple[str, ...]:
    """Return the verbs of its rule: a kind that is followed needs both."""
    return VERBS if one.verb in VERBS else (one.verb,)


def _verbs(lacking: Sequence[MissingPermission]) -> str:
    """Return what may not be done: ``list and watch pods; watch nodes``."""
    verbs: defaultdict[str, list[str]] = defaultdict(list)
    for one in sorted(lacking):
        verbs[one.resource].append(one.verb)
    kinds: defaultdict[str, list[str]] = defaultdict(list)
    for plural, missing in verbs.items():
        kinds[" and ".join(missing)].append(plural)
    return "; ".join(f"{missing} {', '.join(plurals)}" for missing, plurals in kinds.items())


def _kinds(view: ClusterView) -> Iterator[Finding]:
    absent = [one for one, version in view.served.items() if version is None]
    lost = _projects(one.group for one in absent if not view.groups.get(one.group))
    if lost:
        yield note(
            Code.KINDS_ABSENT,
            view.server,
            message=f"the cluster does not have {', '.join(lost)}",
            remedy="none, unless they should be there; what is installed later is found",
        )
    yield from _strange_versions(view, absent=absent)
    for kind, why in sorted(view.unread.items()):
        yield gap(
            Code.KINDS_UNREAD,
            view.server,
            message=f"{kind}: {why}",
            remedy="look into the log of the API server, and at what serves these objects",
        )


def _strange_versions(view: ClusterView, *, absent: Sequence[Resource]) -> Iterator[Finding]:
    """Yield groups that the server has in other versions than those that are read."""
    wanted: defaultdict[str, set[str]] = defaultdict(set)
    for one in absent:
        wanted[one.group].update(one.versions)
    for group in sorted(wanted):
        offered = view.groups.get(group, frozenset())
        if offered and offered.isdisjoint(wanted[group]):
            yield gap(
                Code.VERSIONS_UNKNOWN,
                view.server,
                message=f"the cluster has {group} in {', '.join(sorted(offered))}, and this "
                f"program reads it in {', '.join(sorted(wanted[group]))}",
                remedy="bring the collector to a version that reads it",
            )


def _projects(groups: Iterable[str]) -> list[str]:
    return sorted({PROJECTS[group] for group in groups if group in PROJECTS})


def node_views(view: ClusterView) -> tuple[NodeView, ...] | None:
    """Return the nodes for the comparison with targets; None where they are not known."""
    if view.nodes is None:
        return None
    claimable = _claimable(view.slices)
    return tuple(
        NodeView(
            name=node.metadata.name,
            gpu_count=gpu_count(node.status.allocatable) or claimable[node.metadata.name],
            board_count=_board_count(node, claimable=claimable[node.metadata.name]),
        )
        for node in view.nodes
    )


def gpu_count(amounts: Amounts | None) -> int:
    """Return how many devices, instances or shares a node has by its device plugins."""
    counts = [whole(each) for name, each in (amounts or {}).items() if is_gpu_resource(name)]
    return sum(count for count in counts if count is not None)


def _claimable(slices: Iterable[ResourceSlice]) -> Counter[str]:
    """Return how many boards DRA drivers offer on each node."""
    listed = [one for one in slices if is_accelerator_driver(one.spec.driver)]
    return Counter(offer.node for _, offer, _ in boards(offers(listed)) if offer.node is not None)


def _board_count(node: Node, *, claimable: int) -> int | None:
    """Return the boards of a node; None where what it offers are shares or MIG instances."""
    labels = node.metadata.labels or {}
    product = next((labels[name] for name in PRODUCT_LABELS if name in labels), "")
    if _MIG_SUFFIX in product:
        return claimable or None
    discovered = whole(labels.get(COUNT_LABEL))
    if discovered is not None:
        return max(discovered, claimable)
    if labels.get(STRATEGY_LABEL) in SHARED_STRATEGIES or labels.get(REPLICAS_LABEL):
        return claimable or None
    offered = {
        name: each for name, each in (node.status.capacity or {}).items() if is_gpu_resource(name)
    }
    is_whole = bool(offered) and set(offered) <= set(WHOLE_GPUS)
    return max(gpu_count(offered), claimable) if is_whole else claimable or None


def _nodes(view: ClusterView) -> Iterator[Finding]:
    nodes = node_views(view)
    if view.nodes is None or nodes is None:
        return
    if not any(node.gpu_count for node in nodes):
        yield gap(
            Code.GPU_NODES_ABSENT,
            view.server,
            message="no node of the cluster offers a GPU",
            remedy="install the vendor's device plugin or DRA driver, if the cluster has GPUs",
        )
    for node in view.nodes:
        yield from _held_back(node)
    yield from _model_labels(view.nodes, server=view.server)


def _held_back(node: Node) -> Iterator[Finding]:
    there, offered = gpu_count(node.status.capacity), gpu_count(node.status.allocatable)
    if offered < there:
        yield note(
            Code.GPUS_HELD_BACK,
            node.metadata.name,
            message=f"it has {counted(there, 'GPU')} and offers {offered}: the device plugin holds "
            "the others back as unhealthy",
            remedy="look into the device plugin's log and at the node's XID errors",
        )


def _model_labels(nodes: Sequence[Node], *, server: str) -> Iterator[Finding]:
    with_gpus = [node for node in nodes if gpu_count(node.status.capacity)]
    silent = [
        node.metadata.name
        for node in with_gpus
        if not any((node.metadata.labels or {}).get(label) for label in PRODUCT_LABELS)
    ]
    if silent:
        yield gap(
            Code.MODEL_LABELS_ABSENT,
            server,
            message=f"{len(silent)} of {counted(len(with_gpus), 'node')} with GPUs do not say "
            f"which model they have: {named(silent)}",
            remedy="install GPU feature discovery (part of the GPU operator), which sets "
            "nvidia.com/gpu.product; for AMD the node labeller (amd.com/gpu.product-name)",
        )


def _teams(view: ClusterView) -> Iterator[Finding]:
    if not view.teamless:
        return
    known = [pod.gpu_count for pod in view.teamless if pod.gpu_count is not None]
    claiming = len(view.teamless) - len(known)
    held = [counted(sum(known), "GPU")] if known else []
    held += [f"GPUs that {claiming:,} of them claim"] if claiming else []
    pods = counted(len(view.teamless), "pod")
    yield gap(
        Code.PODS_WITHOUT_TEAM,
        view.server,
        message=f"no team for {pods} with {' and '.join(held)}, in the namespaces "
        f"{named(pod.namespace for pod in view.teamless)}",
        remedy="set one of the labels of ownership.team_labels on the pods, their workloads or "
        "their namespaces, or add metadata.namespace to that setting",
    )


def _events(view: ClusterView, *, now: datetime) -> Iterator[Finding]:
    if view.oldest_event_at is None:
        return
    age = lasting(max(0.0, (now - view.oldest_event_at).total_seconds()))
    yield note(
        Code.EVENTS_SHORT_LIVED,
        view.server,
        message=f"its oldest event is {age} old: why pods waited before that is "
        "told to nobody who starts now",
        remedy="keep a collector running; --event-ttl of the API server is an hour by default",
    )
