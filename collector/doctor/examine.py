"""The whole examination: cluster, targets, warehouse and data folder, and what they mean together.

Nothing is stored, changed or locked anywhere.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from collector.collect import allow_open_files
from collector.discovery import ScrapeTarget
from collector.discovery_files import FileDiscovery
from collector.discovery_http import HttpDiscovery
from collector.discovery_labels import SourceState, merged_targets
from collector.doctor.codes import Code
from collector.doctor.diagnosis import Diagnosis
from collector.doctor.finding import Finding, fault, gap, ordered
from collector.doctor.fleet import fleet_findings, views_findings
from collector.doctor.targets import Asked, Asking, ask_targets
from collector.doctor.waiting import folder_findings
from collector.doctor.warehouse import warehouse_findings
from collector.scrape import FetchLimits
from steward.clock import Clock
from steward.ids import ClusterName
from steward.settings import Settings

if TYPE_CHECKING:
    from collector.doctor.cluster_check import ClusterCheck

_SPARE_FILES = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """All targets that are named, and how it goes with those who name them."""

    targets: tuple[ScrapeTarget, ...]
    states: tuple[SourceState, ...]


async def examine(
    settings: Settings, *, urls: Sequence[str], clock: Clock, is_patient: bool
) -> Diagnosis:
    """Look at everything once.

    Args:
        settings: as the collector has them.
        urls: static targets, in the spelling of ``target_urls``.
        clock: the system's, as clocks of others are compared with it.
        is_patient: ask each target a second time, one interval later.

    Raises:
        SettingsError: rules of ownership or selections of exporters are wrong.
    """
    cluster, unread = await asyncio.to_thread(_look_at_cluster, settings, clock)
    found = await _find(settings, urls=urls, cluster=cluster)
    asked = await _ask(settings, found.targets, cluster=cluster, clock=clock, is_patient=is_patient)
    others = await asyncio.to_thread(_own_findings, settings)
    findings = [
        *unread,
        *_of_sources(found, settings=settings),
        *asked.findings,
        *_of_views(asked, cluster=cluster),
        *others,
    ]
    return Diagnosis(
        findings=ordered(findings),
        target_count=len(found.targets),
        device_count=len(frozenset().union(*(view.uuids for view in asked.views))),
        cluster_role=None if cluster is None else cluster.cluster_role,
        binding_command=None if cluster is None else cluster.binding_command,
    )


def _look_at_cluster(
    settings: Settings, clock: Clock
) -> tuple[ClusterCheck | None, tuple[Finding, ...]]:
    """Return what there is to say of the cluster; nothing where none is watched."""
    if settings.kubernetes.access == "off":
        return None, ()
    try:
        from collector.doctor.cluster_check import (  # noqa: PLC0415 - an optional part
            check_cluster,
        )
    except ModuleNotFoundError as error:
        missing = fault(
            Code.PART_MISSING,
            "kubernetes.access",
            message=f"the cluster cannot be read without {_part(error)}, which is not installed",
            remedy="install gpu-steward[kubernetes]",
        )
        return None, (missing,)
    cluster = check_cluster(settings, clock=clock)
    return cluster, cluster.findings


def _part(error: ModuleNotFoundError) -> str:
    return (error.name or "a library").partition(".")[0]


async def _find(settings: Settings, *, urls: Sequence[str], cluster: ClusterCheck | None) -> _Found:
    """Return the targets of all places that name any, each place looked at once."""
    files = FileDiscovery(settings.collect.file_sd)
    http = HttpDiscovery(
        settings.collect.http_sd,
        refresh_s=settings.collect.sd_interval_s,
        timeout_s=settings.collect.timeout_s,
    )
    static = tuple(ScrapeTarget(url=url) for url in urls)
    listed = await asyncio.to_thread(files.look)
    offered = await http.look()
    named, states = ((), ()) if cluster is None else (cluster.targets, cluster.states)
    return _Found(
        targets=merged_targets((static, listed, offered, named)),
        states=(*files.states(), *http.states(), *states),
    )


async def _ask(
    settings: Settings,
    targets: Sequence[ScrapeTarget],
    *,
    cluster: ClusterCheck | None,
    clock: Clock,
    is_patient: bool,
) -> Asked:
    allow_open_files(len(targets) + _SPARE_FILES)
    chosen = settings.collect
    nodes = () if cluster is None or cluster.nodes is None else cluster.nodes
    asking = Asking(
        cluster=ClusterName(settings.cluster),
        limits=FetchLimits(timeout_s=chosen.timeout_s, body_limit_bytes=chosen.body_limit_bytes),
        clock=clock,
        cluster_nodes=frozenset(node.name for node in nodes),
        again_after_s=chosen.interval_s if is_patient else None,
    )
    return await ask_targets(targets, asking=asking)


def _of_sources(found: _Found, *, settings: Settings) -> Iterator[Finding]:
    """Yield lists of targets that fail, and that there is no target at all."""
    for state in found.states:
        if state.error is not None:
            yield fault(
                Code.TARGETS_UNLISTED,
                state.source,
                message=state.error,
                remedy=state.hint or "check the settings",
            )
    if not found.targets:
        tell = fault if settings.kubernetes.access == "off" else gap
        yield tell(
            Code.NO_TARGETS,
            "collect.targets",
            message="no exporter is named: the work of every GPU is unknown",
            remedy="name one with --scrape, collect.targets, collect.file_sd, collect.http_sd or "
            "kubernetes.exporters",
        )


def _of_views(asked: Asked, *, cluster: ClusterCheck | None) -> list[Finding]:
    nodes = None if cluster is None else cluster.nodes
    return [*views_findings(asked.views), *fleet_findings(asked.views, nodes=nodes)]


def _own_findings(settings: Settings) -> list[Finding]:
    return [*warehouse_findings(settings), *folder_findings(settings)]
