"""Rows of ``device_sample`` from the numbers of many targets: whole columns, built at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import Any, Final

import numpy as np
import pyarrow as pa

from collector.normalize.metric import MEASURES
from collector.normalize.plan import Layout, Plan, PlanRows, Reals
from collector.normalize.presence import SOURCE
from collector.normalize.scrape_rows import process_table
from collector.normalize.units import Unit
from collector.tables import DEVICE_SAMPLE

_KINDS: Final = {field.name: field.type for field in DEVICE_SAMPLE}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedScrape:
    """One text that fitted its target's plan."""

    plan: Plan
    values: Reals
    """The numbers in the vendor's units, as the plan read them."""
    scraped_at_us: int
    """Microseconds since 1970."""
    cluster: str

    def processes(self, *, at: datetime) -> pa.Table | None:
        """Return ``device_process`` rows; None where there are none."""
        if not self.plan.processes:
            return None
        table = process_table(self.plan.told(self.values), cluster=self.cluster, at=at)
        return table if table.num_rows else None


def sample_tables(scrapes: Sequence[PlannedScrape]) -> Iterator[pa.Table]:
    """Yield the scrapes' rows as ``device_sample``, one table per layout."""
    groups: defaultdict[Layout, list[PlannedScrape]] = defaultdict(list)
    for scrape in scrapes:
        groups[scrape.plan.layout].append(scrape)
    for layout, group in groups.items():
        yield _table(layout, group)


def _table(layout: Layout, scrapes: list[PlannedScrape]) -> pa.Table:
    counts = [len(scrape.plan.rows.nodes) for scrape in scrapes]
    total = sum(counts)
    columns = dict(_told(scrapes, counts=counts))
    columns |= dict(_measured(layout, scrapes, counts=counts))
    arrays = [
        columns[name] if name in columns else pa.nulls(total, kind) for name, kind in _KINDS.items()
    ]
    return pa.Table.from_arrays(arrays, schema=DEVICE_SAMPLE)


def _told(
    scrapes: list[PlannedScrape], *, counts: list[int]
) -> Iterator[tuple[str, pa.Array[Any]]]:
    """Yield the columns that are no measures."""
    at_us = np.repeat([scrape.scraped_at_us for scrape in scrapes], counts)
    yield "sampled_at", pa.array(at_us).cast(_KINDS["sampled_at"])
    clusters = ([scrape.cluster] * count for scrape, count in zip(scrapes, counts, strict=True))
    yield "cluster", pa.array(list(chain.from_iterable(clusters)), pa.string())
    yield "source", pa.array([SOURCE] * sum(counts), pa.string())
    parts: dict[str, Callable[[PlanRows], Sequence[Any]]] = {
        "node": lambda rows: rows.nodes,
        "device_uuid": lambda rows: rows.device_uuids,
        "instance_id": lambda rows: rows.instance_ids,
        "namespace": lambda rows: rows.namespaces,
        "pod": lambda rows: rows.pods,
        "container": lambda rows: rows.containers,
        "absences": lambda rows: rows.absences,
    }
    for name, part in parts.items():
        values = list(chain.from_iterable(part(scrape.plan.rows) for scrape in scrapes))
        yield name, pa.array(values, _KINDS[name])


def _measured(
    layout: Layout, scrapes: list[PlannedScrape], *, counts: list[int]
) -> Iterator[tuple[str, pa.Array[Any]]]:
    """Yield the measured columns: numbers in base units, constants where there is no number."""
    cells = np.concatenate([scrape.plan.cells(scrape.values) for scrape in scrapes], axis=1)
    by_place = {
        place: _in_base_unit(numbers, unit)
        for (place, unit), numbers in zip(layout.columns, cells, strict=True)
    }
    for place in {place for scrape in scrapes for place in scrape.plan.rows.constants}:
        constants = _constants(place, scrapes, counts=counts)
        numbers = by_place.get(place)
        by_place[place] = (
            constants if numbers is None else np.where(np.isnan(numbers), constants, numbers)
        )
    for place, numbers in by_place.items():
        name = MEASURES[place]
        yield name, pa.array(numbers, from_pandas=True).cast(_KINDS[name])


def _in_base_unit(numbers: Reals, unit: Unit) -> Reals:
    scaled = numbers * unit.multiplier / unit.divisor
    return np.rint(scaled) if unit.is_integer else scaled


def _constants(place: int, scrapes: list[PlannedScrape], *, counts: list[int]) -> Reals:
    return np.concatenate(
        [
            scrape.plan.rows.constants.get(place, np.full(count, np.nan))
            for scrape, count in zip(scrapes, counts, strict=True)
        ]
    )
