"""What only shows when all targets are seen together, and beside the cluster's own nodes; pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

from collector.doctor.codes import Code
from collector.doctor.exporters import complete_finding, exporter_findings
from collector.doctor.finding import Finding, Severity, counted, gap, named, note
from collector.doctor.target_view import TargetView
from collector.normalize.dialects import HAMI

_TOLD_ELSEWHERE: Final = frozenset(
    {
        Code.PROFILING_ABSENT,
        Code.PROFILING_PARTIAL,
        Code.PROFILING_UNEVEN,
        Code.UTILISATION_ABSENT,
        Code.MEMORY_ABSENT,
        Code.POWER_ABSENT,
        Code.MODEL_ABSENT,
        Code.NO_PODRESOURCES,
        Code.POD_LABELS_ABSENT,
        Code.NO_HOLDER_TOLD,
    }
)
"""What a target need not tell of devices of which another target tells it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeView:
    """A node as the cluster knows it."""

    name: str
    gpu_count: int
    """Devices, MIG instances or shares that can be asked for there; 0 for a node without GPUs."""
    board_count: int | None
    """Boards it has; None where only shares or instances are counted."""


def fleet_findings(
    views: Sequence[TargetView], *, nodes: Sequence[NodeView] | None
) -> list[Finding]:
    """Return what is doubled between targets, what no target shows and what no node is.

    Args:
        views: targets that answered, each normalised by itself.
        nodes: all nodes of the cluster; None where none is watched or they may not be read.
    """
    if nodes is None:
        return _doubled(views)
    return [*_doubled(views), *_unseen(views, nodes=nodes), *_unknown(views, nodes=nodes)]


def views_findings(views: Sequence[TargetView]) -> list[Finding]:
    """Return what each target lacks and no other target of the same devices makes good.

    A target that lacks nothing that counts has a FINE finding.
    """
    found = told_nowhere([one for view in views for one in exporter_findings(view)], views=views)
    lacking = {one.subject for one in found if one.severity in {Severity.FAULT, Severity.GAP}}
    return [*found, *(complete_finding(view) for view in views if view.url not in lacking)]


def told_nowhere(findings: Sequence[Finding], *, views: Sequence[TargetView]) -> list[Finding]:
    """Return the findings without those that another target of the same devices makes good."""
    lacking = {(one.code, one.subject) for one in findings}
    by_url = {view.url: view for view in views}
    shown = _targets_by_device(views)

    def is_told(one: Finding) -> bool:
        if one.code not in _TOLD_ELSEWHERE:
            return False
        devices = by_url[one.subject].uuids
        return all(
            any((one.code, url) not in lacking for url in shown[device]) for device in devices
        )

    return [one for one in findings if not is_told(one)]


def _targets_by_device(views: Sequence[TargetView]) -> Mapping[str, Sequence[str]]:
    """Return the targets that show each device."""
    shown: defaultdict[str, list[str]] = defaultdict(list)
    for view in views:
        for uuid in view.uuids:
            shown[uuid].append(view.url)
    return shown


def _doubled(views: Sequence[TargetView]) -> list[Finding]:
    """Name each group of targets that show the same devices, once."""
    groups: defaultdict[tuple[str, ...], int] = defaultdict(int)
    for urls in _targets_by_device(views).values():
        if len(urls) > 1:
            groups[tuple(sorted(urls))] += 1
    return [
        note(
            Code.DEVICES_DOUBLED,
            urls[0],
            message=f"{counted(count, 'device')} shown by {named(urls[1:])} too: each counts once, "
            "from the target that tells most",
            remedy="scrape one exporter per node, unless each tells what the other does not",
        )
        for urls, count in sorted(groups.items())
    ]


def _unseen(views: Sequence[TargetView], *, nodes: Sequence[NodeView]) -> list[Finding]:
    seen = _devices_by_node(views)
    in_shares = _devices_by_node([view for view in views if HAMI.name in view.dialects])
    findings = []
    for node in nodes:
        shown = len(seen.get(node.name, frozenset()))
        if node.gpu_count and not shown:
            findings.append(_node_unseen(node))
        elif node.name not in in_shares and 0 < shown < (node.board_count or 0):
            findings.append(_node_partly_seen(node, shown=shown))
    return findings


def _node_unseen(node: NodeView) -> Finding:
    return gap(
        Code.NODE_UNSEEN,
        node.name,
        message=f"the cluster offers {counted(node.gpu_count, 'GPU')} on this node, and no target "
        "shows one",
        remedy="scrape an exporter on this node, and see that both call it by this name",
    )


def _node_partly_seen(node: NodeView, *, shown: int) -> Finding:
    return gap(
        Code.NODE_PARTLY_SEEN,
        node.name,
        message=f"the cluster has {counted(node.board_count or 0, 'GPU')} on this node, targets "
        f"show {shown}",
        remedy="look on the node whether nvidia-smi shows all of them, and restart the exporter; "
        "where the device plugin hands out shares of GPUs this is right",
    )


def _unknown(views: Sequence[TargetView], *, nodes: Sequence[NodeView]) -> list[Finding]:
    known = {node.name for node in nodes}
    return [
        gap(
            Code.NODE_UNKNOWN,
            view.url,
            message=f"it is on {named(strange)}, which is no node of the cluster: its devices are "
            "not joined with the pods that hold them",
            remedy="give the exporter NODE_NAME (spec.nodeName), or discover it through "
            "Kubernetes; for a machine outside the cluster this is right",
        )
        for view in views
        if (strange := _devices_by_node([view]).keys() - known)
    ]


def _devices_by_node(views: Sequence[TargetView]) -> Mapping[str, frozenset[str]]:
    found: defaultdict[str, set[str]] = defaultdict(set)
    for view in views:
        for row in view.rows:
            found[cast("str", row["node"])].add(cast("str", row["device_uuid"]))
    return {node: frozenset(uuids) for node, uuids in found.items()}
