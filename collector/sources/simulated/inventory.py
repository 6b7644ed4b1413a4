"""Rows about the hardware: nodes and devices seen each day and at each change, device events."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, Final

import pyarrow as pa

from collector.sources.simulated.faults import Span, Xid
from collector.sources.simulated.fleet import Node, Series
from collector.sources.simulated.world import World
from collector.tables import rows_table

SOURCE: Final = "simulated"
IDENTITY_LABEL: Final = "steward.simulation"
"""The node label that carries the simulation's parameters."""
_DRIVER_VERSION: Final = "580.95.05"


class Inventory:
    """Cuts the hardware's story into rows; each row belongs to exactly one stretch."""

    def __init__(self, world: World) -> None:
        """Keep the world."""
        self._world = world
        self._cluster = world.parameters.cluster
        self._labels_json = json.dumps({IDENTITY_LABEL: world.parameters.identity()})

    def tables(self, from_s: int, until_s: int) -> Iterator[tuple[str, pa.Table]]:
        """Yield node, device and event rows of ``[from_s, until_s)`` in order of time."""
        yield "node", rows_table("node", self._node_rows(from_s, until_s))
        yield "device", rows_table("device", self._device_rows(from_s, until_s))
        yield "device_event", rows_table("device_event", self._event_rows(from_s, until_s))

    def _at(self, second: int) -> datetime:
        return self._world.parameters.from_at + timedelta(seconds=second)

    def _node_rows(self, from_s: int, until_s: int) -> list[dict[str, Any]]:
        """Return every node at the start of the stretch, then those that changed."""
        cordons = self._world.faults.cordoned_nodes
        rows = [
            self._node(node, from_s, is_schedulable=not _covers(cordons, node.index, from_s))
            for node in self._world.fleet.nodes
        ]
        for second, index, is_back in _changes(cordons):
            if from_s < second < until_s:
                node = self._world.fleet.nodes[index]
                rows.append(self._node(node, second, is_schedulable=is_back))
        return rows

    def _node(self, node: Node, second: int, *, is_schedulable: bool) -> dict[str, Any]:
        return {
            "observed_at": self._at(second),
            "cluster": self._cluster,
            "node": node.name,
            "gpu_model": node.shape.model.name,
            "gpu_count": node.shape.gpu_count,
            "cpu_milli": node.shape.cpu_milli,
            "memory_bytes": node.shape.memory_bytes,
            "is_schedulable": is_schedulable,
            "rack": node.rack,
            "nvlink_domain": node.nvlink_domain,
            "labels_json": self._labels_json,
            "source": SOURCE,
        }

    def _device_rows(self, from_s: int, until_s: int) -> list[dict[str, Any]]:
        lost = self._world.faults.lost_devices
        rows = [
            self._device(each, from_s, is_present=not _covers(lost, each.device.index, from_s))
            for each in self._world.fleet.series
        ]
        for second, index, is_back in _changes(lost):
            if from_s < second < until_s:
                rows.extend(
                    self._device(each, second, is_present=is_back)
                    for each in self._world.fleet.series
                    if each.device.index == index
                )
        return rows

    def _device(self, series: Series, second: int, *, is_present: bool) -> dict[str, Any]:
        device, instance = series.device, series.instance
        share = 1.0 if instance is None else instance.memory_share_ratio
        return {
            "observed_at": self._at(second),
            "cluster": self._cluster,
            "node": self._world.fleet.nodes[device.node_index].name,
            "device_uuid": device.uuid,
            "instance_id": None if instance is None else instance.instance_id,
            "vendor": "nvidia",
            "model": device.model.name,
            "device_index": device.position,
            "memory_total_bytes": int(device.model.memory_bytes * share),
            "mig_profile": None if instance is None else instance.profile,
            "sm_share_ratio": 1.0 if instance is None else instance.sm_share_ratio,
            "memory_share_ratio": share,
            "is_present": is_present,
            "driver_version": _DRIVER_VERSION,
            "labels_json": None,
            "source": SOURCE,
        }

    def _event_rows(self, from_s: int, until_s: int) -> list[dict[str, Any]]:
        faults = self._world.faults
        told = [
            (each.at_s, self._event(each.at_s, each.device_index, xid=each)) for each in faults.xids
        ]
        told.extend(
            (second, self._event(second, index, kind="returned" if is_back else "lost"))
            for second, index, is_back in _changes(faults.lost_devices)
        )
        told.sort(key=lambda pair: (pair[0], pair[1]["device_uuid"]))
        return [row for second, row in told if from_s <= second < until_s]

    def _event(
        self, second: int, index: int, *, kind: str = "xid", xid: Xid | None = None
    ) -> dict[str, Any]:
        device = self._world.fleet.devices[index]
        return {
            "occurred_at": self._at(second),
            "cluster": self._cluster,
            "node": self._world.fleet.nodes[device.node_index].name,
            "device_uuid": device.uuid,
            "instance_id": None,
            "kind": kind,
            "code": None if xid is None else xid.code,
            "detail": None if xid is None else xid.detail,
            "source": SOURCE,
        }


def _covers(spans: tuple[Span, ...], index: int, second: int) -> bool:
    return any(span.index == index and span.overlaps(second, second + 1) for span in spans)


def _changes(spans: tuple[Span, ...]) -> Iterator[tuple[int, int, bool]]:
    """Yield second, index and whether it came back, in order of time."""
    changes = [(span.from_s, span.index, False) for span in spans]
    changes.extend((span.until_s, span.index, True) for span in spans if span.until_s is not None)
    yield from sorted(changes)
