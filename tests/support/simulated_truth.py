"""What is really so in a simulated fleet, told from its plan and not from its readings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from collector.sources.simulated.faults import Span
from collector.sources.simulated.fleet import Slot
from collector.sources.simulated.history import Run
from collector.sources.simulated.world import World
from steward.units import TICKS_PER_SECOND

Spans = list[tuple[int, int]]
"""Half-open, in seconds from the start, ascending and disjoint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """One slot held by one run."""

    run: Run
    slot: Slot
    from_s: int
    until_s: int

    @property
    def share(self) -> Fraction:
        """Return the part of the board, exactly."""
        return exact_share(self.slot)


def exact_share(slot: Slot) -> Fraction:
    """Return the part of the board that a slot is."""
    return Fraction(slot.gpu_share_ratio).limit_denominator(64)


def ticks(share: Fraction, seconds: int) -> int:
    """Return device-time in ticks; the shares of the fleet divide them."""
    exact = share * seconds * TICKS_PER_SECOND
    assert exact.denominator == 1
    return exact.numerator


def without(spans: Spans, gaps: Spans) -> Spans:
    """Return what is left of the spans outside the gaps."""
    left = spans
    for gap_from, gap_until in gaps:
        left = [
            piece
            for start, end in left
            for piece in ((start, min(end, gap_from)), (max(start, gap_until), end))
            if piece[0] < piece[1]
        ]
    return left


def length_s(spans: Spans) -> int:
    """Return the seconds in the spans."""
    return sum(end - start for start, end in spans)


class Truth:
    """The plan of one world, as questions."""

    def __init__(self, world: World) -> None:
        """Keep the world."""
        self.world = world
        self.duration_s = world.parameters.duration_s

    def holdings(self) -> Iterator[Holding]:
        """Yield every slot held, within the simulation."""
        for run in self.world.history.runs:
            end = self.duration_s if run.ended_s is None else min(run.ended_s, self.duration_s)
            for pod in run.pods:
                for index in pod.slot_indices:
                    slot = self.world.fleet.slots[index]
                    if run.scheduled_s < end:
                        yield Holding(run=run, slot=slot, from_s=run.scheduled_s, until_s=end)

    def lost(self, device_index: int) -> Spans:
        """Return when a board was lost."""
        return self._spans(self.world.faults.lost_devices, device_index)

    def cordoned(self, node_index: int) -> Spans:
        """Return when a node took no new work."""
        return self._spans(self.world.faults.cordoned_nodes, node_index)

    def unwatched(self, holding: Holding) -> Spans:
        """Return when nothing, or nothing of effect, was read of a slot's board."""
        device = holding.slot.device
        return sorted(
            [
                *self.lost(device.index),
                *self._spans(self.world.faults.silent_nodes, device.node_index),
                *self._spans(self.world.faults.prof_losses, device.index),
            ]
        )

    def allocated_ticks(self) -> Counter[str]:
        """Return device-time held by workload, without what was lost meanwhile."""
        found: Counter[str] = Counter()
        for each in self.holdings():
            spans = without([(each.from_s, each.until_s)], self.lost(each.slot.device.index))
            found[each.run.request.uid] += ticks(each.share, length_s(spans))
        return found

    def lost_ticks(self) -> int:
        """Return the device-time of lost boards."""
        spans = [
            self._spans(self.world.faults.lost_devices, device.index)
            for device in self.world.fleet.devices
        ]
        return sum(ticks(Fraction(1), length_s(each)) for each in spans)

    def unconfigured_ticks(self) -> int:
        """Return the device-time of board shares that no MIG instance covers, not down."""
        total = 0
        for device in self.world.fleet.devices:
            if device.instances:
                rest = Fraction(7 - sum(each.slice_count for each in device.instances), 7)
                down = sorted([*self.lost(device.index), *self.cordoned(device.node_index)])
                there = without([(0, self.duration_s)], down)
                total += ticks(rest, length_s(there))
        return total

    def unconfigured_share(self) -> Fraction:
        """Return the boards' shares, added up, that no MIG instance covers."""
        mig = [each for each in self.world.fleet.devices if each.instances]
        slices = sum(instance.slice_count for each in mig for instance in each.instances)
        return Fraction(7 * len(mig) - slices, 7)

    def cordoned_free_ticks(self) -> int:
        """Return the device-time of free slots on cordoned nodes."""
        total = 0
        for device in self.world.fleet.devices:
            spans = without(self.cordoned(device.node_index), self.lost(device.index))
            total += ticks(Fraction(1), length_s(spans))
        for each in self.holdings():
            device = each.slot.device
            spans = without(self.cordoned(device.node_index), self.lost(device.index))
            inside = [
                (max(start, each.from_s), min(end, each.until_s))
                for start, end in spans
                if max(start, each.from_s) < min(end, each.until_s)
            ]
            total -= ticks(each.share, length_s(inside))
        return total

    def watched_s(self, holding: Holding) -> int:
        """Return the longest unbroken time in which a running slot was watched."""
        spans = without([(holding.run.started_s, holding.until_s)], self.unwatched(holding))
        return max((end - start for start, end in spans), default=0)

    def _spans(self, spans: Sequence[Span], index: int) -> Spans:
        return [
            (span.from_s, self.duration_s if span.until_s is None else span.until_s)
            for span in spans
            if span.index == index
        ]
