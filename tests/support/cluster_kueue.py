"""Kueue for real, as a process beside the test cluster.

Its definitions and webhooks come unmodified from its Go module, but for where the API server
reaches it: an address on loopback instead of a service. It reads the certificate of its metrics
from a fixed folder under /etc, so this needs root.
"""

from __future__ import annotations

import functools
import json
import re
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from tests.support.cluster import Cluster
from tests.support.cluster_client import Manifest, Manifests
from tests.support.cluster_objects import GPU
from tests.support.cluster_processes import START_PATIENCE_S, answers, free_ports, wait_until
from tests.support.cluster_programs import module_files, program
from tests.support.cluster_webhooks import (
    Reached,
    certificates_in,
    make_certificate,
    register_webhooks,
)

API = "kueue.x-k8s.io/v1beta2"
WORKLOAD = f"{API}/Workload"
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
METRICS_CERTIFICATES = Path("/etc/kueue/metrics/certs")
FRAMEWORKS = ("batch/job", "pod", "deployment", "statefulset")
CRD = "apiextensions.k8s.io/v1/CustomResourceDefinition"
COVERED = {"cpu": "1k", "memory": "1Pi"}
"""Quota beside GPUs, so large that only GPUs are short."""


@dataclass(frozen=True, slots=True)
class Kueue:
    """The running controller of one cluster."""

    cluster: Cluster
    webhook_port: int
    health_port: int
    metrics_port: int
    frameworks: tuple[str, ...] = FRAMEWORKS

    def start(self) -> None:
        """Define Kueue's kinds, start the controller, then send admissions to its webhooks.

        Raises:
            ProgramFailedError: it did not start; shows its log.
        """
        folder = self._folder()
        reached = Reached(self.webhook_port, folder / "tls.crt")
        self._define_kinds(reached)
        controller = self.cluster.programs.start(
            "kueue",
            program("kueue"),
            f"--config={folder / 'config.json'}",
            f"--kubeconfig={self.cluster.kubeconfig}",
            "--feature-gates=VisibilityOnDemand=false",
            environment={"POD_NAMESPACE": "kueue-system"},
        )
        controller.wait_ready(self._is_ready, patience_s=START_PATIENCE_S)
        self._send_admissions(reached)

    def add_flavor(self, name: str = "default", labels: dict[str, str] | None = None) -> None:
        """Create a ResourceFlavor: nodes with these labels."""
        spec = {"nodeLabels": labels} if labels else {}
        self.cluster.client.apply(_object("ResourceFlavor", name, spec))

    def add_cluster_queue(
        self, name: str, *, gpu_count: int, flavor: str = "default", spec: Manifest | None = None
    ) -> None:
        """Create a ClusterQueue with this GPU quota; ``spec`` adds (cohort, preemption, ...)."""
        quotas = {**COVERED, GPU: str(gpu_count)}
        group = {
            "coveredResources": list(quotas),
            "flavors": [
                {
                    "name": flavor,
                    "resources": [{"name": n, "nominalQuota": q} for n, q in quotas.items()],
                }
            ],
        }
        whole = {"namespaceSelector": {}, "resourceGroups": [group], **(spec or {})}
        self.cluster.client.apply(_object("ClusterQueue", name, whole))

    def add_local_queue(self, name: str, *, namespace: str, cluster_queue: str) -> None:
        """Create a LocalQueue that leads to a ClusterQueue."""
        queue = _object("LocalQueue", name, {"clusterQueue": cluster_queue})
        self.cluster.client.apply(queue, namespace=namespace)

    def workload_of(self, job: str, *, namespace: str) -> Manifest:
        """Return the Workload that Kueue made for a Job, once there is one."""
        found: Manifests = []

        def is_there() -> bool:
            all_of_it = self.cluster.client.list(WORKLOAD, namespace=namespace)
            found[:] = [w for w in all_of_it if w["metadata"]["ownerReferences"][0]["name"] == job]
            return bool(found)

        wait_until(is_there, what=f"the Workload of Job {job}")
        return found[0]

    def set_active(self, workload: Manifest, *, is_active: bool) -> None:
        """Let a Workload run (or wait for it), or take its place away."""
        metadata = workload["metadata"]
        change = {"spec": {"active": is_active}}
        self.cluster.client.patch(
            WORKLOAD, metadata["name"], change, namespace=metadata["namespace"]
        )

    def _define_kinds(self, reached: Reached) -> None:
        client = self.cluster.client
        folder = module_files("kueue", "components") / "crd"
        files = sorted((folder / "bases").glob("*.yaml"))
        converted = (folder / "kustomization.yaml").read_text(encoding="utf-8")
        names = []
        for path in files:
            text = path.read_text(encoding="utf-8")
            group, plural = path.stem.split("_")
            if f"\n- path: patches/webhook_in_{plural}.yaml" in converted:
                text = reached.with_conversion(text)
            client.apply_text(CRD, f"{plural}.{group}", text)
            names.append(re.findall(r"^    kind: (\w+)$", text, re.MULTILINE)[0])
        for name in names:
            wait_until(functools.partial(client.knows, f"{API}/{name}"), what=name)
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kueue-system"}}
        client.apply(namespace)

    def _folder(self) -> Path:
        folder = self.cluster.folder / "kueue"
        folder.mkdir()
        make_certificate(folder)
        config = {
            "apiVersion": "config.kueue.x-k8s.io/v1beta2",
            "kind": "Configuration",
            "namespace": "kueue-system",
            "health": {"healthProbeBindAddress": f"127.0.0.1:{self.health_port}"},
            "metrics": {"bindAddress": f"127.0.0.1:{self.metrics_port}"},
            "webhook": {"host": "127.0.0.1", "port": self.webhook_port, "certDir": str(folder)},
            "leaderElection": {"leaderElect": False},
            "internalCertManagement": {"enable": False},
            "clientConnection": {"qps": 500, "burst": 500},
            "integrations": {"frameworks": list(self.frameworks)},
        }
        (folder / "config.json").write_text(json.dumps(config), encoding="ascii")
        return folder

    def _is_ready(self) -> bool:
        return answers(f"http://127.0.0.1:{self.health_port}/readyz")

    def _send_admissions(self, reached: Reached) -> None:
        """Register Kueue's webhooks, on loopback."""
        path = module_files("kueue", "components") / "webhook" / "manifests.yaml"
        register_webhooks(self.cluster.client, path, reached)


def _object(kind: str, name: str, spec: Manifest) -> Manifest:
    return {"apiVersion": API, "kind": kind, "metadata": {"name": name}, "spec": spec}


def metrics_certificates() -> AbstractContextManager[None]:
    """Have the certificate that Kueue reads from a fixed folder, which needs root."""
    return certificates_in(METRICS_CERTIFICATES)


def started_kueue(cluster: Cluster, *, frameworks: tuple[str, ...] = FRAMEWORKS) -> Kueue:
    """Start Kueue for a cluster, with which it stops; needs ``metrics_certificates`` around it.

    Raises:
        ProgramMissingError: it is not built.
        ProgramFailedError: it did not start; shows its log.
    """
    kueue = Kueue(cluster, *free_ports(3), frameworks)
    kueue.start()
    return kueue
