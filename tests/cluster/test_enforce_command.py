"""The command on a real API server, with the permissions that it prints and no others."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from enforcer import rbac
from enforcer.apply import Result
from enforcer.controller import Controller
from enforcer.entries import Outcome
from enforcer.gateway.live import LiveGateway
from enforcer.gateway.live_access import LiveAccess, Origin
from enforcer.hands import Hands, Reach
from enforcer.ledger import Ledger
from enforcer.notify import EventChannel
from sql.state import open_state
from steward.clock import SystemClock
from steward.errors import DeniedError
from steward.main import main
from tests.support.cluster import Cluster, User
from tests.support.cluster_namespace import Namespace
from tests.support.cluster_objects import job, pod_template
from tests.support.cluster_processes import wait_until
from tests.support.enforce_jobs import IdleJobs
from tests.support.enforce_replica import NoVerdicts
from tests.support.enforced_cluster import Killer, Log

pytestmark = pytest.mark.slow

JOB = "batch/v1/Job"
LEASE_NAME = "steward-enforcer"


def account(cluster: Cluster, name: str, kinds: list[str]) -> User:
    """Return an account with the printed cluster-wide rules, once they are in force."""
    user = cluster.add_user(name, [*rbac.cluster_rules(kinds)])
    gateway = LiveGateway(LiveAccess(Origin(kubeconfig=user.kubeconfig)), is_leading=lambda: True)
    wait_until(
        lambda: gateway.may(verb="list", api_version="v1", kind="Pod", namespace=None),
        what="the account's role to be in force",
    )
    return user


def controller(user: User, namespace: Namespace, data_dir: Path) -> Controller:
    """Return rounds done by an account, on the state that the command opens too."""
    access = LiveAccess(Origin(kubeconfig=user.kubeconfig))
    gateway = LiveGateway(access, is_leading=lambda: True)
    log = Log(open_state(data_dir), Killer())
    ledger = Ledger(log, cluster="default", clock=SystemClock(), actor="replica")
    hands = Hands(
        gateway=gateway,
        ledger=ledger,
        clock=SystemClock(),
        channels=(EventChannel(gateway),),
        reach=Reach(kinds=frozenset({"Job"})),
    )
    seeing = LiveAccess(Origin(kubeconfig=namespace.cluster.kubeconfig))
    sight = IdleJobs(LiveGateway(seeing, is_leading=lambda: False), ledger, namespace.name)
    return Controller(sight=sight, hands=hands, writer=NoVerdicts())


def test_rounds_and_undo_need_the_printed_permissions_only(
    cluster: Cluster,
    namespace: Namespace,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    user = account(cluster, "enforcer-jobs", ["Job"])
    template = pod_template(gpu_count=0)
    namespace.apply(job("idle", namespace=namespace.name, template=template))
    before = namespace.get(JOB, "idle")["spec"]
    own = controller(user, namespace, tmp_path)
    (applied,) = own.round().applied
    assert applied.result is Result.OPEN
    wait_until(
        lambda: own.tend()[0] == () or not own.hands.ledger.entries().open(),
        what="the pods to go",
    )
    (entry,) = own.hands.ledger.entries().all()
    assert entry.outcome is Outcome.DONE
    assert namespace.pods() == []

    monkeypatch.setenv("STEWARD_KUBERNETES_ACCESS", "kubeconfig")
    monkeypatch.setenv("STEWARD_KUBERNETES_KUBECONFIG", str(user.kubeconfig))
    monkeypatch.setenv("STEWARD_ENFORCE_KINDS", "Job")
    place = ("--data-dir", str(tmp_path))
    assert main(["enforce", "list", *place]) == 0
    assert f"Job/{namespace.name}/idle" in capsys.readouterr().out
    assert main(["enforce", "undo", "--action", str(entry.row_id), "--dry-run", *place]) == 0
    assert namespace.get(JOB, "idle")["spec"] != before
    assert main(["enforce", "undo", "--action", str(entry.row_id), *place]) == 0
    assert capsys.readouterr().out.splitlines()[-1].endswith(": done")
    assert namespace.get(JOB, "idle")["spec"] == before
    assert main(["enforce", "undo", "--action", str(entry.row_id), *place]) == 4
    assert main(["audit", "verify", *place]) == 0
    assert main(["enforce", "plan", *place]) == 0


def test_an_account_without_leave_for_a_kind_changes_nothing(
    cluster: Cluster, namespace: Namespace, tmp_path: Path
) -> None:
    user = account(cluster, "enforcer-sees", [])
    template = pod_template(gpu_count=0)
    namespace.apply(job("idle", namespace=namespace.name, template=template))
    own = controller(user, namespace, tmp_path)
    (applied,) = own.round().applied
    assert applied.result is Result.FAILED
    assert namespace.get(JOB, "idle")["spec"]["suspend"] is False
    with pytest.raises(DeniedError):
        own.hands.gateway.list(api_version="v1", kind="Secret", namespace=None)


def test_the_doctor_says_what_is_missing(
    cluster: Cluster,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    user = account(cluster, "enforcer-half", ["Job"])
    monkeypatch.setenv("STEWARD_KUBERNETES_ACCESS", "kubeconfig")
    monkeypatch.setenv("STEWARD_KUBERNETES_KUBECONFIG", str(user.kubeconfig))
    monkeypatch.setenv("STEWARD_ENFORCE_KINDS", "Job,Deployment")
    assert main(["enforce", "doctor", "--data-dir", str(tmp_path)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert "ok  batch/v1 Job: can act: reclaimed and restored" in lines
    assert any(line.startswith("NO  apps/v1 Deployment: cannot act (patch") for line in lines)


def lease_rules() -> list[dict[str, object]]:
    """Return the printed rules for the lease."""
    roles = [
        one
        for one in rbac.manifests([], namespace="any", lease_name=LEASE_NAME)
        if one["kind"] == "Role"
    ]
    rules = roles[0]["rules"]
    assert isinstance(rules, list)
    return rules


@pytest.fixture
def environ(cluster: Cluster, namespace: Namespace, tmp_path: Path) -> dict[str, str]:
    """Return settings of a replica with an account that has the printed permissions."""
    rules = [*rbac.cluster_rules([]), *lease_rules()]
    user = cluster.add_user(f"enforcer-{namespace.name}", rules)
    return {
        "STEWARD_DATA_DIR": str(tmp_path),
        "STEWARD_KUBERNETES_ACCESS": "kubeconfig",
        "STEWARD_KUBERNETES_KUBECONFIG": str(user.kubeconfig),
        "STEWARD_ENFORCE_LEASE_NAMESPACE": namespace.name,
        "STEWARD_ENFORCE_METRICS_PORT": "0",
        "STEWARD_ENFORCE_INTERVAL_S": "1",
    }


def holder(namespace: Namespace) -> str | None:
    leases = namespace.list("coordination.k8s.io/v1/Lease")
    return leases[0]["spec"].get("holderIdentity") if leases else None


def test_one_round_takes_the_lease_and_lets_it_go(
    namespace: Namespace,
    environ: dict[str, str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert main(["enforce", "run", "--dry-run"]) == 0
    assert holder(namespace) is None
    assert main(["enforce", "run", "--once"]) == 0
    assert holder(namespace) == ""
    assert capsys.readouterr().out.count("0 workloads\nnothing would be done\n") == 2


def test_a_replica_leads_does_rounds_and_ends_in_order(
    namespace: Namespace, environ: dict[str, str], tmp_path: Path
) -> None:
    log = tmp_path / "log"
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "steward", "enforce", "run"],
            env={**os.environ, **environ},
            stderr=errors,
        )
    try:
        wait_until(lambda: bool(holder(namespace)), what="a leader", patience_s=60.0)
        port = wait_for_port(log)
        page = f"http://127.0.0.1:{port}/metrics"
        wait_until(
            lambda: 'rounds_total{outcome="done"}' in httpx.get(page).text,
            what="a round",
            patience_s=60.0,
        )
        assert "steward_enforce_leading 1.0" in httpx.get(page).text
        process.terminate()
        assert process.wait(timeout=30) == 0
    finally:
        process.kill()
        process.wait()
    assert holder(namespace) == ""


def wait_for_port(log: Path) -> str:
    def found() -> re.Match[str] | None:
        return re.search(r"http://127\.0\.0\.1:(\d+)/metrics", log.read_text(encoding="utf-8"))

    wait_until(lambda: found() is not None, what="the address of the metrics", patience_s=60.0)
    match = found()
    assert match is not None
    return match[1]
