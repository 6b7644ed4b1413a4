"""One cycle: all GPUs, the kubelet and the processes, each with a deadline; then the page."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from pathlib import Path

from collector.agent.cgroups import ProcessOwner, owner_of
from collector.agent.device_ids import DeviceIndex
from collector.agent.holders import Holders, holders_of
from collector.agent.own import CycleTally, write_own
from collector.agent.page import Snapshot, write_snapshot
from collector.agent.text import Page
from collector.sources.nvml.lane import Lane
from collector.sources.nvml.node import NOW, NvmlNode
from collector.sources.nvml.records import NodeReading
from collector.sources.podresources.client import (
    Failure,
    Fault,
    PodResources,
    PodResourcesClient,
)
from steward.clock import Clock

log = logging.getLogger(__name__)


class Cycles:
    """Reads the node again and again.

    Args:
        node: its name.
        gpus: the started driver.
        kubelet: who asks it.
        proc_root: where the machine's ``/proc`` is.
        clock: dates the cycles.
    """

    def __init__(
        self,
        node: str,
        *,
        gpus: NvmlNode,
        kubelet: PodResourcesClient,
        proc_root: Path,
        clock: Clock,
    ) -> None:
        """Begin with an empty page."""
        self._node = node
        self._gpus = gpus
        self._kubelet = kubelet
        self._proc_root = proc_root
        self._clock = clock
        self.tally = CycleTally(started_at_s=clock.now().timestamp())
        self._lane: Lane[PodResources | Failure] = Lane("kubelet")
        self._told: Fault | None = None
        self._found: Snapshot | None = None
        self._unresolved: tuple[str, ...] = ()
        self.text = ""
        """The page of the last cycle."""

    def run(self) -> None:
        """Read everything once and write the page; takes the deadline at most."""
        began_s, began_at = time.monotonic(), self._clock.now()
        is_asked = self._lane.give(self._kubelet.read)
        reading = self._gpus.read()
        until_s = began_s + self._gpus.deadline_s if is_asked else NOW
        self._found = self._snapshot(reading, self._pod_resources(until_s))
        tally, ended_s = self.tally, time.monotonic()
        tally.count += 1
        tally.last_began_at_s, tally.last_ended_s = began_at.timestamp(), ended_s
        tally.last_took_s = ended_s - began_s
        self.write_page()

    def write_page(self) -> None:
        """Write the page of what was found last, with what the agent itself takes now."""
        page = Page()
        if self._found is not None:
            write_snapshot(self._found, to=page)
        write_own(self.tally, to=page)
        self.text = page.text()

    def close(self) -> None:
        """Let go of the kubelet."""
        self._lane.close()

    def _pod_resources(self, until_s: float) -> PodResources | Failure:
        """Return the kubelet's word, and log once when it falls silent or speaks again."""
        done = self._lane.collect(until_s=until_s)
        told = None if done is None else done.value
        if told is None:
            told = Failure(fault=Fault.TIMEOUT, message=f"{self._kubelet.socket}: no answer yet")
        fault = told.fault if isinstance(told, Failure) else None
        if fault is not self._told:
            self._told = fault
            if isinstance(told, Failure):
                log.warning("who holds the GPUs is not known (%s): %s", told.fault, told.message)
            else:
                log.info("the kubelet says who holds the GPUs")
        return told

    def _snapshot(self, reading: NodeReading, told: PodResources | Failure) -> Snapshot:
        is_told = isinstance(told, PodResources)
        return Snapshot(
            node=self._node,
            reading=reading,
            holders=self._holders(told, reading) if isinstance(told, PodResources) else None,
            pod_resources_fault=None if isinstance(told, PodResources) else told.fault,
            allocatable=_allocatable(told) if is_told else None,
            owners=self._owners(reading),
        )

    def _holders(self, told: PodResources, reading: NodeReading) -> Holders:
        holders = holders_of(told.containers, index=DeviceIndex.of(reading.devices))
        if holders.unresolved != self._unresolved:
            self._unresolved = holders.unresolved
            if holders.unresolved:
                log.warning("not among this node's GPUs: %s", ", ".join(holders.unresolved))
        return holders

    def _owners(self, reading: NodeReading) -> Mapping[int, ProcessOwner]:
        pids = {process.pid for device in reading.devices for process in device.processes}
        return {pid: owner_of(pid, proc_root=self._proc_root) for pid in pids}


def _allocatable(told: PodResources | Failure) -> Mapping[str, int] | None:
    """Return the number of devices by resource: the kubelet lists a device per NUMA node."""
    if isinstance(told, Failure) or told.allocatable is None:
        return None
    device_ids: dict[str, set[str]] = {}
    for grant in told.allocatable:
        device_ids.setdefault(grant.resource, set()).update(grant.device_ids)
    return {resource: len(found) for resource, found in device_ids.items()}
