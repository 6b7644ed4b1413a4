"""Sample and scrape rows: what the exporters of the simulated fleet told, and when they did not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from collector.sources.simulated.arrays import constant, instants, numbers_of, picked
from collector.sources.simulated.faults import Span
from collector.sources.simulated.layout import PROF_COLUMNS, Columns, Flags
from collector.sources.simulated.loads import NOBODY, Loads, Ticks, loads_at
from collector.sources.simulated.readings import Instruments
from collector.sources.simulated.world import World
from collector.tables import DEVICE_SAMPLE, SCRAPE

SOURCE: Final = "simulated"
_STREAM: Final = 4
_DROPPED_SCRAPE_RATIO: Final = 0.002
_INTEGER_COLUMNS: Final = frozenset(
    field.name for field in DEVICE_SAMPLE if pa.types.is_integer(field.type)
)
_SAMPLES_PER_SERIES: Final = 31
_BYTES_PER_SAMPLE: Final = 214

_REASONS: Final = (None, "timeout", "connection_refused")
_NOTHING, _NO_MEMORY_TEMPERATURE, _NO_PROF, _NEITHER = range(4)
_MEMORY_TEMPERATURE_ABSENCE: Final = "memory_temperature_celsius=not_supported"
_ABSENCES: Final = (
    None,
    _MEMORY_TEMPERATURE_ABSENCE,
    ",".join(f"{name}=blank" for name in PROF_COLUMNS),
    ",".join(sorted([*(f"{name}=blank" for name in PROF_COLUMNS), _MEMORY_TEMPERATURE_ABSENCE])),
)

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """The telemetry rows of one stretch of time."""

    samples: pa.Table
    scrapes: pa.Table


class Exporters:
    """Scrapes all nodes of one world, stretch after stretch, in order."""

    def __init__(self, world: World) -> None:
        """Start before the first tick."""
        self._world = world
        self._instruments = Instruments(world)
        series = world.fleet.series
        names = [node.name for node in world.fleet.nodes]
        self._nodes = _texts(names[each.device.node_index] for each in series)
        self._uuids = _texts(each.device.uuid for each in series)
        self._instances = pa.array(
            [each.instance.instance_id if each.instance else None for each in series], pa.int32()
        )

    def scrape(self, ticks: Ticks) -> Stretch:
        """Return the rows of these ticks; each stretch must follow the one before it."""
        world = self._world
        random = np.random.default_rng([world.parameters.seed, _STREAM, ticks.from_s])
        loads = loads_at(world, ticks)
        columns = self._instruments.read(loads, ticks, random)
        absences = self._lose_profiling(columns, ticks)
        reasons = self._scrape_failures(ticks, random)
        is_told = (reasons == 0)[:, self._instruments.layout.node_index] & ~self._lost(ticks)
        samples = self._sample_table(columns, loads, ticks=ticks, absences=absences, told=is_told)
        return Stretch(
            samples=samples,
            scrapes=self._scrape_table(reasons, is_told, ticks=ticks, random=random),
        )

    def _span_mask(self, spans: Sequence[Span], index: Integers, ticks: Ticks) -> Flags:
        """Return ticks by series: whether a span over this series' board or node covers it."""
        mask = np.zeros((ticks.count, len(index)), dtype=np.bool_)
        for span in spans:
            if span.overlaps(ticks.from_s, ticks.until_s):
                end = ticks.count if span.until_s is None else ticks.first_at_or_after(span.until_s)
                rows = slice(ticks.first_at_or_after(span.from_s), end)
                mask[rows, :] |= index == span.index
        return mask

    def _lost(self, ticks: Ticks) -> Flags:
        layout = self._instruments.layout
        return self._span_mask(self._world.faults.lost_devices, layout.device_index, ticks)

    def _lose_profiling(self, columns: Columns, ticks: Ticks) -> Integers:
        """Blank the profiling columns where they are lost; return which absences to tell."""
        layout = self._instruments.layout
        mask = self._span_mask(self._world.faults.prof_losses, layout.device_index, ticks)
        for name in PROF_COLUMNS:
            columns[name][mask] = np.nan
        base = np.where(
            layout.has_memory_temperature | layout.is_instance, _NOTHING, _NO_MEMORY_TEMPERATURE
        )
        told_lost = mask & ~layout.is_mig_board & ~layout.is_instance
        return np.broadcast_to(base, mask.shape) + np.where(told_lost, _NO_PROF, 0)

    def _scrape_failures(self, ticks: Ticks, random: np.random.Generator) -> Integers:
        """Return ticks by node: 0 answered, 1 too slow, 2 nobody there."""
        nodes = np.arange(len(self._world.fleet.nodes))
        is_slow = random.random((ticks.count, len(nodes))) < _DROPPED_SCRAPE_RATIO
        is_away = self._span_mask(self._world.faults.silent_nodes, nodes, ticks)
        return np.where(is_away, 2, is_slow.astype(np.int64))

    def _sample_table(
        self, columns: Columns, loads: Loads, *, ticks: Ticks, absences: Integers, told: Flags
    ) -> pa.Table:
        keep = told.ravel()
        series = np.broadcast_to(np.arange(told.shape[1]), told.shape).ravel()[keep]
        holder = loads.pod_index.ravel()[keep]
        is_free = holder == NOBODY
        texts = {
            "sampled_at": instants(np.repeat(ticks.epoch_s, told.shape[1])[keep]),
            "cluster": constant(self._world.parameters.cluster, keep.sum()),
            "node": picked(self._nodes, series),
            "device_uuid": picked(self._uuids, series),
            "instance_id": picked(self._instances, series),
            "source": constant(SOURCE, keep.sum()),
            "namespace": picked(_texts(each[0] for each in loads.pods), holder, nulls=is_free),
            "pod": picked(_texts(each[1] for each in loads.pods), holder, nulls=is_free),
            "container": picked(_texts(["main"]), np.zeros_like(holder), nulls=is_free),
            "absences": picked(_texts(_ABSENCES), absences.ravel()[keep]),
        }
        numbers = {
            name: numbers_of(values.ravel()[keep], is_integer=name in _INTEGER_COLUMNS)
            for name, values in columns.items()
        }
        arrays = texts | numbers
        columns_in_order = [
            arrays[field.name] if field.name in arrays else pa.nulls(keep.sum(), field.type)
            for field in DEVICE_SAMPLE
        ]
        return pa.table(columns_in_order, schema=DEVICE_SAMPLE)

    def _scrape_table(
        self, reasons: Integers, told: Flags, *, ticks: Ticks, random: np.random.Generator
    ) -> pa.Table:
        node_count = reasons.shape[1]
        flat = reasons.ravel()
        is_ok = flat == 0
        series_counts = np.stack(
            [
                told[:, self._instruments.layout.node_index == node].sum(axis=1)
                for node in range(node_count)
            ],
            axis=1,
        ).ravel()
        sample_counts = series_counts * _SAMPLES_PER_SERIES
        duration_s = np.round(random.gamma(4.0, 0.012, size=flat.size), 4)
        nodes = self._world.fleet.nodes
        targets = _texts(f"http://{node.name}:9400/metrics" for node in nodes)
        zero = pa.array(np.zeros(flat.size, dtype=np.int32))
        arrays = {
            "scraped_at": instants(np.repeat(ticks.epoch_s, node_count)),
            "cluster": constant(self._world.parameters.cluster, flat.size),
            "target": picked(targets, np.tile(np.arange(node_count), ticks.count)),
            "is_ok": pa.array(is_ok),
            "reason": picked(_texts(_REASONS), flat),
            "duration_s": pa.array(np.where(flat == 1, 10.0, duration_s)),
            "body_bytes": pa.array(sample_counts * _BYTES_PER_SAMPLE),
            "sample_count": pa.array(sample_counts.astype(np.int32)),
            "dropped_line_count": zero,
            "duplicate_count": zero,
            "unknown_metric_count": zero,
        }
        return pa.table([arrays[field.name] for field in SCRAPE], schema=SCRAPE)


def _texts(values: Iterable[str | None]) -> pa.StringArray:
    return pa.array(list(values), pa.string())
