"""``steward collect --kubernetes`` beside a real cluster whose API server, and which itself, dies.

At the end the warehouse is compared with the server's own list: nothing is lost, nothing doubled.
"""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from sql.client import connect
from steward.errors import StewardError
from tests.support.cluster import Cluster
from tests.support.cluster_client import Manifests
from tests.support.cluster_namespace import Namespace
from tests.support.cluster_objects import job, pod_template
from tests.support.collector_process import RunningSteward, free_port, running_steward
from tests.support.exporter_server import Answer, exporter_server

pytestmark = pytest.mark.slow

HEAD = "# HELP DCGM_FI_DEV_GPU_UTIL busy\n# TYPE DCGM_FI_DEV_GPU_UTIL gauge\n"
POD_ROWS = "select pod_uid, phase from pod where namespace = '{name}' order by observed_at"
TRANSITIONS = """
select workload_uid, pod_uid, attempt, transition, occurred_at
from workload_transition
where workload_uid in (select workload_uid from pod where namespace = '{name}')
"""
CONDITIONS = """
select object_uid, condition, status, occurred_at
from condition_change where kind = 'Pod' and namespace = '{name}'
"""
ALLOCATIONS = """
select device_uuid, pod, pod_uid, started_at, ended_at, workload_class, attribution_source
from allocation where namespace = '{name}'
qualify row_number() over (
    partition by device_uuid, pod_uid, started_at order by observed_at desc, ended_at nulls last
) = 1
order by device_uuid, started_at
"""


class Asked:
    """A warehouse that is asked, and may not be there yet."""

    def __init__(self, port: int) -> None:
        """Ask nothing yet."""
        self.url = f"http://127.0.0.1:{port}"

    def rows(self, statement: str, **words: str) -> list[dict[str, object]]:
        with closing(connect(self.url)) as warehouse:
            return warehouse.sql(statement.format(**words)).to_pylist()

    def is_there(self) -> bool:
        try:
            self.rows("select 1 as n")
        except StewardError:
            return False
        return True


@contextmanager
def warehouse(folder: Path) -> Iterator[Asked]:
    port = free_port()
    arguments = ("warehouse", "--data-dir", str(folder / "owner"), "--port", str(port))
    with running_steward(*arguments, cwd=folder, name="warehouse") as running:
        asked = Asked(port)
        running.wait_for(asked.is_there)
        yield asked


@contextmanager
def collector(
    folder: Path, asked: Asked, cluster: Cluster, *scrape: str, name: str
) -> Iterator[RunningSteward]:
    arguments = ["collect", "--kubernetes", "--kubeconfig", str(cluster.kubeconfig)]
    arguments += ["--interval-s", "0.5", "--data-dir", str(folder)]
    arguments += ["--warehouse-url", asked.url]
    arguments += ["--scrape", *scrape] if scrape else []
    with running_steward(*arguments, cwd=folder, name=name) as running:
        yield running


def by_uid(namespace: Namespace) -> dict[str, str]:
    """Return the phase of each pod that the server has."""
    return {one["metadata"]["uid"]: one["status"]["phase"] for one in namespace.pods()}


def latest(asked: Asked, namespace: Namespace) -> dict[object, object]:
    """Return the phase of each pod as last stored."""
    return {row["pod_uid"]: row["phase"] for row in asked.rows(POD_ROWS, name=namespace.name)}


def wait_until_same(running: RunningSteward, asked: Asked, namespace: Namespace) -> None:
    running.wait_for(lambda: latest(asked, namespace) == by_uid(namespace))


def train(namespace: Namespace, name: str, *, pod_count: int) -> None:
    template = pod_template(gpu_count=1)
    namespace.apply(job(name, namespace=namespace.name, pod_count=pod_count, template=template))


def test_nothing_is_lost_and_nothing_doubled(
    cluster: Cluster, namespace: Namespace, tmp_path: Path
) -> None:
    cluster.create_node("n1", gpu_count=8)
    with warehouse(tmp_path) as asked:
        with collector(tmp_path, asked, cluster, name="first") as first:
            train(namespace, "before", pod_count=3)
            namespace.wait_for_pods(3, phase="Running")
            wait_until_same(first, asked, namespace)
            cluster.restart_api_server(kill=True)
            train(namespace, "after-restart", pod_count=2)
            namespace.wait_for_pods(5, phase="Running")
            wait_until_same(first, asked, namespace)
            cluster.expire_history()
            train(namespace, "after-gone", pod_count=2)
            namespace.wait_for_pods(7, phase="Running")
            wait_until_same(first, asked, namespace)
            first.stop(signal.SIGKILL)
        train(namespace, "unwatched", pod_count=1)
        (*_, last) = namespace.wait_for_pods(8, phase="Running")
        namespace.finish_pod(last["metadata"]["name"])
        namespace.wait_for_pods(7, phase="Running")
        with collector(tmp_path, asked, cluster, name="second") as second:
            wait_until_same(second, asked, namespace)
            check_nothing_twice(asked, namespace)
            check_the_servers_list(asked, namespace)
            assert second.stop() == 0


