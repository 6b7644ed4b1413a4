"""What one poll of one node says, and what is handed back for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple, TypeAlias

from collector.holdings import DeviceKey, Holding, HoldingSource

Row: TypeAlias = dict[str, Any]
"""One row of table ``allocation``, as ``collector.tables`` declares it."""
PodKey: TypeAlias = tuple[str | None, str]
"""Namespace and name."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


class Holder(NamedTuple):
    """A container that holds a share."""

    namespace: str | None
    pod: str
    container: str | None


def is_same_holder(one: Holder | None, other: Holder | None) -> bool:
    """Return whether two words are of one holder; a container that is not told fits any."""
    if one is None or other is None:
        return one is other
    is_container = one.container == other.container or None in {one.container, other.container}
    return is_container and one[:2] == other[:2]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceUse:
    """A pod seen at work on a device: by the processes there, or by a vendor's monitor."""

    device_uuid: str
    instance_id: int | None
    pod_uid: str | None = None
    """From the process's control group; None where namespace and pod are given."""
    namespace: str | None = None
    pod: str | None = None
    container: str | None = None
    core_ratio: float | None = None
    """Share of the device's cores in use, 0..1; None is not measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Poll:
    """One complete poll of one node by one source."""

    node: str
    at: datetime
    source: HoldingSource
    holdings: Sequence[Holding] = ()
    """Everything the source says is held on the node; what is missing is held by nobody."""
    devices: frozenset[DeviceKey] | None = None
    """Devices the poll speaks of; of others it says nothing. None: of all of the node.
    From ``dra`` these are the devices that exist, whether or not any exporter shows them."""
    busy: frozenset[DeviceKey] | None = None
    """Devices seen at work; None where the poll does not tell."""
    uses: Sequence[DeviceUse] | None = None
    """Pods seen at work; None where the poll does not tell."""
    sm_shares: Mapping[DeviceKey, float] = field(default_factory=dict)
    """Part of the board's multiprocessors that each MIG instance has, where known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """What a call gives: rows for ``allocation`` and what to remember, to be stored together."""

    rows: list[Row]
    remember: dict[str, bytes | None]
    """Durable memory by key; None forgets the key."""


def micros(instant: datetime) -> int:
    """Return an instant as microseconds since 1970."""
    return (instant - _EPOCH) // _MICROSECOND


def instant(us: int) -> datetime:
    """Return microseconds since 1970 as an instant."""
    return _EPOCH + timedelta(microseconds=us)
