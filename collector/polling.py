"""What a scrape says of who holds what: one poll per node and source, for ``allocation``.

Between two scrapes of a target hardly anything changes, so what a plan leaves as it was is handed
on as the same objects: the builder recognises them at once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from collector.allocation.polls import DeviceUse, Poll
from collector.holdings import DeviceKey, Holding, HoldingSource
from collector.normalize.metric import MEASURES
from collector.normalize.plan import Plan
from collector.normalize.plan_rows import PlannedScrape
from collector.reading import Reading

ACTIVE_FROM_RATIO: Final = 0.01
"""A device active for a smaller share of the time is idle; the same border as of idle spells."""
ACTIVITY: Final = ("busy_ratio", "graphics_active_ratio", "sm_active_ratio")
_ACTIVITY_PLACES: Final = frozenset(MEASURES.index(name) for name in ACTIVITY)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Activity:
    """Where the numbers of a plan tell which devices are at work."""

    keys: Sequence[DeviceKey]
    """Of the plan's rows."""
    picks: NDArray[np.intp]
    """Activity by row, of each measure of it that is there."""
    multipliers: NDArray[np.float64]
    divisors: NDArray[np.float64]
    constant: NDArray[np.bool_]
    """Rows at work according to values that stay."""
    everything: frozenset[DeviceKey]

    @classmethod
    def of(cls, plan: Plan) -> Self:
        """Find it in a plan."""
        columns = [
            (plan.picks[number], unit)
            for number, (place, unit) in enumerate(plan.layout.columns)
            if place in _ACTIVITY_PLACES
        ]
        constant = np.zeros(len(plan.rows.nodes), dtype=np.bool_)
        for place in _ACTIVITY_PLACES & plan.rows.constants.keys():
            constant |= plan.rows.constants[place] >= ACTIVE_FROM_RATIO
        keys = list(zip(plan.rows.device_uuids, plan.rows.instance_ids, strict=True))
        return cls(
            keys=keys,
            picks=np.array([picks for picks, _ in columns], dtype=np.intp).reshape(
                len(columns), len(keys)
            ),
            multipliers=np.array([[float(unit.multiplier)] for _, unit in columns]).reshape(-1, 1),
            divisors=np.array([[float(unit.divisor)] for _, unit in columns]).reshape(-1, 1),
            constant=constant,
            everything=frozenset(keys),
        )

    def busy(self, planned: PlannedScrape) -> frozenset[DeviceKey]:
        """Return the devices at work; one whose activity is not told is not among them."""
        numbers = planned.plan.pickable(planned.values)[self.picks]
        active = numbers * self.multipliers / self.divisors >= ACTIVE_FROM_RATIO
        rows = np.logical_or.reduce(active, axis=0) | self.constant
        if rows.all():
            return self.everything
        return frozenset(self.keys[row] for row in np.flatnonzero(rows).tolist())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shown:
    """Which devices a text shows on each node, and who holds them."""

    devices: Mapping[str, frozenset[DeviceKey]]
    holdings: Mapping[tuple[str, HoldingSource], tuple[Holding, ...]]
    activity: _Activity | None
    """How to see which are at work; None where the text was read in full."""


@dataclass(slots=True)
class _Target:
    """What is remembered of one target."""

    shown: _Shown | None = None
    plan: object = None
    """The plan that ``shown`` belongs to; None where the text was read in full."""
    sources: set[tuple[str, HoldingSource]] = field(default_factory=set)
    """Every node and source it ever spoke for: silence of them is a statement too."""
    sm_shares: dict[DeviceKey, float] = field(default_factory=dict)
    has_processes: bool = False


class Polling:
    """Makes polls of readings, target by target."""

    def __init__(self) -> None:
        """Know no target yet."""
        self._targets: dict[str, _Target] = {}

    def polls(self, reading: Reading) -> list[Poll]:
        """Return what the reading says; a scrape that failed says nothing."""
        if reading.holdings is None:
            return []
        target = self._targets.setdefault(reading.url, _Target())
        shown = _shown(reading, target)
        tables = dict(reading.rows)
        _note_shares(target, tables.get("device"))
        uses = _uses(target, tables.get("device_process"))
        busy = _busy(reading, tables.get("device_sample"), activity=shown.activity)
        return [
            Poll(
                node=node,
                at=reading.scraped_at,
                source=source,
                holdings=shown.holdings.get((node, source), ()),
                devices=_spoken_of(shown, node, source),
                busy=busy & shown.devices[node] if node in shown.devices else None,
                uses=uses if is_first else None,
                sm_shares=target.sm_shares,
            )
            for node, source, is_first in _speaking(target, shown, reading)
        ]

    def keep_only(self, urls: Iterable[str]) -> None:
        """Forget targets that are no longer scraped."""
        kept = set(urls)
        self._targets = {url: one for url, one in self._targets.items() if url in kept}


