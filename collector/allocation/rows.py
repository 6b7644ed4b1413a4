"""Intervals as rows of table ``allocation``."""

from __future__ import annotations

from collector.allocation.polls import Row, instant
from collector.allocation.state import Interval
from collector.ownership import OwnershipLevel


def row_of(interval: Interval, *, cluster: str, node: str) -> Row:
    """Return the interval as it is known now.

    Whoever holds for others, or on a device that could not be told, is named and not charged.
    """
    row: Row = {
        "observed_at": instant(interval.told_us),
        "cluster": cluster,
        "node": node,
        "device_uuid": interval.device_uuid,
        "instance_id": interval.instance_id,
        "replica": interval.replica,
        "started_at": instant(interval.started_us),
        "ended_at": None if interval.ended_us is None else instant(interval.ended_us),
        "gpu_share_ratio": interval.final_share_ratio,
        "sharing_mode": str(interval.sharing_mode),
        "namespace": interval.namespace,
        "pod": interval.pod,
        "pod_uid": interval.pod_uid,
        "container": interval.container,
        "attribution_source": str(interval.source),
        "claim": interval.claim,
        "resource": interval.resource,
        "conflict": interval.conflict,
    }
    if not interval.is_attributed:
        return row | {"ownership_level": str(OwnershipLevel.UNATTRIBUTED)}
    return row | _owner_columns(interval)


def _owner_columns(interval: Interval) -> Row:
    """Return whose the interval is; nothing where the cluster does not know the pod."""
    owner = interval.owner
    if owner is None:
        return {}
    return {
        "workload_uid": owner.workload_uid,
        "tenant_id": owner.tenant_id,
        "ownership_level": str(owner.level),
        "queue": owner.queue,
        "workload_class": owner.workload_class,
        "priority_class": owner.priority_class,
        "priority": owner.priority,
    }
