"""One cycle as Prometheus text: pure, from what was read to what is served."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from collector.agent import names
from collector.agent.cgroups import NOBODY, ProcessOwner
from collector.agent.holders import Holders
from collector.agent.text import Page, label_text
from collector.sources.nvml.records import (
    Device,
    DeviceProcess,
    Health,
    Instance,
    NodeReading,
    Readings,
)
from collector.sources.podresources.client import Fault


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Everything one cycle found."""

    node: str
    reading: NodeReading
    holders: Holders | None
    """None where the kubelet did not say."""
    pod_resources_fault: Fault | None
    allocatable: Mapping[str, int] | None
    """Devices by resource; None where the kubelet does not tell."""
    owners: Mapping[int, ProcessOwner]
    """Of each process on a GPU, by pid."""


def write_snapshot(snapshot: Snapshot, *, to: Page) -> None:
    """Write every metric of the node's GPUs and of who holds them."""
    for device in snapshot.reading.devices:
        _write_device(device, node=snapshot.node, to=to)
        _write_processes(device, snapshot=snapshot, to=to)
    _write_xids(snapshot, to=to)
    _write_allocations(snapshot, to=to)
    _write_state(snapshot, to=to)


def _base(
    device: Device, *, node: str, instance_id: int | None = None
) -> dict[str, str | int | None]:
    """Return the labels that every series of a device has."""
    return {
        "uuid": None if device.identity is None else device.identity.uuid,
        "gpu": device.index,
        "node": node,
        "instance_id": instance_id,
    }


def _write_device(device: Device, *, node: str, to: Page) -> None:
    base = _base(device, node=node)
    is_up = device.health is Health.UP
    to.add(names.UP, int(is_up), label_text(base | {"reason": device.health}))
    if device.identity is not None:
        to.add(names.INFO, 1, label_text(base | _board_facts(device)))
    _write_readings(device.readings, base=base, to=to)
    for instance in device.instances:
        own = _base(device, node=node, instance_id=instance.instance_id)
        to.add(names.INFO, 1, label_text(own | _board_facts(device) | _instance_facts(instance)))
        _write_readings(instance.readings, base=own, to=to)


def _board_facts(device: Device) -> dict[str, str | int | None]:
    """Return what is known of a GPU as labels; the same names for boards and instances."""
    identity = device.identity
    if identity is None:
        return {}
    return {
        "model": identity.model,
        "minor": identity.minor,
        "pci_bus_id": identity.pci_bus_id,
        "serial": identity.serial,
        "driver_version": identity.driver_version,
        "fabric_clique": identity.fabric_clique,
        "virtualization": identity.virtualization,
        "mig_mode": "enabled" if device.is_mig else "disabled",
        "mig_uuid": None,
        "mig_profile": None,
        "sm_share_ratio": None,
        "memory_share_ratio": None,
    }


def _instance_facts(instance: Instance) -> dict[str, str | int | None]:
    shares = (instance.sm_share_ratio, instance.memory_share_ratio)
    sm_share, memory_share = (None if share is None else f"{share:.6g}" for share in shares)
    return {
        "mig_uuid": instance.uuids[0],
        "mig_profile": instance.profile,
        "sm_share_ratio": sm_share,
        "memory_share_ratio": memory_share,
    }


def _write_readings(readings: Readings, *, base: Mapping[str, str | int | None], to: Page) -> None:
    labels = label_text(base)
    for measure, value in readings.values.items():
        to.add(names.MEASURES[measure], value, labels)
    for measure, reason in readings.absences.items():
        told = label_text({"measure": measure, "reason": reason})
        to.add(names.UNREADABLE, 1, f"{labels},{told}")


def _write_processes(device: Device, *, snapshot: Snapshot, to: Page) -> None:
    for process in device.processes:
        labels = _process_labels(device, process, snapshot=snapshot)
        to.add(names.PROCESS, 1, labels)
        if process.memory_used_bytes is not None:
            to.add(names.PROCESS_MEMORY, process.memory_used_bytes, labels)
        if process.sm_ratio is not None:
            to.add(names.PROCESS_SM, process.sm_ratio, labels)


def _process_labels(device: Device, process: DeviceProcess, *, snapshot: Snapshot) -> str:
    owner = snapshot.owners.get(process.pid, NOBODY)
    base = _base(device, node=snapshot.node, instance_id=process.instance_id)
    return label_text(
        base
        | {
            "pid": process.pid,
            "process": owner.name,
            "pod_uid": owner.pod_uid,
            "container_id": owner.container_id,
        }
    )


def _write_xids(snapshot: Snapshot, *, to: Page) -> None:
    """Write the last XID of every GPU that reports them, 0 for none, and all counts."""
    reading = snapshot.reading
    for device in reading.devices:
        if device.identity is None:
            continue
        uuid = device.identity.uuid
        last = {gi: xid for (owner, gi), xid in reading.last_xids.items() if owner == uuid}
        if uuid in reading.watched:
            last.setdefault(None, 0)
        for instance_id, xid in last.items():
            base = _base(device, node=snapshot.node, instance_id=instance_id)
            to.add(names.LAST_XID, xid, label_text(base))
        for each in reading.xids:
            if each.uuid == uuid:
                base = _base(device, node=snapshot.node, instance_id=each.instance_id)
                to.add(names.XID_ERRORS, each.count, label_text(base | {"xid": each.xid}))


def _write_allocations(snapshot: Snapshot, *, to: Page) -> None:
    if snapshot.holders is None:
        return
    indexes = {
        device.identity.uuid: device.index
        for device in snapshot.reading.devices
        if device.identity is not None
    }
    for each in snapshot.holders.allocations:
        place = each.place
        labels = {
            "uuid": place.uuid,
            "gpu": indexes.get(place.uuid),
            "node": snapshot.node,
            "instance_id": place.instance_id,
            "replica": place.replica,
            "namespace": each.namespace,
            "pod": each.pod,
            "container": each.container,
            "resource": each.resource,
            "claim": each.claim,
            "source": "podresources",
        }
        to.add(names.ALLOCATION, 1, label_text(labels))


def _write_state(snapshot: Snapshot, *, to: Page) -> None:
    node = label_text({"node": snapshot.node})
    to.add(names.DRIVER_UP, int(snapshot.reading.is_driver_up), node)
    for index, count in snapshot.reading.deadline_misses.items():
        to.add(names.DEADLINE_MISSES, count, label_text({"node": snapshot.node, "gpu": index}))
    fault = snapshot.pod_resources_fault
    reason = label_text({"reason": fault})
    to.add(names.POD_RESOURCES_UP, int(fault is None), f"{node},{reason}")
    if snapshot.holders is not None:
        to.add(names.UNRESOLVED, len(snapshot.holders.unresolved), node)
    for resource, count in sorted((snapshot.allocatable or {}).items()):
        labels = label_text({"node": snapshot.node, "resource": resource})
        to.add(names.ALLOCATABLE, count, labels)