def _speaking(
    target: _Target, shown: _Shown, reading: Reading
) -> Iterator[tuple[str, HoldingSource, bool]]:
    """Yield each node and source that speaks now, and whether it is the node's first.

    Whoever spoke of a node once is taken at its word when it names nobody any more. The node agent
    is believed where its kubelet answers, and says nothing where it does not.
    """
    target.sources |= shown.holdings.keys()
    if reading.kubelet_speaks is not None:
        target.sources |= {(node, HoldingSource.PODRESOURCES) for node in shown.devices}
    told = {node for node, _ in target.sources}
    target.sources |= {(node, HoldingSource.EXPORTER_LABEL) for node in shown.devices.keys() - told}
    last: str | None = None
    for node, source in sorted(target.sources):
        if source is HoldingSource.PODRESOURCES and reading.kubelet_speaks is False:
            continue
        yield node, source, node != last
        last = node


def _spoken_of(shown: _Shown, node: str, source: HoldingSource) -> frozenset[DeviceKey] | None:
    """Return the devices that the source's word covers; None means all of the node.

    The kubelet knows its whole node, also where another target's rows of it are kept.
    """
    return None if source is HoldingSource.PODRESOURCES else shown.devices.get(node)


def _shown(reading: Reading, target: _Target) -> _Shown:
    plan = None if reading.planned is None else reading.planned.plan
    if plan is not None and target.plan is plan and target.shown is not None:
        return target.shown
    devices: defaultdict[str, set[DeviceKey]] = defaultdict(set)
    for node, uuid, instance_id in _device_rows(reading):
        devices[node].add((uuid, instance_id))
    holdings: defaultdict[tuple[str, HoldingSource], list[Holding]] = defaultdict(list)
    for holding in reading.holdings or ():
        holdings[holding.node, holding.source].append(holding)
    target.plan = plan
    target.shown = _Shown(
        devices={node: frozenset(keys) for node, keys in devices.items()},
        holdings={place: tuple(found) for place, found in holdings.items()},
        activity=None if plan is None else _Activity.of(plan),
    )
    return target.shown


def _device_rows(reading: Reading) -> Iterable[tuple[str, str, int | None]]:
    if reading.planned is not None:
        rows = reading.planned.plan.rows
        return zip(rows.nodes, rows.device_uuids, rows.instance_ids, strict=True)
    found: list[tuple[str, str, int | None]] = []
    for name, table in reading.rows:
        if name == "device_sample":
            columns = (table[part].to_pylist() for part in ("node", "device_uuid", "instance_id"))
            found += zip(*columns, strict=True)
    return found


def _busy(
    reading: Reading, samples: pa.Table | None, *, activity: _Activity | None
) -> frozenset[DeviceKey]:
    """Return the devices at work; one whose activity is not told is not among them."""
    if reading.planned is not None and activity is not None:
        return activity.busy(reading.planned)
    if samples is None:
        return frozenset()
    told = zip(*(samples[name].to_pylist() for name in ACTIVITY), strict=True)
    uuids = map(str, samples["device_uuid"].to_pylist())
    keys = zip(uuids, samples["instance_id"].to_pylist(), strict=True)
    return frozenset(key for key, ratios in zip(keys, told, strict=True) if _is_active(ratios))


def _is_active(ratios: Sequence[float | None]) -> bool:
    return any(ratio is not None and ratio >= ACTIVE_FROM_RATIO for ratio in ratios)


def _note_shares(target: _Target, devices: pa.Table | None) -> None:
    if devices is None:
        return
    names = ("device_uuid", "instance_id", "sm_share_ratio")
    for uuid, instance_id, share in zip(
        *(devices[name].to_pylist() for name in names), strict=True
    ):
        if instance_id is not None and share is not None:
            target.sm_shares = target.sm_shares | {(uuid, instance_id): share}


def _uses(target: _Target, processes: pa.Table | None) -> list[DeviceUse] | None:
    """Return the pods whose processes are on a device; None where processes are never told."""
    if processes is None:
        return [] if target.has_processes else None
    target.has_processes = True
    names = ("device_uuid", "instance_id", "pod_uid", "sm_ratio")
    return [
        DeviceUse(device_uuid=uuid, instance_id=instance_id, pod_uid=pod_uid, core_ratio=sm_ratio)
        for uuid, instance_id, pod_uid, sm_ratio in zip(
            *(processes[name].to_pylist() for name in names), strict=True
        )
        if pod_uid is not None
    ]
