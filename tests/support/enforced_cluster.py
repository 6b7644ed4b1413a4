"""A small cluster in memory, its ledger in SQLite, and rounds that may be killed anywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from enforcer.apply import Round
from enforcer.decisions import Plan, PlannedAction, Step
from enforcer.facts import Notice, Snapshot, Workload
from enforcer.gateway.memory import Call, MemoryGateway
from enforcer.gateway.port import KubernetesObject, Target
from enforcer.hands import Hands, Reach
from enforcer.ledger import Ledger
from enforcer.notify import EventChannel
from enforcer.policies.model import Policy
from sql.state import StateStore, open_state
from steward.ports import StateValue
from tests.support.enforcer_plan import CLUSTER, MINUTE, NOON, due, holder, notice, policy, snapshot

TEAM: Final = "team"
UID_LABEL: Final = "batch.kubernetes.io/controller-uid"
ALL_KINDS: Final = frozenset({"Job", "Deployment", "Pod", "Workload"})


class Killed(BaseException):
    """The process ended here."""


@dataclass(slots=True)
class Ticking:
    """A clock that a test moves."""

    at: datetime = NOON

    def now(self) -> datetime:
        """Return the instant it was moved to."""
        return self.at

    def pass_(self, length: timedelta) -> None:
        """Move it on."""
        self.at += length


@dataclass(slots=True)
class Killer:
    """Counts what reaches outside and ends the process at one of these points."""

    at: int | None = None
    count: int = 0

    def point(self) -> None:
        """Be one more point."""
        self.count += 1
        if self.count == self.at:
            raise Killed

    def on_call(self, _call: Call) -> None:
        """See a gateway's call, before and after."""
        self.point()


class Log:
    """The state tables of a file as the port that the ledger uses."""

    def __init__(self, store: StateStore, killer: Killer) -> None:
        """Keep the store, and who may end the process around each write."""
        self.store = store
        self.killer = killer

    def state_rows(self, table: str) -> Sequence[Mapping[str, object]]:
        """Return the newest rows first."""
        return self.store.rows(table)

    def state_after(
        self, table: str, key: int, *, limit: int = 10_000
    ) -> Sequence[Mapping[str, object]]:
        """Return the oldest rows first, of those with a larger key."""
        return self.store.rows_after(table, key, limit=limit)

    def state_append(
        self, rows: Sequence[tuple[str, Mapping[str, StateValue]]], *, seen: Mapping[str, int]
    ) -> Sequence[Mapping[str, object]] | None:
        """Store all rows or none."""
        self.killer.point()
        stored = self.store.append(rows, seen=seen)
        self.killer.point()
        return stored


def job(name: str) -> dict[str, object]:
    """Return a Job of the team that holds GPUs."""
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": TEAM, "uid": name, "labels": {"app": name}},
        "spec": {
            "suspend": False,
            "selector": {"matchLabels": {UID_LABEL: name}},
            "template": {"spec": {"containers": [{"name": "main", "image": "train"}]}},
        },
        "status": {},
    }


def pod_of(name: str) -> dict[str, object]:
    """Return the pod of a job."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"{name}-0", "namespace": TEAM, "labels": {UID_LABEL: name}},
        "spec": {"nodeName": "n1"},
        "status": {"phase": "Running"},
    }


def job_controller(gateway: MemoryGateway) -> None:
    """Do what the Job controller does: pods go with suspend and come again without."""
    for (_group, kind, _space, name), found in list(gateway._ordered()):
        if kind != "Job":
            continue
        spec = found["spec"]
        assert isinstance(spec, Mapping)
        if spec.get("suspend"):
            gateway.remove(pod_target(name))
        elif ("", "Pod", TEAM, f"{name}-0") not in gateway._objects:
            gateway.put(pod_of(name))  # type: ignore[arg-type]  # plain JSON


def pod_target(name: str) -> Target:
    """Return the pod of a job."""
    return Target(api_version="v1", kind="Pod", namespace=TEAM, name=f"{name}-0", uid=None)


def job_target(name: str) -> Target:
    """Return a job."""
    return Target(api_version="batch/v1", kind="Job", namespace=TEAM, name=name, uid=None)


@dataclass(slots=True)
class Enforced:
    """A cluster of jobs, and replicas that enforce on it."""

    store: StateStore
    clock: Ticking = field(default_factory=Ticking)
    killer: Killer = field(default_factory=Killer)
    gateway: MemoryGateway = field(default_factory=MemoryGateway)
    policies: tuple[Policy, ...] = (policy(),)
    reach: Reach = field(default_factory=lambda: Reach(kinds=ALL_KINDS))

    def add_job(self, name: str) -> Workload:
        """Start a job with its pod; return it as a workload that is long idle."""
        self.gateway.put(job(name))  # type: ignore[arg-type]  # plain JSON
        self.gateway.put(pod_of(name))  # type: ignore[arg-type]  # plain JSON
        return holder(name)

    def hands(
        self, actor: str = "replica-1", *, fence: Callable[[], str | None] | None = None
    ) -> Hands:
        """Return the ports of a new replica."""
        ledger = Ledger(
            Log(self.store, self.killer),
            cluster=CLUSTER,
            clock=self.clock,
            actor=actor,
            fence=fence or (lambda: f"1:{actor}"),
        )
        return Hands(
            gateway=self.gateway,
            ledger=ledger,
            clock=self.clock,
            channels=(EventChannel(self.gateway),),
            reach=self.reach,
        )

    def round(
        self,
        *workloads: Workload,
        step: Step = Step.SUSPEND,
        notices: Sequence[Notice] | None = None,
        plan_id: str = "plan-1",
    ) -> Round:
        """Return a round that plans one step on each workload."""
        told = [notice(one.uid) for one in workloads] if notices is None else notices
        taken = snapshot(*workloads, notices=tuple(told))
        return Round(
            plan=planned(taken, step, plan_id=plan_id, now=self.clock.now()),
            snapshot=taken,
            policies=self.policies,
            known=self.hands().ledger.known(at=self.clock.now()),
        )

    def live(self, name: str) -> KubernetesObject:
        """Return a job as it is."""
        return self.gateway._objects["batch", "Job", TEAM, name]

    def spec(self, name: str) -> object:
        """Return a job's spec."""
        return self.live(name)["spec"]

    def rows(self, table: str) -> list[Mapping[str, object]]:
        """Return a state table's rows, oldest first."""
        return list(self.store.rows_after(table, 0))


def planned(taken: Snapshot, step: Step, *, plan_id: str, now: datetime) -> Plan:
    """Return a plan of one step on each workload of a snapshot."""
    actions = tuple(
        PlannedAction(
            number=number,
            decision=replace(due(one, step), act_at=now + 60 * MINUTE),
            step=step,
            workload_uid=one.uid,
            gpu_count=one.gpu_count,
            lost_gpu_hours=None,
            serves_workload_uid=None,
        )
        for number, one in enumerate(taken.workloads)
    )
    return Plan(
        plan_id=plan_id,
        snapshot_id=taken.snapshot_id,
        planned_at=now,
        actions=actions,
        deferred=(),
        breakers=(),
    )


@contextmanager
def enforced(data_dir: Path) -> Iterator[Enforced]:
    """Open a world with an empty ledger."""
    store = open_state(data_dir)
    try:
        world = Enforced(store=store)
        world.gateway.controllers.append(job_controller)
        world.gateway.on_call = world.killer.on_call
        yield world
    finally:
        store.close()
