"""Memory and time for a cluster of 20,000 pods, and the ratio to the client's typed models.

A real API server holds the pods; two fresh processes read them in this run: Steward's feed of all
kinds (and everything a collector imports), and ``CoreV1Api.list_pod_for_all_namespaces`` of the
``kubernetes`` package. Needs the programs of ``make cluster-binaries``.
"""

from __future__ import annotations

import argparse
import base64
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from tests.support.cluster import Cluster

ROOT: Final = Path(__file__).resolve().parents[1]
POD_COUNT: Final = 20_000
LIMIT_BYTES: Final = 400 * 10**6
NAMESPACES: Final = 40
PAGE_SIZE: Final = 500
WRITERS: Final = 8
STARTED_AT: Final = "2026-05-04T12:00:00Z"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What one process needed to know all pods."""

    pod_count: int
    wall_s: float
    cpu_s: float
    resident_bytes: int
    peak_bytes: int


def pod_manifest(number: int) -> dict[str, Any]:
    """Return a training pod as operators make it, with what people hang on it."""
    job = f"train-{number // 8:05}"
    name = f"{job}-worker-{number % 8}"
    environment = [{"name": f"NCCL_OPTION_{n}", "value": "value of an option"} for n in range(12)]
    container = {
        "name": "main",
        "image": "registry.invalid/research/train:2026.05",
        "command": ["torchrun", "--nnodes=8", "--nproc-per-node=8", "train.py"],
        "env": environment,
        "resources": {
            "limits": {"cpu": "16", "memory": "128Gi", "nvidia.com/gpu": "8"},
            "requests": {"cpu": "16", "memory": "128Gi", "nvidia.com/gpu": "8"},
        },
        "volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}],
    }
    labels = {
        "app.kubernetes.io/name": "train",
        "team": f"team-{number % 25}",
        "job-name": job,
        "training.kubeflow.org/job-name": job,
        "training.kubeflow.org/replica-index": str(number % 8),
    }
    owner = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "name": job,
        "uid": f"00000000-0000-0000-0000-{number // 8:012}",
        "controller": True,
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "labels": labels,
            "annotations": {"example.com/note": "x" * 200},
            "ownerReferences": [owner],
        },
        "spec": {
            "schedulingGates": [{"name": "example.com/benchmark"}],
            "containers": [container],
            "volumes": [{"name": "scratch", "emptyDir": {}}],
            "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
        },
    }


def pod_status() -> dict[str, Any]:
    """Return the status of a pod that runs."""
    names = ("PodScheduled", "Initialized", "ContainersReady", "Ready")
    conditions = [
        {"type": name, "status": "True", "lastTransitionTime": STARTED_AT} for name in names
    ]
    container = {
        "name": "main",
        "image": "registry.invalid/research/train:2026.05",
        "imageID": "registry.invalid/research/train@sha256:" + "0" * 64,
        "containerID": "containerd://" + "0" * 64,
        "ready": True,
        "started": True,
        "restartCount": 0,
        "state": {"running": {"startedAt": STARTED_AT}},
        "lastState": {},
    }
    return {
        "phase": "Running",
        "startTime": STARTED_AT,
        "conditions": conditions,
        "containerStatuses": [container],
    }


def fill(cluster: Cluster, pod_count: int) -> None:
    """Give the cluster its pods: one goes through the API, its like go beside it in the store.

    The API server reads, caches and serves them all the same; creating each through the API takes
    five minutes on two cores.
    """
    import urllib3  # noqa: PLC0415 - only the process that fills needs it

    for name in ("kube-controller-manager", "kube-scheduler"):  # would collect what has no owner
        cluster.programs.stop(name)
    first = pod_manifest(0)
    first["metadata"]["namespace"] = "default"
    made = cluster.client.create(first)
    made = cluster.client.patch(
        "v1/Pod",
        made["metadata"]["name"],
        {"status": pod_status()},
        namespace="default",
        subresource="status",
    )
    store = urllib3.connection_from_url(
        f"http://127.0.0.1:{cluster.ports.etcd}", maxsize=WRITERS, retries=False
    )

    def put(number: int) -> None:
        """Write one pod in a revision of its own, as the API server does."""
        answer = store.request("POST", "/v3/kv/put", body=json.dumps(stored_pod(made, number)))
        if answer.status != 200:
            raise RuntimeError(answer.data.decode())

    with ThreadPoolExecutor(WRITERS) as writers:
        list(writers.map(put, range(1, pod_count)))


def stored_pod(made: dict[str, Any], number: int) -> dict[str, str]:
    """Return key and value of a pod like the one that the API server made."""
    own = pod_manifest(number)["metadata"]
    namespace = f"bench-{number // 8 % NAMESPACES}"
    metadata = {**made["metadata"], **own, "namespace": namespace}
    metadata["uid"] = f"00000000-0000-4000-8000-{number:012}"
    del metadata["resourceVersion"]
    key = f"/registry/pods/{namespace}/{own['name']}"
    value = json.dumps({"kind": "Pod", "apiVersion": "v1", **made, "metadata": metadata})
    return {
        "key": base64.b64encode(key.encode()).decode(),
        "value": base64.b64encode(value.encode()).decode(),
    }


def read_with_steward(kubeconfig: Path) -> int:
    """Follow all kinds until every list is told in rows; return how many pods those are."""
    import collector.collect  # noqa: F401, PLC0415 - a collector has it in memory too
    from collector.lifecycle.lifecycle import Lifecycle  # noqa: PLC0415 - measured
    from collector.sources.kubernetes.access import ApiAccess  # noqa: PLC0415 - measured
    from collector.sources.kubernetes.change import Change  # noqa: PLC0415 - measured
    from collector.sources.kubernetes.credentials import Origin  # noqa: PLC0415 - measured
    from collector.sources.kubernetes.feed import KubernetesFeed  # noqa: PLC0415 - measured
    from collector.sources.kubernetes.resources import RESOURCES  # noqa: PLC0415 - measured
    from steward.clock import SystemClock  # noqa: PLC0415 - measured

    clock = SystemClock()
    feed = KubernetesFeed(ApiAccess(Origin(kubeconfig=kubeconfig)), RESOURCES, clock=clock)
    lifecycle = Lifecycle(cluster="bench")
    stop = threading.Event()
    row_counts: Counter[str] = Counter()

    turn = threading.Lock()

    def on_change(change: Change) -> None:
        with turn:
            row_counts.update(table for table, _ in lifecycle.apply(change).rows)

    def stop_when_told() -> None:
        while not (feed.is_synced and lifecycle.is_settled):
            with turn:
                row_counts.update(table for table, _ in lifecycle.advance(clock.now()).rows)
            stop.wait(0.01)
        stop.set()

    KEPT.extend([feed, lifecycle])
    threading.Thread(target=stop_when_told, daemon=True).start()
    feed.run(stop, on_change)
    return row_counts["pod"]


def read_with_client(kubeconfig: Path) -> int:
    """List the pods page by page into the client's models and keep them, as its informer does."""
    from kubernetes import client, config  # noqa: PLC0415 - measured

    config.load_kube_config(str(kubeconfig))
    api, pods, token = client.CoreV1Api(), [], None
    while token != "":
        page = api.list_pod_for_all_namespaces(limit=PAGE_SIZE, _continue=token)
        pods += page.items
        token = page.metadata._continue or ""  # noqa: SLF001 - its name in the client's models
    KEPT.append(pods)
    return len(pods)


