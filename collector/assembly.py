"""The parts of a running collector, put together as the settings say."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from collector.attribution import Attribution
from collector.backlog import BacklogLimits
from collector.delivery import Delivery
from collector.discovery import ScrapeTarget
from collector.discovery_files import FileDiscovery
from collector.discovery_http import HttpDiscovery
from collector.discovery_kubernetes import ExporterTargets
from collector.discovery_run import TargetDiscovery, TargetSources
from collector.exporter_selection import selections
from collector.lifecycle.lifecycle import Lifecycle
from collector.lifecycle.ownership_rules import ownership_rules
from collector.loop import LoopPlan, ScrapeLoop
from collector.spool import Spool, spool_path
from steward.clock import Clock
from steward.errors import MissingPartError, UsageError
from steward.ids import ClusterName
from steward.ports import OpenWarehouse
from steward.settings import Settings

if TYPE_CHECKING:
    from collector.cluster_watch import ClusterWatch

log = logging.getLogger(__name__)

_NO_LIMIT: Final = sys.maxsize


@dataclass(frozen=True, slots=True, kw_only=True)
class Collector:
    """Everything that runs until the collector is told to stop."""

    loop: ScrapeLoop
    delivery: Delivery
    attribution: Attribution
    discovery: TargetDiscovery
    watch: ClusterWatch | None
    """The watched cluster; None where none is watched."""

    def set_targets(self, targets: Sequence[ScrapeTarget]) -> None:
        """Scrape these from now on."""
        self.loop.set_targets(targets)
        self.attribution.keep_only(one.url for one in targets)


def open_spool(settings: Settings) -> Spool:
    """Open the place where rows wait, and say what an earlier collector left there.

    Raises:
        OwnedElsewhereError: another collector uses it.
        WarehouseError: it cannot be opened.
    """
    path = spool_path(settings.data_dir, ClusterName(settings.cluster))
    limits = BacklogLimits(row_limit=_NO_LIMIT, byte_limit=settings.collect.spool_limit_bytes)
    spool = Spool(path, limits=limits)
    if spool.row_count:
        log.info("%d rows of an earlier run wait in %s", spool.row_count, path)
    return spool


def target_sources(
    urls: Sequence[str], *, settings: Settings, cluster: ExporterTargets | None
) -> TargetSources:
    """Return where targets come from.

    Raises:
        UsageError: nowhere.
    """
    chosen = settings.collect
    sources = TargetSources(
        static=urls,
        files=FileDiscovery(chosen.file_sd) if chosen.file_sd else None,
        http=HttpDiscovery(chosen.http_sd, refresh_s=chosen.sd_interval_s)
        if chosen.http_sd
        else None,
        cluster=cluster,
    )
    if not (urls or chosen.file_sd or chosen.http_sd or cluster is not None):
        raise UsageError(
            "there is nothing to collect from",
            hint="name a target (--scrape http://node1:9400/metrics) or a cluster (--kubernetes)",
        )
    return sources


def assembled(
    plan: LoopPlan, *, settings: Settings, spool: Spool, open_warehouse: OpenWarehouse, clock: Clock
) -> Collector:
    """Put the parts together; nothing is asked yet.

    Raises:
        SettingsError: rules or selections are wrong.
        SourceError: the description of the API server is missing or broken.
        MissingPartError: a cluster is to be watched without the part for it.
        UsageError: there is nothing to collect from.
    """
    delivery = Delivery(open_warehouse, store=spool)
    memory = spool.recall()
    exporters, lifecycle, watch_of = _cluster_parts(settings, memory=memory, clock=clock)
    sources = target_sources(plan.urls, settings=settings, cluster=exporters)
    attribution = Attribution(
        cluster=plan.cluster,
        poll_s=plan.interval_s,
        lifecycle=lifecycle,
        memory=memory,
        offer=delivery.offer,
        clock=clock,
    )
    return Collector(
        loop=ScrapeLoop(plan, offer=delivery.offer, clock=clock, observe=attribution.observe),
        delivery=delivery,
        attribution=attribution,
        discovery=TargetDiscovery(sources),
        watch=None if watch_of is None else watch_of(attribution),
    )


_WatchOf = Callable[[Attribution], "ClusterWatch"]


def _cluster_parts(
    settings: Settings, *, memory: Mapping[str, bytes], clock: Clock
) -> tuple[ExporterTargets | None, Lifecycle | None, _WatchOf | None]:
    """Return what watching a cluster needs; all None where none is watched."""
    if settings.kubernetes.access == "off":
        return None, None, None
    rules = ownership_rules(settings.ownership)
    exporters = ExporterTargets(selections(settings.kubernetes.exporters))
    try:
        from collector import cluster_watch  # noqa: PLC0415 - needs the extra ``kubernetes``
    except ImportError as error:
        raise MissingPartError(
            f"watching a cluster needs the package {error.name}",
            hint="install it: pip install 'gpu-steward[kubernetes]'",
        ) from error
    link = cluster_watch.ClusterLink(cluster_watch.origin_of(settings.kubernetes))
    lifecycle = Lifecycle(
        cluster=settings.cluster, rules=rules, memory=memory, source=link.metadata
    )

    def watch_of(attribution: Attribution) -> ClusterWatch:
        return cluster_watch.ClusterWatch(
            link, apply=attribution.apply, exporters=exporters, clock=clock
        )

    return exporters, lifecycle, watch_of
