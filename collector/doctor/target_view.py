"""One target's answer as the checks see it: as it came, and as it was understood."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, cast

import pyarrow as pa

from collector.discovery import ScrapeTarget
from collector.normalize import NormalizedScrape
from collector.normalize.dictionary import known_metric
from collector.sources.exposition import Exposition

Row = Mapping[str, Any]
DCGM_NAME: Final = "dcgm"


@dataclass(frozen=True, kw_only=True)
class TargetView:
    """What one target told."""

    target: ScrapeTarget
    exposition: Exposition
    scrape: NormalizedScrape
    """Normalised by itself, with a memory of its own."""
    skew_s: float | None
    """How far its clock is ahead of ours, at least; None where it does not tell the time."""
    cluster_nodes: frozenset[str] = frozenset()
    """Names of the cluster's nodes, where one is watched."""
    second: NormalizedScrape | None = None
    """Its answer one interval later, where that was asked for."""

    @property
    def url(self) -> str:
        """Return its address."""
        return self.target.url

    @property
    def is_in_kubernetes(self) -> bool:
        """Tell whether the target is a pod, or on a node of the cluster."""
        nodes = texts(self.scrape.samples, "node")
        return self.target.pod is not None or not nodes.isdisjoint(self.cluster_nodes)

    @cached_property
    def rows(self) -> Sequence[Row]:
        """Return the sample rows: one per board and MIG instance."""
        return self.scrape.samples.to_pylist()

    @cached_property
    def workers(self) -> Sequence[Row]:
        """Return the rows of what can be held: MIG instances, and boards that have none."""
        divided = {row["device_uuid"] for row in self.rows if row["instance_id"] is not None}
        return [
            row
            for row in self.rows
            if row["instance_id"] is not None or row["device_uuid"] not in divided
        ]

    @cached_property
    def uuids(self) -> frozenset[str]:
        """Return the boards it shows."""
        return texts(self.scrape.samples, "device_uuid")

    @property
    def device_count(self) -> int:
        """Return how many boards it shows."""
        return len(self.uuids)

    @cached_property
    def names(self) -> frozenset[str]:
        """Return the metric names of its answer."""
        return frozenset(sample[0] for sample in self.exposition.samples)

    @cached_property
    def dialects(self) -> frozenset[str]:
        """Return which exporters' names it uses."""
        known = (known_metric(name, labels.pairs) for name, labels, *_ in self.exposition.samples)
        return frozenset(metric.dialect.name for metric in known if metric is not None)

    def has(self, column: str) -> bool:
        """Tell whether any device gives this measure."""
        values = self.scrape.samples[column]
        return bool(values.null_count < len(values))

    def values_of(self, name: str) -> Iterator[tuple[Mapping[str, str], float]]:
        """Yield labels and value of each series of a metric."""
        for found, labels, value, _ in self.exposition.samples:
            if found == name:
                yield labels.pairs, value


def texts(table: pa.Table, column: str) -> frozenset[str]:
    """Return the distinct texts of a column, nulls left out."""
    return frozenset(cast("str", text) for text in table[column].to_pylist() if text is not None)
