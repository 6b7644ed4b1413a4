"""The quota file and the desk, through the real command, against Kueue and the API server."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cluster.test_cluster_kueue import is_admitted
from tests.support.cluster_client import Manifest
from tests.support.cluster_kueue import API, QUEUE_LABEL, Kueue
from tests.support.cluster_namespace import Namespace
from tests.support.cluster_objects import GPU, job, pod_template
from tests.support.cluster_processes import wait_until

pytestmark = pytest.mark.slow
QUEUE = f"{API}/ClusterQueue"


@dataclass(frozen=True)
class Desk:
    """Somebody's terminal: the command, a warehouse folder and a kubeconfig."""

    folder: Path
    kubeconfig: Path

    @property
    def environ(self) -> dict[str, str]:
        """Return what the command is told."""
        return {
            "PATH": "/usr/bin:/bin",
            "HOME": str(self.folder),
            "STEWARD_DATA_DIR": str(self.folder / "data"),
            "STEWARD_CLUSTER": "prod",
            "STEWARD_KUBERNETES_ACCESS": "kubeconfig",
            "STEWARD_KUBERNETES_KUBECONFIG": str(self.kubeconfig),
        }

    def run(self, *words: str) -> tuple[int, str]:
        """Return exit code and what was printed."""
        done = subprocess.run(
            [sys.executable, "-m", "steward", *words],
            env=self.environ,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        return done.returncode, done.stdout + done.stderr


def quota_text(queue: str, *, guaranteed: int, team: str = "vision") -> str:
    return f"""
cluster: prod
scheduler: kueue
models: [{{gpu_model: H100, flavor: default, capacity: 64}}]
teams:
  - team: {team}
    queue: {queue}
    gpus: [{{gpu_model: H100, guaranteed: {guaranteed}, borrow: 0}}]
"""


def nominal(kueue: Kueue, name: str) -> str:
    queue = kueue.cluster.client.get(QUEUE, name)
    resources = queue["spec"]["resourceGroups"][0]["flavors"][0]["resources"]
    return str(next(one["nominalQuota"] for one in resources if one["name"] == GPU))


def queued(own: Namespace, name: str) -> Manifest:
    template = pod_template(gpu_count=4)
    labels = {QUEUE_LABEL: "team"}
    return own.apply(job(name, namespace=own.name, template=template, labels=labels))


def test_quotas_are_kept_to_the_file_granted_for_a_while_and_undone(
    kueue: Kueue, kueue_namespace: Namespace, tmp_path: Path
) -> None:
    own = kueue_namespace
    queue = with_queue(kueue, own)
    desk = Desk(tmp_path, kueue.cluster.kubeconfig)
    path = tmp_path / "quota.yaml"
    path.write_text(quota_text(queue, guaranteed=8))
    before = kueue.cluster.client.get(QUEUE, queue)["spec"]
    code, told = desk.run("quota", "plan", str(path), "--format", "json")
    assert (code, differing(told)) == (
        0,
        {"nominalQuota": ("4", "8"), "borrowingLimit": (None, "0")},
    )
    code, told = desk.run("quota", "apply", str(path), "--dry-run")
    assert (code, nominal(kueue, queue)) == (0, "4"), told
    check_more_quota_starts_more(kueue, own, desk, path)
    check_a_grant_holds_and_ends(kueue, own, desk, path)
    code, told = desk.run("enforce", "undo", "--all")
    assert code == 0, told
    assert kueue.cluster.client.get(QUEUE, queue)["spec"] == before
    code, told = desk.run("audit", "verify")
    assert code == 0, told


def with_queue(kueue: Kueue, own: Namespace) -> str:
    """Make a ClusterQueue of four GPUs in a cohort; return its name."""
    queue = f"{own.name}-quota"
    kueue.cluster.create_node("node")
    kueue.add_flavor()
    kueue.add_cluster_queue(queue, gpu_count=4, spec={"cohortName": f"{own.name}-cohort"})
    kueue.add_local_queue("team", namespace=own.name, cluster_queue=queue)
    return queue


def check_more_quota_starts_more(kueue: Kueue, own: Namespace, desk: Desk, path: Path) -> None:
    """Write eight GPUs where four were: a second job of four starts, a third does not."""
    queued(own, "first")
    own.wait_until(lambda: admitted(kueue, own, "first"), what="the first job")
    queued(own, "second")
    assert not admitted(kueue, own, "second")
    code, told = desk.run("quota", "apply", str(path))
    assert (code, nominal(kueue, f"{own.name}-quota")) == (0, "8"), told
    own.wait_until(lambda: admitted(kueue, own, "second"), what="the second job by more quota")
    queued(own, "third")
    assert not admitted(kueue, own, "third")
    assert desk.run("quota", "apply", str(path)) == (0, "no quota differs\n")


def check_a_grant_holds_and_ends(kueue: Kueue, own: Namespace, desk: Desk, path: Path) -> None:
    """Ask for four more, agree, carry out: the third job starts; in time they are taken back."""
    queue = f"{own.name}-quota"
    asked = ("--team", "vision", "--model", "H100", "--gpus", "4", "--for", "45s")
    desk.run("request", "quota", *asked, "--reason", "a deadline", "--requester", "ada")
    assert desk.run("request", "approve", "1", "--as", "bob") == (0, "request 1 is granted\n")
    settle = ("request", "settle", "--quota", str(path))
    assert desk.run(*settle) == (0, "request 1 is applied\n")
    assert nominal(kueue, queue) == "12"
    own.wait_until(lambda: admitted(kueue, own, "third"), what="the third job by the grant")
    desk.run("request", "quota", *asked[:-1], "2h", "--reason", "more", "--requester", "ada")
    code, told = desk.run("request", "show", "2", "--quota", str(path))
    assert (code, "guaranteed H100" in told) == (0, True), told
    assert "granted before: request 1" in told
    wait_until(lambda: "taken_back" in desk.run(*settle)[1], what="the grant to end")
    assert nominal(kueue, queue) == "8"


def admitted(kueue: Kueue, own: Namespace, name: str) -> bool:
    return is_admitted(kueue.workload_of(name, namespace=own.name))


def differing(told: str) -> dict[str, tuple[str | None, str | None]]:
    found = json.loads(told)
    assert found["troubles"] == []
    return {one["field"]: (one["live"], one["wanted"]) for one in found["differences"]}


def test_a_queue_that_is_not_there_and_a_file_of_another_cluster_are_told(
    kueue: Kueue, tmp_path: Path
) -> None:
    desk = Desk(tmp_path, kueue.cluster.kubeconfig)
    path = tmp_path / "quota.yaml"
    path.write_text(quota_text("nowhere", guaranteed=8))
    code, told = desk.run("quota", "apply", str(path))
    assert (code, "there is no ClusterQueue 'nowhere'" in told) == (1, True)
    path.write_text(path.read_text().replace("cluster: prod", "cluster: other"))
    code, told = desk.run("quota", "apply", str(path))
    assert (code, "is of cluster 'other'" in told) == (2, True)
