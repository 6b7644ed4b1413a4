"""Targets whose texts are read by plan, beside the same targets that are always read in full."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pyarrow as pa

from collector.harvest import Harvest
from collector.normalize import NormalizeState, Planner
from collector.normalize.claims import DeviceClaims
from collector.normalize.plan_trace import Trace
from collector.reading import Reading, Target, reading_of
from collector.scrape import Page
from steward.ids import ClusterName
from tests.support.exposition_texts import INTERVAL, NOON


class NeverPlanned(Planner):
    """Makes no plans, so that every text is read in full."""

    def trace(self) -> Trace | None:
        """Return nothing to take notes in."""
        return None


class EagerPlanner(Planner):
    """Makes a plan of every text, however the last ones fared."""

    def trace(self) -> Trace | None:
        """Return what to take notes in."""
        return Trace()


@dataclass(slots=True)
class Side:
    """Two targets of one collector that show the same devices."""

    planner: type[Planner]
    claims: DeviceClaims | None
    targets: list[Target] = field(default_factory=list)
    full_reads: int = 0

    def __post_init__(self) -> None:
        """Start with nothing remembered."""
        self.targets = [
            Target(
                url=f"http://10.0.0.{number}:9400/metrics",
                cluster=ClusterName("c1"),
                state=NormalizeState(claims=self.claims),
                planner=self.planner(),
            )
            for number in range(2)
        ]

    def scrape(self, number: int, text: bytes, *, after: timedelta) -> dict[str, Any]:
        """Return everything that one scrape gives, by table."""
        reading = reading_of(
            self.targets[number], Page(body=text), scraped_at=NOON + after, duration_s=0.5
        )
        self.full_reads += reading.is_full
        return outcome(reading)


def outcome(reading: Reading) -> dict[str, Any]:
    """Return everything that a scrape gave: rows by table, holdings, nodes, why there is none."""
    harvest = Harvest()
    harvest.add(reading)
    rows: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for name, table in harvest.take():
        rows[name] += pa.table(table).to_pylist()
    rows["device_sample"].sort(
        key=lambda row: (
            row["device_uuid"],
            -1 if row["instance_id"] is None else row["instance_id"],
        )
    )
    return {
        **rows,
        "holdings": reading.holdings,
        "nodes": reading.nodes,
        "refusal": reading.refusal,
    }


class Twins:
    """One target twice: read by plan where it can be, and always in full."""

    def __init__(self) -> None:
        """Start at noon with nothing remembered."""
        self.planned, self.full = Side(Planner, None), Side(NeverPlanned, None)
        self._after = timedelta(0)

    def scrape(self, *lines: str) -> tuple[dict[str, Any], bool]:
        """Return what the text gives, the same both ways, and whether it was read in full."""
        text = ("\n".join(lines) + "\n").encode()
        before, after = self.planned.full_reads, self._after
        self._after += INTERVAL
        one = self.planned.scrape(0, text, after=after)
        assert one == self.full.scrape(0, text, after=after)
        return one, self.planned.full_reads > before
