"""Replays the openb trace (Alibaba, 2023): its node list and one of its pod lists as rows.

Seconds of the trace are added to a chosen start. A pod without a scheduled time was never
scheduled: it has no ``scheduled`` transition, and its deletion is its ``finished``.
The pod lists are a sample: on their own times they use about 1 % of the nodes' GPUs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from collector.batches import Batch, derived_batch_id
from collector.sources.strict_csv import Row, StrictCsv, read_strict_csv
from collector.tables import rows_table
from steward.units import GPU_MILLI, MIB_BYTES

SOURCE: Final = "openb"
IDENTITY_LABEL: Final = "steward.openb"
"""The node label that carries what was imported."""
DEFAULT_START: Final = datetime(2023, 1, 1, tzinfo=UTC)
NODE_COLUMNS: Final = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
POD_COLUMNS: Final = (
    "name",
    "cpu_milli",
    "memory_mib",
    "num_gpu",
    "gpu_milli",
    "gpu_spec",
    "qos",
    "pod_phase",
    "creation_time",
    "deletion_time",
    "scheduled_time",
)
_BATCH_ROWS: Final = 50_000
_LARGEST_GPU_COUNT: Final = 1_024
_LARGEST_MEMORY_MIB: Final = 2**30
"""One PiB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenbNode:
    """One line of the node list."""

    name: str
    cpu_milli: int
    memory_bytes: int
    gpu_count: int
    gpu_model: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenbPod:
    """One line of a pod list; times in seconds from the start of the trace."""

    name: str
    cpu_milli: int
    memory_bytes: int
    gpu_count: int
    gpu_milli: int
    gpu_models: str | None
    qos_class: str
    last_phase: str
    created_s: int
    deleted_s: int
    scheduled_s: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenbTrace:
    """Both lists, checked to their last line, and what makes them different from others."""

    nodes: tuple[OpenbNode, ...]
    pods: tuple[OpenbPod, ...]
    starts_at: datetime
    cluster: str
    digest: str
    """Of both files' contents."""

    def identity(self) -> str:
        """Return the text that two imports share only when all their rows are the same."""
        return json.dumps(
            {
                "contents": self.digest,
                "starts_at": self.starts_at.astimezone(UTC).isoformat(),
                "cluster": self.cluster,
            },
            sort_keys=True,
        )

    def batches(self) -> Iterator[Batch]:
        """Yield the rows by table, nodes first; each batch always has the same id."""
        for table, rows in (
            ("node", self._node_rows()),
            ("device", self._device_rows()),
            ("workload", self._workload_rows()),
            ("workload_transition", self._transition_rows()),
        ):
            for first in range(0, len(rows), _BATCH_ROWS):
                yield Batch(
                    table=table,
                    rows=rows_table(table, rows[first : first + _BATCH_ROWS]),
                    batch_id=derived_batch_id(SOURCE, self.identity(), table, str(first)),
                )

    def _at(self, second: int) -> datetime:
        return self.starts_at + timedelta(seconds=second)

    def _node_rows(self) -> list[dict[str, Any]]:
        labels_json = json.dumps({IDENTITY_LABEL: self.identity()})
        return [
            {
                "observed_at": self.starts_at,
                "cluster": self.cluster,
                "node": node.name,
                "gpu_model": node.gpu_model,
                "gpu_count": node.gpu_count,
                "cpu_milli": node.cpu_milli,
                "memory_bytes": node.memory_bytes,
                "is_schedulable": True,
                "labels_json": labels_json,
                "source": SOURCE,
            }
            for node in self.nodes
        ]

    def _device_rows(self) -> list[dict[str, Any]]:
        return [
            {
                "observed_at": self.starts_at,
                "cluster": self.cluster,
                "node": node.name,
                "device_uuid": f"{node.name}/{index}",
                "model": node.gpu_model,
                "device_index": index,
                "sm_share_ratio": 1.0,
                "memory_share_ratio": 1.0,
                "is_present": True,
                "source": SOURCE,
            }
            for node in self.nodes
            for index in range(node.gpu_count)
        ]

    def _workload_rows(self) -> list[dict[str, Any]]:
        return [
            {
                "observed_at": self._at(pod.created_s),
                "cluster": self.cluster,
                "workload_uid": _uid(pod),
                "kind": "Pod",
                "name": pod.name,
                "cpu_milli": pod.cpu_milli,
                "memory_bytes": pod.memory_bytes,
                "gpu_count": pod.gpu_count,
                "gpu_milli": pod.gpu_milli,
                "gpu_models": pod.gpu_models,
                "qos_class": pod.qos_class,
                "source": SOURCE,
            }
            for pod in self.pods
        ]

    def _transition_rows(self) -> list[dict[str, Any]]:
        steps = [
            (second, order, pod, transition)
            for order, pod in enumerate(self.pods)
            for second, transition in (
                (pod.created_s, "created"),
                (pod.scheduled_s, "scheduled"),
                (pod.deleted_s, "finished"),
            )
            if second is not None
        ]
        steps.sort(key=lambda step: step[:2])
        return [
            {
                "occurred_at": self._at(second),
                "observed_at": self._at(second),
                "cluster": self.cluster,
                "workload_uid": _uid(pod),
                "pod_uid": _uid(pod),
                "attempt": 1,
                "transition": transition,
                "reason": pod.last_phase if transition == "finished" else None,
                "source": SOURCE,
            }
            for second, _, pod, transition in steps
        ]


