"""The cluster's changes and the scrapes in step: rows and memory leave together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pyarrow as pa

from collector.attribution import PATIENCE, Attribution
from collector.lifecycle import Lifecycle
from collector.normalize import NormalizeState
from collector.reading import Reading, Target, reading_of
from collector.scrape import Page
from collector.sources.kubernetes.change import Change, ChangeType, ObjectKey
from collector.sources.kubernetes.resource import Resource
from collector.sources.kubernetes.resources import (
    NODES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    RESOURCES,
)
from steward.ids import ClusterName
from steward.ports import ArrowTable
from tests.support.kubernetes_objects import Body, at, decoded, metadata, node, pod

NODE = "gpu-0"
NO_KEY = ObjectKey(namespace=None, name="", uid="")


@dataclass
class Clock:
    """A clock that is set by hand."""

    at: datetime

    def now(self) -> datetime:
        """Return what it was set to."""
        return self.at


@dataclass
class World:
    """An attribution, and everything it offered."""

    is_watching: bool = True
    memory: dict[str, bytes] = field(default_factory=dict)
    clock: Clock = field(default_factory=lambda: Clock(at(0)))
    offers: list[tuple[dict[str, pa.Table], Mapping[str, bytes | None]]] = field(
        default_factory=list
    )
    attribution: Attribution = field(init=False)
    target: Target = field(init=False)

    def __post_init__(self) -> None:
        """Start with the memory."""
        lifecycle = Lifecycle(cluster="c", memory=self.memory) if self.is_watching else None
        self.attribution = Attribution(
            cluster=ClusterName("c"),
            poll_s=15,
            lifecycle=lifecycle,
            memory=self.memory,
            offer=self.take,
            clock=self.clock,
        )
        state = NormalizeState(node=NODE)
        self.target = Target(url="http://n:9400/metrics", cluster=ClusterName("c"), state=state)

    def take(
        self,
        rows: Iterable[tuple[str, ArrowTable]],
        *,
        remember: Mapping[str, bytes | None] | None = None,
    ) -> None:
        """Keep what was offered, and remember what was to be remembered."""
        self.offers.append(({name: pa.table(table) for name, table in rows}, remember or {}))
        for key, value in (remember or {}).items():
            if value is None:
                self.memory.pop(key, None)
            else:
                self.memory[key] = value

    def put(self, resource: Resource, body: Body, kind: ChangeType = ChangeType.ADDED) -> None:
        """Let an object be as it now is, or be gone."""
        found = decoded(resource, body)
        meta = found.metadata
        key = ObjectKey(namespace=meta.namespace, name=meta.name, uid=meta.uid)
        self.attribution.apply(
            Change(resource=resource, type=kind, key=key, object=found, observed_at=self.clock.at)
        )

    def sync(self) -> None:
        """Complete the first lists."""
        for resource in RESOURCES:
            self.attribution.apply(
                Change(
                    resource=resource,
                    type=ChangeType.SYNCED,
                    key=NO_KEY,
                    object=None,
                    observed_at=self.clock.at,
                )
            )

    def scrape(self, seconds: float, *, holder: str = "") -> None:
        """Scrape one GPU, held by this pod of namespace ``a`` or by nobody."""
        self.clock.at = at(seconds)
        line = (
            f'DCGM_FI_DEV_GPU_UTIL{{gpu="0",UUID="GPU-a",namespace="{"a" if holder else ""}",'
            f'pod="{holder}",container="{"main" if holder else ""}"}} 50\n'
        )
        self.attribution.observe(self.reading(line))

    def reading(self, text: str) -> Reading:
        """Return what a text gives."""
        page = Page(body=text.encode())
        return reading_of(self.target, page, scraped_at=self.clock.at, duration_s=0.1)

    def flush(self, seconds: float) -> None:
        """Flush at this instant."""
        self.clock.at = at(seconds)
        self.attribution.flush()

    def allocations(self) -> list[dict[str, object]]:
        """Return the allocation rows offered so far."""
        names = ("device_uuid", "pod", "started_at", "ended_at", "workload_class", "conflict")
        return [
            {name: row[name] for name in names}
            for tables, _ in self.offers
            if "allocation" in tables
            for row in tables["allocation"].to_pylist()
        ]


def held(pod_name: str | None, *, start: float, end: float | None = None, **more: object) -> object:
    """Return the part of an allocation row that a case is about."""
    return {
        "device_uuid": "GPU-a",
        "pod": pod_name,
        "started_at": at(start),
        "ended_at": None if end is None else at(end),
        "workload_class": None,
        "conflict": None,
        **more,
    }


def running(name: str = "p", *, finished_s: float | None = None) -> Body:
    return pod(name, namespace="a", node=NODE, scheduled_s=1, started_s=2, finished_s=finished_s)


def test_without_a_cluster_scrapes_alone_tell_who_holds_what() -> None:
    world = World(is_watching=False)
    world.scrape(0, holder="p")
    world.flush(1)
    assert world.allocations() == [held("p", start=0)]


def test_rows_and_what_to_remember_of_them_leave_in_one_step() -> None:
    world = World()
    world.put(PODS, running())
    world.sync()
    assert world.offers == []
    world.flush(3)
    ((tables, remember),) = world.offers
    assert {"pod", "workload", "workload_transition", "condition_change"} <= tables.keys()
    assert any(key.startswith("pod/") for key in remember)


def test_a_restart_with_the_memory_tells_nothing_again() -> None:
    world = World()
    world.put(PODS, running())
    world.sync()
    world.flush(3)
    again = World(memory=dict(world.memory))
    again.put(PODS, running())
    again.sync()
    again.flush(4)
    assert [tables for tables, _ in again.offers if tables] == []


def test_the_end_of_the_pod_ends_what_it_held_although_the_label_stays() -> None:
    world = World()
    world.put(PODS, running())
    world.sync()
    world.scrape(5, holder="p")
    world.put(PODS, running(finished_s=9), ChangeType.MODIFIED)
    world.scrape(20, holder="p")
    world.flush(21)
    rows = {row["pod"]: (row["started_at"], row["ended_at"]) for row in world.allocations()}
    assert rows == {"p": (at(5), at(9)), None: (at(9), None)}


def test_scrapes_wait_for_the_first_lists_and_not_for_ever() -> None:
    world = World()
    patience_s = PATIENCE / timedelta(seconds=1)
    world.scrape(patience_s - 1, holder="p")
    world.flush(patience_s - 1)
    assert world.allocations() == []
    world.scrape(patience_s, holder="p")
    world.flush(patience_s + 1)
    (row,) = world.allocations()
    assert (row["pod"], row["started_at"]) == ("p", at(patience_s))


def test_a_node_that_leaves_the_cluster_holds_nothing_more() -> None:
    world = World()
    world.put(NODES, node(NODE))
    world.sync()
    world.scrape(5, holder="p")
    world.clock.at = at(12)
    world.put(NODES, node(NODE), ChangeType.DELETED)
    world.flush(13)
    assert world.allocations()[-1]["ended_at"] == at(12)


def offered(*uuids: str) -> Body:
    """Return a ResourceSlice of the node with these boards."""
    devices = [
        {
            "name": f"gpu-{minor}",
            "attributes": {
                "type": {"string": "gpu"},
                "uuid": {"string": uuid},
                "minor": {"int": minor},
            },
        }
        for minor, uuid in enumerate(uuids)
    ]
    pool = {"name": NODE, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "gpu.nvidia.com", "nodeName": NODE, "pool": pool, "devices": devices}
    return {"metadata": metadata("slice", namespace=None), "spec": spec}


def claim(*, is_reserved: bool) -> Body:
    """Return a claim for the first board, used by pod ``p`` or by nobody."""
    result = {"request": "gpu", "driver": "gpu.nvidia.com", "pool": NODE, "device": "gpu-0"}
    consumers = [{"resource": "pods", "name": "p", "uid": "p-uid"}] if is_reserved else []
    status = {"allocation": {"devices": {"results": [result]}}, "reservedFor": consumers}
    return {"metadata": metadata("c", namespace="a"), "status": status}


def test_a_claim_holds_its_board_until_it_is_released() -> None:
    world = World()
    world.put(RESOURCE_SLICES, offered("GPU-a"))
    world.put(RESOURCE_CLAIMS, claim(is_reserved=True))
    world.sync()
    world.flush(5)
    world.put(RESOURCE_CLAIMS, claim(is_reserved=False), ChangeType.MODIFIED)
    world.flush(20)
    assert [(row["pod"], row["started_at"]) for row in world.allocations()] == [
        ("p", at(5)),
        ("p", at(5)),
    ]
    ends = [row["ended_at"] for row in world.allocations()]
    assert ends[0] is None
    assert ends[1] is not None


def test_a_free_board_that_only_its_driver_shows_is_unobserved() -> None:
    world = World()
    world.put(RESOURCE_SLICES, offered("GPU-a", "GPU-b"))
    world.sync()
    world.flush(1)
    for seconds in (2, 17, 32, 47):
        world.scrape(seconds)
        world.flush(seconds + 1)
    (row,) = [row for row in world.allocations() if row["device_uuid"] == "GPU-b"]
    assert (row["pod"], row["conflict"]) == (None, "unobserved")
