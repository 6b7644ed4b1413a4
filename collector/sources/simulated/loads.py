"""What holders ask of each board and instance at each tick, before noise and physics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from collector.sources.simulated.behaviours import BEHAVIOURS, STEADY, Behaviour, Floats, activity
from collector.sources.simulated.fleet import Slot
from collector.sources.simulated.history import Run
from collector.sources.simulated.world import World

Integers = npt.NDArray[np.int64]

ACTIVE_LEVELS: Final = (
    "graphics_active_ratio",
    "sm_active_ratio",
    "tensor_active_ratio",
    "dram_active_ratio",
    "fp32_active_ratio",
    "fp16_active_ratio",
    "pcie_ratio",
    "nvlink_ratio",
    "decoder_ratio",
)
NOBODY: Final = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticks:
    """The scrape instants of one stretch of the simulation."""

    from_s: int
    cadence_s: int
    count: int
    from_epoch_s: int

    @property
    def offsets_s(self) -> Floats:
        """Return the instants in seconds from the start of the simulation."""
        return self.from_s + self.cadence_s * np.arange(self.count, dtype=np.float64)

    @property
    def epoch_s(self) -> Floats:
        """Return the instants in seconds since 1970."""
        return self.from_epoch_s + self.offsets_s

    @property
    def until_s(self) -> int:
        """Return the first second after the last tick's step."""
        return self.from_s + self.cadence_s * self.count

    def first_at_or_after(self, second: int) -> int:
        """Return the number of ticks before this second, within this stretch."""
        return int(np.clip(-((self.from_s - second) // self.cadence_s), 0, self.count))


@dataclass(slots=True, kw_only=True)
class Loads:
    """Per tick (rows) and series (columns), 0..1 of what the slot can do."""

    busy: Floats
    occupancy: Floats
    memory_used: Floats
    active: dict[str, Floats]
    pod_index: Integers
    """Into ``pods``; ``NOBODY`` where the exporter would name no pod."""
    pods: list[tuple[str, str]]
    """Namespace and pod name."""


def loads_at(world: World, ticks: Ticks) -> Loads:
    """Return the loads of every series at these ticks."""
    shape = (ticks.count, len(world.fleet.series))
    loads = Loads(
        busy=np.zeros(shape),
        occupancy=np.zeros(shape),
        memory_used=np.zeros(shape),
        active={name: np.zeros(shape) for name in ACTIVE_LEVELS},
        pod_index=np.full(shape, NOBODY, dtype=np.int64),
        pods=[],
    )
    for run in world.history.runs:
        is_over = run.ended_s is not None and run.ended_s <= ticks.from_s
        if run.scheduled_s < ticks.until_s and not is_over:
            _add_run(loads, run, world=world, ticks=ticks)
    for level in (loads.occupancy, *loads.active.values()):
        np.clip(level, 0.0, 1.0, out=level)
    return loads


def _add_run(loads: Loads, run: Run, *, world: World, ticks: Ticks) -> None:
    end = ticks.count if run.ended_s is None else ticks.first_at_or_after(run.ended_s)
    bound = slice(ticks.first_at_or_after(run.scheduled_s), end)
    active = slice(min(end, ticks.first_at_or_after(run.started_s)), end)
    behaviour = BEHAVIOURS[run.request.behaviour]
    started_epoch_s = float(world.from_epoch_s + run.started_s)
    factor = activity(
        behaviour.pattern,
        ticks.epoch_s[active],
        started_s=started_epoch_s,
        seed=run.request.index,
    )
    factor = factor * _intensity(run, behaviour)
    for ordinal, pod in enumerate(run.pods):
        slots = [world.fleet.slots[index] for index in pod.slot_indices]
        if slots and slots[0].replica is None:
            loads.pods.append((run.request.tenant, run.request.pod_name(ordinal, run.attempt)))
        for slot in slots:
            if slot.replica is None:
                loads.pod_index[bound, slot.series_index] = len(loads.pods) - 1
            _add_slot(loads, slot, active=active, behaviour=behaviour, factor=factor)


def _intensity(run: Run, behaviour: Behaviour) -> float:
    """Return how hard this workload works compared with its kind: .82 to 1.06."""
    if behaviour.pattern == STEADY:
        return 1.0
    return 0.82 + 0.24 * (run.request.index * 2_654_435_761 % 1_000) / 1_000


def _add_slot(
    loads: Loads, slot: Slot, *, active: slice, behaviour: Behaviour, factor: Floats
) -> None:
    where = (active, slot.series_index)
    share = slot.gpu_share_ratio if slot.replica is not None else 1.0
    is_busy = np.clip(behaviour.busy_ratio * factor, 0.0, 1.0)
    loads.busy[where] = 1.0 - (1.0 - loads.busy[where]) * (1.0 - is_busy)
    loads.memory_used[where] += behaviour.memory_used_ratio * share
    loads.occupancy[where] += (
        behaviour.sm_active_ratio * behaviour.occupancy_when_active_ratio * factor
    )
    for name, level in loads.active.items():
        ratio: float = getattr(behaviour, name)
        if ratio > 0:
            level[where] += ratio * factor