def jobs(namespace: Namespace) -> Manifests:
    return namespace.list("batch/v1/Job")


def check_nothing_twice(asked: Asked, namespace: Namespace) -> None:
    for statement in (TRANSITIONS, CONDITIONS):
        rows = Counter(tuple(row.values()) for row in asked.rows(statement, name=namespace.name))
        assert rows
        assert {row: count for row, count in rows.items() if count != 1} == {}


def check_the_servers_list(asked: Asked, namespace: Namespace) -> None:
    stored = asked.rows(TRANSITIONS, name=namespace.name)
    created = Counter(row["workload_uid"] for row in stored if row["transition"] == "created")
    assert created == dict.fromkeys((one["metadata"]["uid"] for one in jobs(namespace)), 1)
    finished = Counter(row["workload_uid"] for row in stored if row["transition"] == "finished")
    over = [one["metadata"]["uid"] for one in jobs(namespace) if one["status"].get("succeeded")]
    assert finished == dict.fromkeys(over, 1)
    for one in namespace.pods():
        uid = one["metadata"]["uid"]
        found = {row["transition"] for row in stored if row["pod_uid"] == uid}
        expected = {"scheduled", "started"}
        if one["status"]["phase"] == "Running":
            expected |= {"ready"}
        assert expected <= found, one["metadata"]["name"]
        conditions = {
            (row["condition"], row["status"])
            for row in asked.rows(CONDITIONS, name=namespace.name)
            if row["object_uid"] == uid
        }
        told = {(c["type"], c["status"]) for c in one["status"]["conditions"]}
        assert told <= conditions, one["metadata"]["name"]


def holder_text(holders: dict[int, str], *, namespace: str) -> bytes:
    """Return a dcgm-exporter text of eight GPUs, some held."""
    lines = [
        f'DCGM_FI_DEV_GPU_UTIL{{gpu="{gpu}",UUID="GPU-a{gpu}",Hostname="n1",'
        f'namespace="{namespace if gpu in holders else ""}",pod="{holders.get(gpu, "")}",'
        f'container="{"main" if gpu in holders else ""}"}} {50 + gpu}'
        for gpu in range(8)
    ]
    return (HEAD + "\n".join(lines) + "\n").encode()


def test_an_allocation_has_its_owner_and_ends_with_its_container(
    cluster: Cluster, namespace: Namespace, tmp_path: Path
) -> None:
    cluster.create_node("n1", gpu_count=8)
    with warehouse(tmp_path) as asked, exporter_server() as exporter:
        exporter.answers["/metrics"] = Answer(body=holder_text({}, namespace=namespace.name))
        with collector(tmp_path, asked, cluster, exporter.url(), name="only") as running:
            train(namespace, "train", pod_count=1)
            (pod,) = namespace.wait_for_pods(1, phase="Running")
            name = pod["metadata"]["name"]
            text = holder_text({3: name}, namespace=namespace.name)
            exporter.answers["/metrics"] = Answer(body=text)
            (held,) = waited(running, asked, namespace, lambda row: row["pod_uid"] is not None)
            assert (held["device_uuid"], held["pod"]) == ("GPU-a3", name)
            assert (held["workload_class"], held["ended_at"]) == ("training", None)
            namespace.finish_pod(name)
            (ended,) = namespace.wait_for_pods(1, phase="Succeeded")
            (closed,) = waited(running, asked, namespace, lambda row: row["ended_at"] is not None)
            assert running.stop() == 0
    assert closed["started_at"] == held["started_at"]
    state = ended["status"]["containerStatuses"][0]["state"]["terminated"]
    assert closed["ended_at"].strftime("%Y-%m-%dT%H:%M:%SZ") == state["finishedAt"]  # type: ignore[attr-defined]  # rows are untyped


def waited(
    running: RunningSteward,
    asked: Asked,
    namespace: Namespace,
    condition: Callable[[dict[str, object]], bool],
) -> list[dict[str, object]]:
    """Return the namespace's allocations once there is one for which the condition holds."""
    found: list[dict[str, object]] = []

    def is_so() -> bool:
        found[:] = asked.rows(ALLOCATIONS, name=namespace.name)
        return any(map(condition, found))

    running.wait_for(is_so)
    return found
