"""Builders of what the doctor looks at: targets' answers, and clusters without a server."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from collector.discovery import ScrapeTarget
from collector.doctor.cluster import ClusterView
from collector.doctor.finding import Finding
from collector.doctor.target_view import TargetView
from collector.normalize import NormalizedScrape, NormalizeState, normalize
from collector.sources.exposition import Exposition, ExpositionParser
from collector.sources.kubernetes.objects import Metadata
from collector.sources.kubernetes.objects_cluster import Node, NodeStatus
from collector.sources.kubernetes.permissions import MissingPermission
from collector.sources.kubernetes.resource import Resource
from collector.sources.kubernetes.resources import RESOURCES
from tests.support.exposition_texts import NOON, TARGET, line

GPU_MODEL = {
    "gpu": "0",
    "UUID": "GPU-a",
    "modelName": "NVIDIA H100 80GB HBM3",
    "Hostname": "n1",
    "pod": "train-0",
    "namespace": "team",
    "container": "main",
}
"""Labels of a board that tell all that reports need."""
WHOLE = {
    "DCGM_FI_DEV_GPU_UTIL": 97,
    "DCGM_FI_PROF_SM_ACTIVE": 0.5,
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": 0.4,
    "DCGM_FI_PROF_DRAM_ACTIVE": 0.3,
    "DCGM_FI_DEV_FB_USED": 1000,
    "DCGM_FI_DEV_POWER_USAGE": 300.5,
}
"""Values that tell all that reports need."""


def answer(
    *,
    without: Iterable[str] = (),
    hidden: Iterable[str] = (),
    labels: Mapping[str, str] | None = None,
    more: Iterable[str] = (),
) -> list[str]:
    """Return the lines of one board, complete but for what is named.

    Args:
        without: metrics that are left out.
        hidden: labels that are left out.
        labels: labels with another text.
        more: lines that come after them.
    """
    left_out, unshown = set(without), set(hidden)
    shown = GPU_MODEL | dict(labels or {})
    kept = {name: text for name, text in shown.items() if name not in unshown}
    lines = [line(name, value, kept) for name, value in WHOLE.items() if name not in left_out]
    return [*lines, *more]


def view(  # noqa: PLR0913 - each test names the one thing it is about
    lines: Iterable[str],
    *,
    url: str = TARGET,
    node: str | None = None,
    pod: str | None = None,
    skew_s: float | None = None,
    second: Iterable[str] | None = None,
    cluster_nodes: Iterable[str] = (),
) -> TargetView:
    """Return a target's answer as the checks see it; a second one comes 15 s later."""
    state, parser = NormalizeState(node=node, own_pod=pod), ExpositionParser()

    def read(text: Iterable[str], at: datetime) -> tuple[Exposition, NormalizedScrape]:
        exposition = parser.parse("\n".join(text) + "\n", target=url)
        scrape = normalize(exposition, target=url, cluster="c1", scraped_at=at, state=state)
        return exposition, scrape

    exposition, scrape = read(lines, NOON)
    return TargetView(
        target=ScrapeTarget(url=url, node=node, pod=pod),
        exposition=exposition,
        scrape=scrape,
        skew_s=skew_s,
        cluster_nodes=frozenset(cluster_nodes),
        second=None if second is None else read(second, NOON + timedelta(seconds=15))[1],
    )


def told(findings: Iterable[Finding]) -> list[tuple[str, str]]:
    """Return severity and code of each finding."""
    return [(str(one.severity), str(one.code)) for one in findings]


def codes(findings: Iterable[Finding]) -> list[str]:
    """Return the codes, ascending."""
    return sorted(str(one.code) for one in findings)


def node(
    name: str,
    *,
    capacity: Mapping[str, str] | None = None,
    allocatable: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
) -> Node:
    """Return a node; it offers what it has where nothing else is said."""
    there = dict({"nvidia.com/gpu": "8"} if capacity is None else capacity)
    offered = there if allocatable is None else dict(allocatable)
    return Node(
        metadata=Metadata(name=name, labels=dict(labels or {})),
        status=NodeStatus(capacity=there, allocatable=offered),
    )


PRODUCT = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}


def cluster_view(
    *,
    nodes: Iterable[Node] | None = (),
    missing: Iterable[MissingPermission] = (),
    served: Mapping[Resource, str | None] | None = None,
    groups: Mapping[str, frozenset[str]] | None = None,
    **others: object,
) -> ClusterView:
    """Return a cluster in which everything is as it should be but for what is named."""
    every = {one: one.versions[0] for one in RESOURCES}
    return ClusterView(
        server="https://cluster",
        version="v1.36.3",
        account="system:serviceaccount:steward:collect",
        served=every | dict(served or {}),
        groups={one.group: frozenset(one.versions) for one in RESOURCES} | dict(groups or {}),
        missing=list(missing),
        nodes=None if nodes is None else list(nodes),
        **{"unread": {}, **others},  # type: ignore[arg-type]  # fields of the view by name
    )
