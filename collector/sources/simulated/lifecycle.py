"""Rows about who asked, who held and who waited, from what the scheduler did."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import uuid5

import pyarrow as pa

from collector.sources.simulated.fleet import NAMESPACE, NO_GPU
from collector.sources.simulated.history import Run
from collector.sources.simulated.requests import DEVELOPMENT, KINDS, Request
from collector.sources.simulated.world import World
from collector.tables import rows_table

SOURCE: Final = "simulated"
COHORT: Final = "company"
_LAST_INSTANT_BEFORE_END_S: Final = 1


class Lifecycle:
    """Cuts the history of one world into rows; each row belongs to exactly one stretch."""

    def __init__(self, world: World) -> None:
        """Keep the world."""
        self._world = world
        self._cluster = world.parameters.cluster

    def tables(self, from_s: int, until_s: int) -> Iterator[tuple[str, pa.Table]]:
        """Yield the rows observed in ``[from_s, until_s)``, by table, in order of time."""
        yield "workload", self._workloads(from_s, until_s)
        yield "workload_transition", self._transitions(from_s, until_s)
        yield "allocation", self._allocations(from_s, until_s)
        yield "kubernetes_event", self._complaints(from_s, until_s)
        yield "quota_snapshot", self._quota(from_s, until_s)

    def _at(self, second: int) -> datetime:
        return self._world.parameters.from_at + timedelta(seconds=second)

    def _workloads(self, from_s: int, until_s: int) -> pa.Table:
        requests = sorted(self._world.requests, key=lambda each: (each.created_s, each.index))
        return rows_table(
            "workload",
            [self._workload(each) for each in requests if from_s <= each.created_s < until_s],
        )

    def _workload(self, request: Request) -> dict[str, Any]:
        return {
            "observed_at": self._at(request.created_s),
            "cluster": self._cluster,
            "workload_uid": request.uid,
            "kind": KINDS[request.workload_class],
            "namespace": request.tenant,
            "name": request.name,
            "tenant_id": request.tenant,
            "owner": request.owner,
            "workload_class": request.workload_class,
            "queue": f"{request.tenant}-queue",
            "priority_class": request.priority_class,
            "priority": request.priority,
            "cpu_milli": request.cpu_milli * request.pod_count,
            "memory_bytes": request.memory_bytes * request.pod_count,
            "gpu_count": request.slot_count,
            "gpu_milli": request.gpu_milli,
            "gpu_models": "|".join(request.models),
            "qos_class": "Burstable" if request.workload_class == DEVELOPMENT else "Guaranteed",
            "source": SOURCE,
        }

    def _transitions(self, from_s: int, until_s: int) -> pa.Table:
        rows = [
            {
                "occurred_at": self._at(each.at_s),
                "observed_at": self._at(each.at_s),
                "cluster": self._cluster,
                "workload_uid": each.request.uid,
                "pod_uid": None,
                "attempt": each.attempt,
                "transition": each.transition,
                "reason": each.reason,
                "message": each.message,
                "source": SOURCE,
            }
            for each in self._world.history.transitions
            if from_s <= each.at_s < until_s
        ]
        return rows_table("workload_transition", rows)

    def _allocations(self, from_s: int, until_s: int) -> pa.Table:
        """Return one row per slot held: when it was let go, or just before the end if it is not."""
        end_s = self._world.parameters.duration_s - _LAST_INSTANT_BEFORE_END_S
        observed = [
            (end_s if run.ended_s is None else run.ended_s, run)
            for run in self._world.history.runs
            if run.request.resource != NO_GPU
        ]
        observed.sort(key=lambda pair: pair[0])
        rows = [
            row
            for observed_s, run in observed
            if from_s <= observed_s < until_s
            for row in self._run_rows(run, observed_s)
        ]
        return rows_table("allocation", rows)

    def _run_rows(self, run: Run, observed_s: int) -> Iterator[dict[str, Any]]:
        fleet, request = self._world.fleet, run.request
        for ordinal, pod in enumerate(run.pods):
            for slot in (fleet.slots[index] for index in pod.slot_indices):
                yield {
                    "observed_at": self._at(observed_s),
                    "cluster": self._cluster,
                    "node": fleet.nodes[pod.node_index].name,
                    "device_uuid": slot.device.uuid,
                    "instance_id": slot.instance_id,
                    "replica": slot.replica,
                    "started_at": self._at(run.scheduled_s),
                    "ended_at": None if run.ended_s is None else self._at(run.ended_s),
                    "gpu_share_ratio": slot.gpu_share_ratio,
                    "sharing_mode": slot.device.sharing_mode,
                    "namespace": request.tenant,
                    "pod": request.pod_name(ordinal, run.attempt),
                    "pod_uid": request.pod_uid(ordinal, run.attempt),
                    "container": "main",
                    "workload_uid": request.uid,
                    "tenant_id": request.tenant,
                    "attribution_source": SOURCE,
                }

    def _complaints(self, from_s: int, until_s: int) -> pa.Table:
        rows = []
        for each in self._world.history.complaints:
            if not from_s <= each.at_s < until_s:
                continue
            is_pod = each.reason == "FailedScheduling"
            request = each.request
            identity = f"{request.uid}/{each.attempt}/{each.at_s}/{each.reason}"
            rows.append(
                {
                    "occurred_at": self._at(each.at_s),
                    "cluster": self._cluster,
                    "event_uid": str(uuid5(NAMESPACE, identity)),
                    "namespace": request.tenant,
                    "kind": "Pod" if is_pod else "Workload",
                    "name": request.pod_name(0, each.attempt) if is_pod else request.name,
                    "object_uid": request.pod_uid(0, each.attempt) if is_pod else request.uid,
                    "type": "Warning" if is_pod else "Normal",
                    "reason": each.reason,
                    "message": each.message,
                    "occurrence_count": each.occurrence_count,
                }
            )
        return rows_table("kubernetes_event", rows)

    def _quota(self, from_s: int, until_s: int) -> pa.Table:
        rows = [
            {
                "observed_at": self._at(each.at_s),
                "cluster": self._cluster,
                "queue": f"{each.tenant}-queue",
                "tenant_id": each.tenant,
                "cohort": COHORT,
                "gpu_model": each.model,
                "guaranteed_gpu_count": each.guaranteed_gpu_count,
                "limit_gpu_count": each.limit_gpu_count,
                "used_gpu_count": each.used_gpu_count,
                "borrowed_gpu_count": max(0.0, each.used_gpu_count - each.guaranteed_gpu_count),
                "pending_workload_count": each.pending_count,
                "source": SOURCE,
            }
            for each in self._world.history.quota_readings
            if from_s <= each.at_s < until_s
        ]
        return rows_table("quota_snapshot", rows)
