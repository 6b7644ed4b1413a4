"""The collector's own metrics for Prometheus, on a port of this machine only."""

from __future__ import annotations

import errno
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from collector.cluster_metrics import cluster_metrics
from steward.errors import PortInUseError, UsageError

if TYPE_CHECKING:
    from collector.assembly import Collector as Running

HOST = "127.0.0.1"


class CollectorMetrics(Collector):
    """Reads the tallies whenever somebody asks."""

    def __init__(self, running: Running) -> None:
        """Keep what to read from."""
        self._loop = running.loop
        self._delivery = running.delivery
        self._attribution = running.attribution
        self._watch = running.watch

    def collect(self) -> Iterable[Metric]:
        """Yield every metric that ``docs/collect.md`` and ``docs/kubernetes.md`` list."""
        yield from self._scrapes()
        yield from self._rows()
        yield self._rivals()
        yield CounterMetricFamily(
            "steward_collect_late_polls",
            "Words of who holds what that came after a later one of their source.",
            value=self._attribution.late_poll_count,
        )
        if self._watch is not None:
            yield from cluster_metrics(self._watch.health())

    def _scrapes(self) -> Iterator[Metric]:
        tally = self._loop.tally
        scrapes = CounterMetricFamily(
            "steward_collect_scrapes", "Scrapes by outcome: ok or a reason.", labels=["outcome"]
        )
        for outcome, count in sorted(dict(tally.scrapes).items()):
            scrapes.add_metric([outcome], count)
        yield scrapes
        yield GaugeMetricFamily(
            "steward_collect_failing_targets",
            "Targets whose last scrape failed.",
            value=len(tally.failing),
        )
        yield CounterMetricFamily(
            "steward_collect_full_reads",
            "Good scrapes whose text had to be read in full: more than numbers had changed.",
            value=tally.full_reads,
        )
        yield CounterMetricFamily(
            "steward_collect_skipped_slots",
            "Scrapes left out since the target's scrape before was not done.",
            value=tally.skipped_slots,
        )

    def _rivals(self) -> Metric:
        rivals = GaugeMetricFamily(
            "steward_collect_rival_devices",
            "Devices that two targets show; those of the owner are kept.",
            labels=["owner", "other"],
        )
        for pair, count in self._loop.rivals.items():
            rivals.add_metric(pair, count)
        return rivals

    def _rows(self) -> Iterator[Metric]:
        tally = self._delivery.tally
        rows = CounterMetricFamily(
            "steward_collect_rows",
            "Rows by table and fate: delivered, dropped (backlog full), rejected.",
            labels=["table", "fate"],
        )
        fates = {
            "delivered": tally.delivered_rows,
            "dropped": tally.dropped_rows,
            "rejected": tally.rejected_rows,
        }
        for fate, by_table in fates.items():
            for table, count in sorted(dict(by_table).items()):
                rows.add_metric([table, fate], count)
        yield rows
        yield CounterMetricFamily(
            "steward_collect_failed_deliveries",
            "Delivery rounds that the warehouse did not answer.",
            value=tally.failed_tries,
        )
        yield GaugeMetricFamily(
            "steward_collect_backlog_rows",
            "Rows not yet delivered.",
            value=self._delivery.waiting_rows,
        )
        yield GaugeMetricFamily(
            "steward_collect_backlog_bytes",
            "What the batches that wait occupy, on disk as a rule.",
            value=self._delivery.waiting_bytes,
        )


@contextmanager
def metrics_server(port: int | None, running: Running) -> Iterator[None]:
    """Serve the metrics for the length of the block; without a port do nothing.

    Raises:
        UsageError: no such port.
        PortInUseError: the port is taken.
    """
    if port is None:
        yield
        return
    if not 0 < port < 65_536:
        raise UsageError(f"no port has the number {port}", hint="choose 1 to 65535")
    registry = CollectorRegistry()
    registry.register(CollectorMetrics(running))
    try:
        server, thread = start_http_server(port, addr=HOST, registry=registry)
    except OSError as error:
        raise _port_error(port, error) from error
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _port_error(port: int, error: OSError) -> PortInUseError:
    why = "is in use" if error.errno == errno.EADDRINUSE else f"cannot be used: {error.strerror}"
    return PortInUseError(f"port {port} of {HOST} {why}", hint="choose another with --metrics-port")