def read_openb(
    *, nodes: Path, pods: Path, cluster: str, starts_at: datetime = DEFAULT_START
) -> OpenbTrace:
    """Return the trace; every line of both files is checked before anything is returned.

    Args:
        nodes: an openb node list, plain or .gz.
        pods: an openb pod list, plain or .gz.
        cluster: stored with every row.
        starts_at: the instant that second 0 of the trace becomes; aware.

    Raises:
        InputError: a file or a line is not what it should be.
    """
    node_list = read_strict_csv(nodes, columns=NODE_COLUMNS, what="openb node list")
    pod_list = read_strict_csv(pods, columns=POD_COLUMNS, what="openb pod list")
    _refuse_repeats(node_list, "sn")
    _refuse_repeats(pod_list, "name")
    return OpenbTrace(
        nodes=tuple(_node(row) for row in node_list.rows),
        pods=tuple(_pod(row) for row in pod_list.rows),
        starts_at=starts_at,
        cluster=cluster,
        digest=f"{node_list.digest}+{pod_list.digest}",
    )


def _uid(pod: OpenbPod) -> str:
    return f"{SOURCE}/{pod.name}"


def _refuse_repeats(listed: StrictCsv, column: str) -> None:
    first_lines: dict[str, int] = {}
    for row in listed.rows:
        first = first_lines.setdefault(row.text(column), row.line)
        if first != row.line:
            raise row.fault(column, f"repeats {row.text(column)[:80]!r} of line {first}")


def _gpu_count(row: Row, column: str) -> int:
    count = row.count(column)
    if count > _LARGEST_GPU_COUNT:
        raise row.fault(column, f"is more GPUs than a machine holds: {count}")
    return count


def _memory_bytes(row: Row) -> int:
    memory_mib = row.count("memory_mib")
    if memory_mib > _LARGEST_MEMORY_MIB:
        raise row.fault("memory_mib", f"is more memory than a machine holds: {memory_mib}")
    return memory_mib * MIB_BYTES


def _node(row: Row) -> OpenbNode:
    gpu_count = _gpu_count(row, "gpu")
    return OpenbNode(
        name=row.text("sn"),
        cpu_milli=row.count("cpu_milli"),
        memory_bytes=_memory_bytes(row),
        gpu_count=gpu_count,
        gpu_model=row.text("model") if gpu_count > 0 else row.optional_text("model"),
    )


def _pod(row: Row) -> OpenbPod:
    gpu_milli = row.count("gpu_milli")
    if gpu_milli > GPU_MILLI:
        raise row.fault("gpu_milli", f"is more than one GPU ({GPU_MILLI}): {gpu_milli}")
    pod = OpenbPod(
        name=row.text("name"),
        cpu_milli=row.count("cpu_milli"),
        memory_bytes=_memory_bytes(row),
        gpu_count=_gpu_count(row, "num_gpu"),
        gpu_milli=gpu_milli,
        gpu_models=row.optional_text("gpu_spec"),
        qos_class=row.text("qos"),
        last_phase=row.text("pod_phase"),
        created_s=_second(row, "creation_time"),
        deleted_s=_second(row, "deletion_time"),
        scheduled_s=None
        if row.optional_text("scheduled_time") is None
        else _second(row, "scheduled_time"),
    )
    _refuse_disorder(pod, row)
    return pod


def _refuse_disorder(pod: OpenbPod, row: Row) -> None:
    if pod.deleted_s < pod.created_s:
        raise row.fault("deletion_time", "is before creation_time")
    if pod.scheduled_s is not None and not pod.created_s <= pod.scheduled_s <= pod.deleted_s:
        raise row.fault("scheduled_time", "is not between creation_time and deletion_time")


_LARGEST_SECOND: Final = 10**10
"""Three centuries: beyond it a time is a mistake, and no calendar date."""


def _second(row: Row, column: str) -> int:
    second = row.count(column)
    if second > _LARGEST_SECOND:
        raise row.fault(column, f"is no time of a trace: {second} s")
    return second
