"""What is remembered of one node: what its sources said last, and the intervals that are open."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from collector.allocation.polls import Holder
from collector.holdings import DeviceKey, Holding, HoldingSource
from collector.ownership import Owner
from steward.units import MICROS_PER_SECOND

PRECEDENCE: Final = {source: rank for rank, source in enumerate(HoldingSource)}
"""The lower the rank, the more a source is trusted."""
COMPLETE: Final = frozenset({HoldingSource.PODRESOURCES, HoldingSource.DRA})
"""What these do not list is released; of the others a label may flicker."""
WATCHED: Final = frozenset({HoldingSource.DRA})
"""Told when something changes and not by the clock: their silence means nothing."""
MISSED_POLLS: Final = 2
"""So many polls in a row without a word make a holding unknown."""

ShareKey: TypeAlias = tuple[str, int | None, int | None]
"""Device UUID, MIG instance, replica."""
StatementKey: TypeAlias = tuple[HoldingSource, str, int | None, int | None, Holder]
EndKey: TypeAlias = tuple[DeviceKey, Holder | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """How long things last, in microseconds."""

    poll_us: int
    unknown_limit_us: int
    """So long an unknown holding stays with a pod that the cluster does not know either."""

    @property
    def silence_us(self) -> int:
        """Return how long after its last poll a source counts as silent: two polls missed."""
        return self.poll_us * 5 // 2


RECENT_US: Final = 900 * MICROS_PER_SECOND
"""So long after its close an interval can be shortened by a late word of the pod's end."""


@dataclass(slots=True, kw_only=True)
class SourceState:
    """The last poll of one source."""

    at_us: int
    holdings: tuple[Holding, ...] | None = None
    """None after a restart: the next poll is compared in full."""
    devices: frozenset[DeviceKey] | None = None
    is_silent: bool = False
    has_named: bool = False
    """Whether it ever named a holder; a source without pod labels cannot tell of any."""
    late_count: int = 0
    """Polls in a row that were older than the last one."""

    def covers(self, device: DeviceKey) -> bool:
        """Return whether the last poll spoke of the device."""
        return self.devices is None or device in self.devices


@dataclass(slots=True, kw_only=True)
class Statement:
    """A holding as a source states it, until it is withdrawn."""

    holding: Holding
    since_us: int
    seen_us: int | None = None
    """When it was last seen, where the last poll missed it; None: the last poll has it."""
    missed_count: int = 0
    dark_until_us: int | None = None
    """Where the last sighting was before a silence of its source: when the source came back."""
    moved_to: tuple[DeviceKey, ...] = ()
    """Where the pod's processes really are."""

    @property
    def holder(self) -> Holder:
        """Return who holds."""
        said = self.holding
        return Holder(said.namespace, said.pod, said.container)

    @property
    def device(self) -> DeviceKey:
        """Return what is held, as the source says it."""
        return self.holding.device_uuid, self.holding.instance_id

    @property
    def devices(self) -> tuple[DeviceKey, ...]:
        """Return what is held, as far as processes do not tell better."""
        return self.moved_to or (self.device,)


@dataclass(slots=True, kw_only=True)
class Trace:
    """A sign that comes and goes: when it was last seen, and how often missed since."""

    since_us: int
    seen_us: int
    missed_count: int = 0


@dataclass(slots=True, kw_only=True)
class Interval:
    """One holder of one share, from its start on; a pod that is None is nobody."""

    device_uuid: str
    instance_id: int | None
    replica: int | None
    started_us: int
    namespace: str | None
    pod: str | None
    container: str | None
    pod_uid: str | None
    share_ratio: float
    """Of the whole GPU."""
    sharing_mode: str
    source: str
    claim: str | None
    resource: str | None
    conflict: str | None
    is_attributed: bool = True
    owner: Owner | None = None
    told_us: int = 0
    """``observed_at`` of the last row told of it."""
    told_share_ratio: float = 0.0
    ended_us: int | None = None
    measured_sum: float = 0.0
    """Sum of the shares measured in each poll of this interval."""
    measured_count: int = 0

    @property
    def device(self) -> DeviceKey:
        """Return the device it lies on."""
        return self.device_uuid, self.instance_id

    @property
    def key(self) -> ShareKey:
        """Return the share it lies on."""
        return self.device_uuid, self.instance_id, self.replica

    @property
    def holder(self) -> Holder | None:
        """Return who holds; None is nobody."""
        return None if self.pod is None else Holder(self.namespace, self.pod, self.container)

    @property
    def final_share_ratio(self) -> float:
        """Return the mean of the measured shares; the equal one where nothing was measured."""
        return self.measured_sum / self.measured_count if self.measured_count else self.share_ratio


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """When a holding ended."""

    at_us: int
    dark_until_us: int | None = None
    """From the end until then nobody looked: who held the device is not known."""
    is_certain: bool = False
    """Told as a fact, whatever any source saw later."""


@dataclass(slots=True, kw_only=True)
class NodeState:
    """Everything remembered of one node."""

    node: str
    sources: dict[HoldingSource, SourceState] = field(default_factory=dict)
    statements: dict[StatementKey, Statement] = field(default_factory=dict)
    open: dict[ShareKey, Interval] = field(default_factory=dict)
    recent: list[Interval] = field(default_factory=list)
    """Closed a short while ago."""
    floors: dict[DeviceKey, int] = field(default_factory=dict)
    """Where the last interval of a device ended; no later one starts before it."""
    sm_shares: dict[DeviceKey, float] = field(default_factory=dict)
    uses: dict[DeviceKey, frozenset[str]] = field(default_factory=dict)
    """By device: the uids of pods whose processes are on it."""
    busy: dict[DeviceKey, Trace] = field(default_factory=dict)
    listed: frozenset[DeviceKey] = frozenset()
    """Devices that exist according to ResourceSlices."""
    missing: dict[DeviceKey, Trace] = field(default_factory=dict)
    """Listed devices that polls do not show."""
    dark: dict[DeviceKey, int] = field(default_factory=dict)
    """Devices of which nothing is known, and since when."""
    alternating: set[DeviceKey] = field(default_factory=set)
    """Devices whose label names one of several holders in turn."""
    is_settled: bool = False
    """Whether a poll that repeats the last one changes nothing."""
    told_memory: bytes | None = None

    @property
    def last_us(self) -> int:
        """Return the time of the latest poll by any source."""
        return max((source.at_us for source in self.sources.values()), default=0)

    def on_device(self, device: DeviceKey) -> list[Interval]:
        """Return the open intervals of a device."""
        return [each for each in self.open.values() if each.device == device]

    def unheld(self, devices: frozenset[DeviceKey]) -> frozenset[DeviceKey]:
        """Return those of the devices that no pod holds."""
        held = {each.device for each in self.open.values() if each.pod is not None}
        return devices - held

    def strays(self, uses: Mapping[DeviceKey, frozenset[str]]) -> frozenset[tuple[DeviceKey, str]]:
        """Return who works where without holding it: devices and uids of pods."""
        held = {(each.device, each.pod_uid) for each in self.open.values()}
        return frozenset(
            (device, uid) for device, uids in uses.items() for uid in uids
        ) - frozenset((device, uid) for device, uid in held if uid is not None)

    def is_unknown(self, statement: Statement) -> bool:
        """Return whether two polls or more said nothing of the holding."""
        source = self.sources.get(statement.holding.source)
        return statement.missed_count >= MISSED_POLLS or source is None or source.is_silent
