"""What breaks in the simulated fleet, and when: XIDs, lost GPUs, silent exporters, a cordon."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from collector.sources.simulated.fleet import Device, Fleet
from steward.units import SECONDS_PER_HOUR

_STREAM: Final = 2
_XID_DETAILS: Final = {
    13: "graphics engine exception",
    31: "GPU memory page fault",
    43: "GPU stopped processing",
    48: "double bit ECC error",
    63: "row remapping event",
    79: "GPU has fallen off the bus",
    94: "contained ECC error",
}
_COMMON_XIDS: Final = (13, 31, 43, 63, 94)
_XIDS_PER_GPU_DAY: Final = 1 / 60
PROF_LOST_XID: Final = 31


@dataclass(frozen=True, slots=True, kw_only=True)
class Xid:
    """One XID on one board."""

    device_index: int
    at_s: int
    code: int
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Something that lasts; ``index`` is a board's or a node's."""

    index: int
    from_s: int
    until_s: int | None
    """None: beyond the end of the simulation."""

    def overlaps(self, from_s: int, until_s: int) -> bool:
        """Tell whether a part lies in the half-open period."""
        return self.from_s < until_s and (self.until_s is None or self.until_s > from_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultPlan:
    """All faults of one simulation, each list in order of time."""

    xids: tuple[Xid, ...]
    lost_devices: tuple[Span, ...]
    silent_nodes: tuple[Span, ...]
    """The exporter answers nothing; the node works on."""
    prof_losses: tuple[Span, ...]
    """Profiling counters blank after an XID, until monitoring is resumed."""
    cordoned_nodes: tuple[Span, ...]


def plan_faults(fleet: Fleet, *, seed: int, duration_s: int) -> FaultPlan:
    """Return the faults of this fleet."""
    random = np.random.default_rng([seed, _STREAM])
    plain = [device for device in fleet.devices if device.sharing_mode == "exclusive"]
    lost = _lost_devices(plain, duration_s=duration_s, random=random)
    xids = _common_xids(fleet, duration_s=duration_s, random=random)
    xids.extend(_xid(span.index, at_s=max(0, span.from_s - 60), code=79) for span in lost)
    profiled = _prof_losses(xids, plain, duration_s=duration_s, random=random)
    xids.extend(_xid(span.index, at_s=span.from_s, code=PROF_LOST_XID) for span in profiled[-1:])
    outage_s = min(6 * SECONDS_PER_HOUR, duration_s // 6)
    silent = _node_span(fleet, random, from_s=int(0.62 * duration_s), length_s=outage_s)
    cordoned = _node_span(fleet, random, from_s=int(0.45 * duration_s), length_s=duration_s // 16)
    return FaultPlan(
        xids=tuple(sorted(xids, key=lambda each: (each.at_s, each.device_index, each.code))),
        lost_devices=lost,
        silent_nodes=(silent,),
        prof_losses=tuple(sorted(profiled, key=lambda each: (each.from_s, each.index))),
        cordoned_nodes=(cordoned,),
    )


def _xid(device_index: int, *, at_s: int, code: int) -> Xid:
    return Xid(device_index=device_index, at_s=at_s, code=code, detail=_XID_DETAILS[code])


def _lost_devices(
    plain: list[Device], *, duration_s: int, random: np.random.Generator
) -> tuple[Span, ...]:
    """Return one board that falls off the bus and comes back, and one that stays away."""
    first, second = random.choice(len(plain), size=2, replace=False).tolist()
    away_s = min(9 * SECONDS_PER_HOUR, duration_s // 8)
    lost_s = int(0.4 * duration_s)
    return (
        Span(index=plain[first].index, from_s=lost_s, until_s=lost_s + away_s),
        Span(index=plain[second].index, from_s=int(0.85 * duration_s), until_s=None),
    )


def _common_xids(fleet: Fleet, *, duration_s: int, random: np.random.Generator) -> list[Xid]:
    expected = len(fleet.devices) * duration_s / 86_400 * _XIDS_PER_GPU_DAY
    count = max(3, int(random.poisson(expected)))
    devices = random.integers(0, len(fleet.devices), size=count).tolist()
    times = random.integers(0, duration_s, size=count).tolist()
    codes = random.choice(_COMMON_XIDS, size=count).tolist()
    return [
        _xid(device, at_s=at_s, code=code)
        for device, at_s, code in zip(devices, times, codes, strict=True)
    ]


def _prof_losses(
    xids: list[Xid], plain: list[Device], *, duration_s: int, random: np.random.Generator
) -> list[Span]:
    """Return a loss after every second page fault, and one that is there for every seed."""
    faults = [each for each in xids if each.code == PROF_LOST_XID][::2]
    length_s = min(5 * SECONDS_PER_HOUR, duration_s // 8)
    spans = [
        Span(index=each.device_index, from_s=each.at_s, until_s=each.at_s + length_s)
        for each in faults
    ]
    planted = plain[int(random.integers(0, len(plain)))].index
    from_s = int(0.25 * duration_s)
    return [*spans, Span(index=planted, from_s=from_s, until_s=from_s + length_s)]


def _node_span(fleet: Fleet, random: np.random.Generator, *, from_s: int, length_s: int) -> Span:
    node = int(random.integers(0, len(fleet.nodes)))
    return Span(index=node, from_s=from_s, until_s=from_s + length_s)
