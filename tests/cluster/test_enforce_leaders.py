"""Replicas on a real API server: leaders killed in the middle of rounds, and the server too."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from enforcer.entries import Entries, Entry, Outcome
from enforcer.gateway.live import LiveGateway
from enforcer.hands import Hands, Reach
from enforcer.ledger import Ledger
from enforcer.settling import settle
from enforcer.undo import Undoing, undo, undoable
from sql.auditchain import ChainState, verified
from sql.client import RemoteWarehouse
from steward.clock import SystemClock
from tests.support.cluster import Cluster
from tests.support.cluster_client import Manifest
from tests.support.cluster_enforcer import live_gateway
from tests.support.cluster_namespace import Namespace
from tests.support.cluster_objects import job, pod_template
from tests.support.cluster_processes import wait_until
from tests.support.enforce_replica import INTERRUPTED_AFTER
from tests.support.enforcer_plan import CLUSTER
from tests.support.warehouse_server import remote

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
LEASE = "coordination.k8s.io/v1/Lease"
REPLICAS = 3
KILLS = 20
JOBS = 60
"""More than the rounds between twenty kills can take."""
KILL_WITHIN_S = 0.5
"""A leader is killed so soon after it has begun an act: the rehearsal, the write and the look at
the pods lie within."""
PATIENCE_S = 120.0


@dataclass(slots=True)
class Replicas:
    """Processes that want to lead."""

    own: Namespace
    url: str
    log: Path
    running: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self) -> None:
        """Start one more."""
        flags = ["--kubeconfig", str(self.own.cluster.kubeconfig), "--warehouse", self.url]
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "tests.support.enforce_replica",
                    *flags,
                    "--namespace",
                    self.own.name,
                ],
                cwd=ROOT,
                stderr=log,
            )
        self.running.append(process)

    def leader(self) -> subprocess.Popen[bytes] | None:
        """Return the living replica that holds the lease."""
        leases = self.own.list(LEASE)
        holder = leases[0]["spec"].get("holderIdentity") if leases else None
        return next((one for one in self.running if holder == f"replica-{one.pid}"), None)

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        """End one where it stands."""
        process.kill()
        process.wait()
        self.running.remove(process)

    def stop(self) -> None:
        """End all in order."""
        for process in self.running:
            process.terminate()
        for process in self.running:
            process.wait(timeout=PATIENCE_S)


@contextmanager
def replicas(own: Namespace, url: str, log: Path) -> Iterator[Replicas]:
    """Start three, and end whatever runs afterwards."""
    found = Replicas(own, url, log)
    try:
        for _ in range(REPLICAS):
            found.start()
        yield found
    finally:
        for process in found.running:
            process.kill()
            process.wait()


@pytest.fixture
def jobs(cluster: Cluster, namespace: Namespace) -> list[Manifest]:
    """Start many Jobs without GPUs, whose pods run."""
    cluster.create_node("n1")
    template = pod_template(gpu_count=0, spec={"terminationGracePeriodSeconds": 0})
    container = template["spec"]["containers"][0]
    container["resources"] = {}
    for number in range(JOBS):
        namespace.apply(job(f"job-{number:02}", namespace=namespace.name, template=template))
    return namespace.list("batch/v1/Job")


def entries(warehouse: RemoteWarehouse) -> Entries:
    found = Entries(cluster=CLUSTER)
    found.add(warehouse.state_after("action", 0))
    return found


def hands_of(warehouse: RemoteWarehouse, gateway: LiveGateway) -> Hands:
    ledger = Ledger(warehouse, cluster=CLUSTER, clock=SystemClock(), actor="kim")
    reach = Reach(kinds=frozenset({"Job"}), interrupted_after=INTERRUPTED_AFTER)
    return Hands(gateway=gateway, ledger=ledger, clock=SystemClock(), channels=(), reach=reach)


def acts_by_name(found: Entries) -> dict[str, list[Entry]]:
    acts: dict[str, list[Entry]] = {}
    for entry in found.all():
        if not entry.is_undo and entry.outcome is not Outcome.SKIPPED:
            acts.setdefault(entry.target.name, []).append(entry)
    return acts


def begun(warehouse: RemoteWarehouse) -> int:
    """Return how many acts were ever begun."""
    return sum(row["outcome"] == "planned" for row in warehouse.state_after("action", 0))


def wait_for_act(warehouse: RemoteWarehouse, known: int) -> None:
    wait_until(lambda: begun(warehouse) > known, what="a new act", patience_s=PATIENCE_S)


def kill_leaders(group: Replicas, warehouse: RemoteWarehouse) -> int:
    """Kill the leader twenty times once it has begun an act; return how often one was open."""
    interrupted = 0
    for number in range(KILLS):
        known = begun(warehouse)
        wait_for_act(warehouse, known)
        time.sleep(KILL_WITHIN_S * number / KILLS)
        leader = group.leader()
        assert leader is not None
        group.kill(leader)
        interrupted += bool(entries(warehouse).open())
        group.start()
    return interrupted


def end(group: Replicas, warehouse: RemoteWarehouse, gateway: LiveGateway) -> None:
    """Let whoever leads end what is open, stop all in order, and end what was left to others."""
    wait_until(lambda: not entries(warehouse).open(), what="no open act", patience_s=PATIENCE_S)
    group.stop()
    settle_all(hands_of(warehouse, gateway))


def settle_all(hands: Hands) -> None:
    def is_settled() -> bool:
        settle(hands)
        return not hands.ledger.entries().open()

    wait_until(is_settled, what="every act's end", patience_s=PATIENCE_S)


def assert_recorded(own: Namespace, warehouse: RemoteWarehouse) -> set[str]:
    """Check that each suspended Job was suspended once and is in the ledger; return them."""
    acts = acts_by_name(entries(warehouse))
    now = {one["metadata"]["name"]: one for one in own.list("batch/v1/Job")}
    suspended = {name for name, one in now.items() if one["spec"].get("suspend")}
    generations = {name: now[name]["metadata"]["generation"] for name in suspended}
    assert generations == dict.fromkeys(suspended, 2), "each spec was changed once"
    done = {name for name, found in acts.items() if found[-1].outcome is Outcome.DONE}
    assert suspended == done
    assert all(one.before for name in suspended for one in acts[name])
    assert verified(ChainState(), warehouse.state_after("audit", 0)).fault is None
    return suspended


def undo_all(warehouse: RemoteWarehouse, gateway: LiveGateway) -> None:
    hands = hands_of(warehouse, gateway)
    for entry in undoable(hands.ledger.entries().all()):
        assert undo(entry, hands).result in {Undoing.OPEN, Undoing.REFUSED}

    settle_all(hands)


@pytest.mark.timeout(900)
def test_a_leader_killed_twenty_times_acts_once_records_all_and_all_is_undone(
    namespace: Namespace, jobs: list[Manifest], tmp_path: Path
) -> None:
    before = {one["metadata"]["name"]: one["spec"] for one in jobs}
    with remote(tmp_path) as warehouse, live_gateway(namespace.cluster) as gateway:
        with replicas(namespace, str(warehouse._url), tmp_path / "replicas.log") as group:
            interrupted = kill_leaders(group, warehouse)
            end(group, warehouse, gateway)
        assert interrupted > 0
        assert assert_recorded(namespace, warehouse)
        undo_all(warehouse, gateway)
        assert {j["metadata"]["name"]: j["spec"] for j in namespace.list("batch/v1/Job")} == before


@pytest.mark.timeout(300)
def test_an_api_server_killed_in_the_middle_of_acts_changes_nothing_of_that(
    namespace: Namespace, jobs: list[Manifest], tmp_path: Path
) -> None:
    before = {one["metadata"]["name"]: one["spec"] for one in jobs}
    with remote(tmp_path) as warehouse, live_gateway(namespace.cluster) as gateway:
        with replicas(namespace, str(warehouse._url), tmp_path / "replicas.log") as group:
            for _ in range(2):
                wait_for_act(warehouse, begun(warehouse))
                namespace.cluster.stop_api_server(kill=True)
                time.sleep(1.0)
                namespace.cluster.start_api_server()
            namespace.cluster.renew_controllers()
            wait_for_act(warehouse, begun(warehouse))
            end(group, warehouse, gateway)
        assert assert_recorded(namespace, warehouse)
        undo_all(warehouse, gateway)
        assert {j["metadata"]["name"]: j["spec"] for j in namespace.list("batch/v1/Job")} == before
