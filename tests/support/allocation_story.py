"""Tells a node's story to the allocation builder, second by second, and reads what it recorded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from collector.allocation.builder import AllocationBuilder
from collector.allocation.polls import DeviceUse, Output, Poll, Row
from collector.holdings import DeviceKey, Holding, HoldingSource
from collector.ownership import Owner, OwnershipLevel
from steward.ids import ClusterName

TEN = datetime(2026, 5, 4, 10, tzinfo=UTC)
POLL_S = 15.0
GPU = "GPU-a"
KUBELET, DRA, VENDOR, LABEL = HoldingSource


def at(second: float) -> datetime:
    """Return ten o'clock and so many seconds."""
    return TEN + timedelta(seconds=second)


def holding(
    pod: str = "pod-1",
    device_uuid: str = GPU,
    *,
    source: HoldingSource = KUBELET,
    **given: object,
) -> Holding:
    """Return one holding; what is not given is None or harmless."""
    fields: dict[str, object] = {
        "node": "n1",
        "device_uuid": device_uuid,
        "instance_id": None,
        "replica": None,
        "namespace": "team-a",
        "pod": pod,
        "container": "main",
        "claim": None,
        "resource": "nvidia.com/gpu",
        "source": source,
    }
    return Holding(**(fields | given))  # type: ignore[arg-type]  # a builder of typed fields


def owner(tenant_id: str | None = "team-a", **given: object) -> Owner:
    """Return one owner."""
    fields: dict[str, object] = {
        "pod_uid": None,
        "workload_uid": "w1",
        "tenant_id": tenant_id,
        "level": OwnershipLevel.NAMESPACE if tenant_id else OwnershipLevel.UNATTRIBUTED,
        "queue": None,
        "workload_class": None,
        "priority_class": None,
        "priority": None,
    }
    return Owner(**(fields | given))  # type: ignore[arg-type]  # a builder of typed fields


class KnownPods:
    """Owners of the pods that were named; others are not known."""

    def __init__(self) -> None:
        """Start without pods."""
        self.by_pod: dict[str, Owner] = {}

    def owner_of(self, namespace: str | None, pod: str) -> Owner | None:
        """Return the pod's owner, whatever its namespace."""
        return self.by_pod.get(pod) if namespace != "nowhere" else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """An interval as the record tells it in the end; times in seconds after ten o'clock."""

    device_uuid: str = GPU
    instance_id: int | None = None
    replica: int | None = None
    pod: str | None = "pod-1"
    from_s: float
    until_s: float | None = None
    share: float = 1.0
    mode: str = "exclusive"
    source: str = "podresources"
    conflict: str | None = None


@dataclass(slots=True)
class Story:
    """A builder, what it recorded and what it asked to remember."""

    owners: KnownPods = field(default_factory=KnownPods)
    rows: list[Row] = field(default_factory=list)
    memory: dict[str, bytes] = field(default_factory=dict)
    unknown_limit_s: float = 900.0
    builder: AllocationBuilder = field(init=False)

    def __post_init__(self) -> None:
        """Start a builder without a past."""
        self.restart()

    def restart(self) -> None:
        """Go on with a new builder that knows only what was remembered."""
        self.builder = AllocationBuilder(
            cluster=ClusterName("c"),
            poll_s=POLL_S,
            owners=self.owners,
            memory=dict(self.memory),
            unknown_limit_s=self.unknown_limit_s,
        )

    def poll(
        self,
        second: float,
        *holdings: Holding,
        source: HoldingSource = KUBELET,
        node: str = "n1",
        **given: object,
    ) -> list[Row]:
        """Take in one poll of a node and return its rows."""
        poll = Poll(node=node, at=at(second), source=source, holdings=holdings, **given)  # type: ignore[arg-type]  # named parts of a poll
        return self.keep(self.builder.observe(poll))

    def polls(self, seconds: Iterable[float], *holdings: Holding, **given: object) -> None:
        """Take in the same poll again and again."""
        for second in seconds:
            self.poll(second, *holdings, **given)  # type: ignore[arg-type]  # named parts of a poll

    def finish(self, second: float, pod: str = "pod-1", *, pod_uid: str | None = None) -> list[Row]:
        """Tell that a pod's containers finished."""
        return self.keep(
            self.builder.pod_finished("team-a", pod, pod_uid=pod_uid, finished_at=at(second))
        )

    def advance(self, second: float) -> list[Row]:
        """Let time pass."""
        return self.keep(self.builder.advance(at(second)))

    def keep(self, output: Output) -> list[Row]:
        """Store rows and memory as a spool does."""
        self.rows.extend(output.rows)
        for key, content in output.remember.items():
            if content is None:
                self.memory.pop(key, None)
            else:
                self.memory[key] = content
        return output.rows

    def record(self) -> list[Row]:
        """Return the rows that count: of each interval the last one, without empty ones."""
        last: dict[tuple[object, ...], Row] = {}
        for row in self.rows:
            key = tuple(
                row[name]
                for name in ("node", "device_uuid", "instance_id", "replica", "namespace", "pod",
                             "container", "started_at")
            )  # fmt: skip
            if key not in last or row["observed_at"] >= last[key]["observed_at"]:
                last[key] = row
        found = [each for each in last.values() if each["ended_at"] != each["started_at"]]
        return sorted(
            found,
            key=lambda row: (
                row["device_uuid"],
                -1 if row["instance_id"] is None else row["instance_id"],
                row["started_at"],
                row["pod"] or "",
                -1 if row["replica"] is None else row["replica"],
            ),
        )

    def held(self) -> list[Held]:
        """Return the record in short."""
        return [
            Held(
                device_uuid=row["device_uuid"],
                instance_id=row["instance_id"],
                replica=row["replica"],
                pod=row["pod"],
                from_s=_second(row["started_at"]),
                until_s=None if row["ended_at"] is None else _second(row["ended_at"]),
                share=round(row["gpu_share_ratio"], 9),
                mode=row["sharing_mode"],
                source=row["attribution_source"],
                conflict=row["conflict"],
            )
            for row in self.record()
        ]


def use(pod_uid: str, device_uuid: str = GPU, core_ratio: float | None = None) -> DeviceUse:
    """Return a pod seen at work by its processes."""
    return DeviceUse(
        device_uuid=device_uuid, instance_id=None, pod_uid=pod_uid, core_ratio=core_ratio
    )


def boards(*uuids: str) -> frozenset[DeviceKey]:
    """Return devices without instances."""
    return frozenset((uuid, None) for uuid in uuids)


def shares_at(held: Sequence[Held], second: float) -> dict[tuple[str, int | None], float]:
    """Return the share of each device that is held at an instant."""
    found: dict[tuple[str, int | None], float] = {}
    for each in held:
        if each.from_s <= second and (each.until_s is None or second < each.until_s):
            device = (each.device_uuid, each.instance_id)
            found[device] = found.get(device, 0.0) + each.share
    return found


def _second(instant: datetime) -> float:
    return (instant - TEN).total_seconds()
