"""Where a pod's processes are, against where a label or a monitor puts the pod.

A label can name an idle device beside the one that works (clients of MPS were seen so): processes
decide. What the kubelet or a claim says is not moved; a difference is noted only.
"""

from __future__ import annotations

from collections.abc import Iterable

from collector.allocation.pods import Pods
from collector.allocation.polls import Poll
from collector.allocation.state import COMPLETE, NodeState, Statement
from collector.holdings import DeviceKey


def uids_by_device(poll: Poll, pods: Pods) -> dict[DeviceKey, frozenset[str]]:
    """Return the uids of the pods that a poll saw at work, by device."""
    found: dict[DeviceKey, set[str]] = {}
    for use in poll.uses or ():
        uid = use.pod_uid
        if uid is None and use.pod is not None:
            owner = pods.owner(use.namespace, use.pod)
            uid = None if owner is None else owner.pod_uid
        if uid is not None:
            found.setdefault((use.device_uuid, use.instance_id), set()).add(uid)
    return {device: frozenset(uids) for device, uids in found.items()}


def place_by_processes(node: NodeState, pods: Pods) -> None:
    """Move what labels and monitors say to where the pods' processes are.

    A pod without any process stays where it was put last; one whose processes are where it is
    stated stays there, and so do its other devices, which it may hold without using them.
    """
    if not node.uses:
        return
    by_pod: dict[tuple[str, str], list[Statement]] = {}
    for statement in node.statements.values():
        uid = pods.uid(statement.holding)
        if uid is not None and statement.holding.source not in COMPLETE:
            by_pod.setdefault((statement.holding.source, uid), []).append(statement)
    for (_, uid), statements in by_pod.items():
        used = devices_in_use(node, uid)
        if used:
            _place(sorted(statements, key=_order), used)


def _place(statements: list[Statement], used: tuple[DeviceKey, ...]) -> None:
    """Pair the stated devices without a process with those that have one and are not stated."""
    stated, at_work = _boards(each.device for each in statements), _boards(used)
    unstated = [device for device in used if device[0] not in stated]
    idle = [each for each in statements if each.device[0] not in at_work]
    for statement in statements:
        statement.moved_to = ()
    for statement, device in zip(idle, unstated, strict=False):
        statement.moved_to = (device,)
    if idle and len(unstated) > len(idle):
        idle[-1].moved_to += tuple(unstated[len(idle) :])


def devices_in_use(node: NodeState, pod_uid: str | None) -> tuple[DeviceKey, ...]:
    """Return the devices that a pod's processes are on, ascending."""
    if pod_uid is None:
        return ()
    found = [device for device, uids in node.uses.items() if pod_uid in uids]
    return tuple(sorted(found, key=device_order))


def device_order(device: DeviceKey) -> tuple[str, int]:
    """Return what devices are ordered by: the board before its instances."""
    return device[0], -1 if device[1] is None else device[1]


def _order(statement: Statement) -> tuple[str, int, int, str]:
    said = statement.holding
    replica = -1 if said.replica is None else said.replica
    return (*device_order(statement.device), replica, said.container or "")


def _boards(devices: Iterable[DeviceKey]) -> set[str]:
    return {uuid for uuid, _ in devices}