KEPT: Final[list[object]] = []
"""Holds what was read until the memory is measured."""
READERS: Final[dict[str, Callable[[Path], int]]] = {
    "steward": read_with_steward,
    "client": read_with_client,
}


def measure(reader: Callable[[Path], int], kubeconfig: Path) -> Measured:
    """Return what reading needs in this process, imports included."""
    began_s, cpu_began_s = time.perf_counter(), time.process_time()
    pod_count = reader(kubeconfig)
    memory = dict(
        line.split(":", 1) for line in Path("/proc/self/status").read_text("ascii").splitlines()
    )
    return Measured(
        pod_count=pod_count,
        wall_s=time.perf_counter() - began_s,
        cpu_s=time.process_time() - cpu_began_s,
        resident_bytes=int(memory["VmRSS"].split()[0]) * 1024,
        peak_bytes=int(memory["VmHWM"].split()[0]) * 1024,
    )


def measured_apart(reader: str, kubeconfig: Path) -> Measured:
    """Return what reading needs in a fresh process."""
    command = [sys.executable, __file__, "--measure", reader, "--kubeconfig", str(kubeconfig)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)
    return Measured(**json.loads(done.stdout.splitlines()[-1]))


def compare(pod_count: int) -> None:
    """Fill a cluster, read it both ways, print both and the ratios."""
    from tests.support.cluster import ClusterOptions, running_cluster  # noqa: PLC0415 - see main
    from tests.support.cluster_programs import ProgramMissingError  # noqa: PLC0415 - see main

    with tempfile.TemporaryDirectory() as folder:
        try:
            with running_cluster(Path(folder), ClusterOptions(has_kubelets=False)) as cluster:
                began_s = time.perf_counter()
                fill(cluster, pod_count)
                print(f"{pod_count:,} pods created in {time.perf_counter() - began_s:.0f} s")
                results = {name: measured_apart(name, cluster.kubeconfig) for name in READERS}
        except ProgramMissingError as error:
            print(f"not measured: {error}")
            return
    tell(results, pod_count=pod_count)


def tell(results: dict[str, Measured], *, pod_count: int) -> None:
    """Print each process and how they compare.

    Raises:
        SystemExit: not all pods were read, or more memory was needed than is promised.
    """
    for name, one in results.items():
        print(
            f"{name:8} {one.pod_count:,} pods: {one.wall_s:.2f} s, {one.cpu_s:.2f} CPU s, "
            f"resident {one.resident_bytes / 1e6:.0f} MB (peak {one.peak_bytes / 1e6:.0f} MB)"
        )
    ours, theirs = results["steward"], results["client"]
    print(f"CPU ratio {theirs.cpu_s / ours.cpu_s:.1f} (typed models / Steward)")
    print(f"peak memory ratio {theirs.peak_bytes / ours.peak_bytes:.1f} (typed models / Steward)")
    if ours.pod_count != pod_count or theirs.pod_count != pod_count:
        raise SystemExit(f"not all of the {pod_count:,} pods were read")
    if ours.peak_bytes > LIMIT_BYTES:
        raise SystemExit(f"peak memory is above {LIMIT_BYTES / 1e6:.0f} MB")


def main() -> None:
    """Measure one reader in this process, or compare both."""
    sys.path.insert(0, str(ROOT))  # the cluster of the tests
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=POD_COUNT)
    parser.add_argument("--measure", choices=sorted(READERS))
    parser.add_argument("--kubeconfig", type=Path)
    options = parser.parse_args()
    if options.measure is None:
        compare(options.pods)
    else:
        print(json.dumps(asdict(measure(READERS[options.measure], options.kubeconfig))))


if __name__ == "__main__":
    main()
