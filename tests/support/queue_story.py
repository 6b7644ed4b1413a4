"""A small cluster in which jobs wait, told in minutes after noon: a case shows what it is about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import polars as pl

from analytics import waits
from analytics.inputs import SCHEMAS
from analytics.queue.causes import CLASSES
from analytics.queue.decomposition import COLUMNS, Decomposition, decompose
from analytics.queue.evidence import evidence
from analytics.queue.free import Free, free_boards
from analytics.queue.pending import scene_at_end, why_pending
from analytics.queue.workers import with_workers
from steward.period import Period
from tests.support.analytics_frames import HOUR, MINUTE, NOON, framed

TEN_HOURS = Period(NOON, NOON + 10 * HOUR)
_MINUTE_US = 60_000_000
Row = dict[str, object]


@dataclass(slots=True)
class Story:
    """What is stored of a cluster; every method adds to it and returns it."""

    stored: dict[str, list[Row]] = field(default_factory=dict)

    def _add(self, name: str, row: Row) -> Story:
        self.stored.setdefault(name, []).append({"cluster": "c", **row})
        return self

    def node(
        self, name: str = "n1", *, gpus: int = 8, model: str = "H100", **facts: object
    ) -> Story:
        """Add a node with GPUs ``name/0`` and so on, there since before noon."""
        self._add(
            "node_history",
            {"observed_at": NOON - HOUR, "node": name, "gpu_model": model, "gpu_count": gpus,
             "cpu_milli": 96_000, "memory_bytes": 2**40, "is_schedulable": True, **facts},
        )  # fmt: skip
        for index in range(gpus):
            self.device(f"{name}/{index}", model=model)
        return self

    def device(self, device_uuid: str, **facts: object) -> Story:
        """Add a state of a device, by default that it is there since before noon."""
        return self._add(
            "device_history",
            {"observed_at": NOON - HOUR, "node": node_of(device_uuid), "device_key": 1,
             "device_uuid": device_uuid, "model": "H100", "is_present": True, **facts},
        )  # fmt: skip

    def instances(self, device_uuid: str, *sevenths: int, model: str = "H100") -> Story:
        """Divide a device into MIG instances."""
        for index, count in enumerate(sevenths):
            self.device(device_uuid, model=model, instance_id=index + 1, sm_share_ratio=count / 7)
        return self

    def cordon(self, node: str, minute: float) -> Story:
        """Let a node take no more work."""
        return self._add(
            "node_history",
            {"observed_at": at(minute), "node": node, "gpu_model": "H100", "gpu_count": 8,
             "cpu_milli": 96_000, "memory_bytes": 2**40, "is_schedulable": False},
        )  # fmt: skip

    def lose(self, device_uuid: str, minute: float) -> Story:
        """Lose a device."""
        node = node_of(device_uuid)
        return self._add(
            "device_event_history",
            {"occurred_at": at(minute), "node": node, "device_uuid": device_uuid, "kind": "lost"},
        )

    def hold(
        self, *devices: str, since: float = -60, until: float | None = None, **facts: object
    ) -> Story:
        """Let a workload hold devices, by default from before noon on, open."""
        for device_uuid in devices:
            self._add(
                "allocation_history",
                {"node": node_of(device_uuid), "device_uuid": device_uuid,
                 "started_at": at(since), "ended_at": None if until is None else at(until),
                 "gpu_share_ratio": 1.0, "sharing_mode": "exclusive", "namespace": "team-a",
                 "pod": "holder-0", "workload_uid": "holder", **facts},
            )  # fmt: skip
        return self

    def job(self, uid: str = "w1", **facts: object) -> Story:
        """Add a workload, by default of one H100 in the queue team-a."""
        return self._add(
            "workload_current",
            {"workload_uid": uid, "kind": "Job", "namespace": "team-a", "name": uid,
             "tenant_id": "team-a", "owner": "ann", "workload_class": "training",
             "queue": "team-a", "priority_class": "standard", "priority": 100,
             "cpu_milli": 8_000, "memory_bytes": 2**34, "gpu_count": 1, "gpu_milli": 1_000,
             "gpu_models": "H100", **facts},
        )  # fmt: skip

    def steps(self, uid: str = "w1", *, attempt: int = 1, **minutes: float) -> Story:
        """Add transitions by name: ``steps(created=0, scheduled=5)``."""
        for transition, minute in minutes.items():
            self._add(
                "transition_history",
                {"occurred_at": at(minute), "workload_uid": uid, "attempt": attempt,
                 "transition": transition},
            )  # fmt: skip
        return self

    def waits_for_quota(
        self,
        minute: float,
        reason: str,
        message: str | None = None,
        *,
        uid: str = "w1",
        condition: str = "QuotaReserved",
    ) -> Story:
        """Let the queued workload of a job say why it has no quota, or is not admitted."""
        return self._add(
            "condition_history",
            {"occurred_at": at(minute), "kind": "Workload", "namespace": "team-a",
             "name": f"job-{uid}-0a1b2", "object_uid": f"queued-{uid}",
             "condition": condition, "status": "False", "reason": reason,
             "message": message},
        )  # fmt: skip

    def pod_says(
        self,
        minute: float,
        reason: str = "Unschedulable",
        message: str | None = None,
        *,
        uid: str = "w1",
    ) -> Story:
        """Let a pod of a job say why it is not placed."""
        return self._add(
            "condition_history",
            {"occurred_at": at(minute), "kind": "Pod", "namespace": "team-a", "name": f"{uid}-0",
             "object_uid": f"pod-{uid}", "workload_uid": uid, "condition": "PodScheduled",
             "status": "False", "reason": reason, "message": message},
        )  # fmt: skip

    def event(self, minute: float, reason: str, message: str, **facts: object) -> Story:
        """Add an event of a pod that is known by name only."""
        return self._add(
            "scheduling_event",
            {"occurred_at": at(minute), "kind": "Pod", "namespace": "team-a",
             "name": "w1-0-x7k2p", "object_uid": "unseen", "reason": reason, "message": message,
             **facts},
        )  # fmt: skip

    def quota(self, queue: str = "team-a", *, model: str = "H100", **facts: object) -> Story:
        """Add a reading of a queue's quota, by default 8 guaranteed and none used."""
        return self._add(
            "quota_use",
            {"observed_at": NOON, "queue": queue, "cohort": "all", "gpu_model": model,
             "guaranteed_gpu_count": 8.0, "limit_gpu_count": 8.0, "used_gpu_count": 0.0,
             **facts},
        )  # fmt: skip

    def rest(self, *devices: str, since: float, until: float, uid: str = "holder") -> Story:
        """Let held devices do nothing."""
        for device_uuid in devices:
            self._add(
                "rest",
                {"node": node_of(device_uuid), "device_uuid": device_uuid,
                 "workload_uid": uid, "is_idle": True, "started_at": at(since),
                 "ended_at": at(until), "gpu_share_ratio": 1.0},
            )  # fmt: skip
        return self

    def worker(self, uid: str, gpus: int) -> Story:
        """Tell how many GPUs one worker of a job needs."""
        return self._add("worker_request", {"workload_uid": uid, "worker_gpu_count": gpus})

    def frames(self) -> dict[str, pl.DataFrame]:
        """Return all inputs of reports."""
        return {name: framed(name, self.stored.get(name, ())) for name in SCHEMAS}

    def attempts(self, period: Period = TEN_HOURS) -> pl.DataFrame:
        """Return the attempts with their workers."""
        return _attempts(self.frames(), period)

    def free(self, period: Period = TEN_HOURS) -> Free:
        """Return what was free."""
        return free_boards(self.frames(), period)

    def said(self, period: Period = TEN_HOURS) -> pl.DataFrame:
        """Return what was said of those who wait."""
        return _decomposed(self.frames(), self.free(period), period)[1]

    def decomposed(self, period: Period = TEN_HOURS) -> Decomposition:
        """Return what the waits were made of."""
        return _decomposed(self.frames(), self.free(period), period)[0]

    def minutes(self, period: Period = TEN_HOURS) -> list[Mapping[str, float]]:
        """Return for each attempt the minutes in each class that it was in."""
        return [
            {
                name: row[column] / _MINUTE_US
                for name, column in zip(CLASSES, COLUMNS, strict=True)
                if row[column]
            }
            for row in self.decomposed(period).attempts.iter_rows(named=True)
        ]

    def pending(self, period: Period = TEN_HOURS) -> list[Row]:
        """Return why jobs wait at the period's end."""
        frames, free = self.frames(), self.free(period)
        found, said = _decomposed(frames, free, period)
        workloads = frames["workload_current"]
        scene = scene_at_end(frames, free=free, workloads=workloads, period=period)
        told = why_pending(found, said, scene=scene, free=free, period=period)
        return told.to_dicts()


def _attempts(frames: Mapping[str, pl.DataFrame], period: Period) -> pl.DataFrame:
    rows = waits.attempts(frames["transition_history"], frames["workload_current"], period)
    return with_workers(rows, frames["worker_request"], frames["allocation_history"])


def _decomposed(
    frames: Mapping[str, pl.DataFrame], free: Free, period: Period
) -> tuple[Decomposition, pl.DataFrame]:
    rows = _attempts(frames, period)
    said = evidence(frames["condition_history"], frames["scheduling_event"], rows)
    return decompose(rows, said, free=free, period=period), said


def node_of(device_uuid: str) -> str:
    """Return the node that a device sits on."""
    return device_uuid.partition("/")[0]


def at(minute: float) -> object:
    """Return the instant this many minutes after noon."""
    return NOON + minute * MINUTE
