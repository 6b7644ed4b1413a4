"""Who held which device in the past: each past scrape is one poll of its nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from datetime import datetime
from itertools import pairwise
from statistics import median
from typing import Final

from collector.allocation.builder import AllocationBuilder
from collector.allocation.polls import Output, Poll, Row
from collector.backfill.scrapes import PastScrape
from collector.backfill.series_labels import TargetKey
from collector.holdings import DeviceKey, Holding, HoldingSource
from collector.lifecycle.output import PodEnd
from collector.normalize import NormalizedScrape
from collector.ownership import Owners
from steward.ids import ClusterName
from steward.units import MILLIS_PER_SECOND

USUAL_POLL_S: Final = 60.0
"""Where a server has too few scrapes to tell their interval."""


@dataclass(slots=True, kw_only=True)
class PastAllocations:
    """Feeds past scrapes and ends of pods, in the order of time, to the builder of intervals."""

    cluster: ClusterName
    owners: Owners
    memory: InitVar[Mapping[str, bytes]]
    poll_s: float
    sources: dict[TargetKey, HoldingSource] = field(default_factory=dict)
    """What each target's holdings were told by; a target that never told one says nothing."""
    ends: list[PodEnd] = field(default_factory=list)
    """Pods whose end is known and not reached yet, the earliest last."""
    remembered: dict[str, bytes] = field(init=False)
    builder: AllocationBuilder = field(init=False)

    def __post_init__(self, memory: Mapping[str, bytes]) -> None:
        """Go on from what was remembered."""
        self.remembered = dict(memory)
        self.builder = AllocationBuilder(
            cluster=self.cluster, poll_s=self.poll_s, owners=self.owners, memory=memory
        )

    def expect(self, ends: Iterable[PodEnd]) -> None:
        """Learn of ends, to be told when their time is reached."""
        self.ends = sorted([*self.ends, *ends], key=lambda end: end.finished_at, reverse=True)

    def observe(self, target: TargetKey, scrape: NormalizedScrape) -> list[Row]:
        """Return the rows that a scrape leads to."""
        rows = self._reach(scrape.scraped_at)
        for holding in scrape.holdings:
            self.sources[target] = holding.source
        source = self.sources.get(target)
        if source is None:
            return rows
        shown = _shown(scrape)
        for node, devices in sorted(shown.items()):
            held = [each for each in scrape.holdings if each.node == node]
            poll = _poll(node, scrape.scraped_at, source=source, held=held, devices=devices)
            rows += self._taken(self.builder.observe(poll))
        return rows

    def finish(self, until_at: datetime) -> list[Row]:
        """Return the rows of all ends that an hour told, and of what fell silent in it."""
        latest = max([until_at, *(end.finished_at for end in self.ends)])
        return self._reach(latest) + self._taken(self.builder.advance(until_at))

    def _reach(self, at: datetime) -> list[Row]:
        rows: list[Row] = []
        while self.ends and self.ends[-1].finished_at <= at:
            end = self.ends.pop()
            output = self.builder.pod_finished(
                end.namespace, end.pod, pod_uid=end.pod_uid, finished_at=end.finished_at
            )
            rows += self._taken(output)
        return rows

    def _taken(self, output: Output) -> list[Row]:
        for key, content in output.remember.items():
            if content is None:
                self.remembered.pop(key, None)
            else:
                self.remembered[key] = content
        return output.rows


def _poll(
    node: str,
    at: datetime,
    *,
    source: HoldingSource,
    held: Sequence[Holding],
    devices: frozenset[DeviceKey],
) -> Poll:
    own = [each for each in held if each.source == source]
    return Poll(node=node, at=at, source=source, holdings=own, devices=devices)


def _shown(scrape: NormalizedScrape) -> dict[str, frozenset[DeviceKey]]:
    """Return the devices that a scrape speaks of, by node."""
    found: dict[str, set[DeviceKey]] = {}
    for row in scrape.rows:
        found.setdefault(row.node, set()).add((row.device_uuid, row.instance_id))
    return {node: frozenset(devices) for node, devices in found.items()}


def interval_s(scrapes: Iterable[PastScrape]) -> float | None:
    """Return the usual seconds from one scrape of a target to the next; None where none tells."""
    times: dict[TargetKey, list[int]] = {}
    for scrape in scrapes:
        times.setdefault(scrape.target, []).append(scrape.at_ms)
    gaps = [after - before for each in times.values() for before, after in pairwise(sorted(each))]
    return median(gaps) / MILLIS_PER_SECOND if gaps else None
