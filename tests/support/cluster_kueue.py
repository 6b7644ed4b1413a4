"""Kueue for real, as a process beside the test cluster.

Its definitions and webhooks come unmodified from its Go module, but for where the API server
reaches it: an address on loopback instead of a service. It reads the certificate of its metrics
from a fixed folder under /etc, so this needs root.
"""

from __future__ import annotations

import base64
import functools
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.cluster import Cluster, answers
from tests.support.cluster_client import Manifest, Manifests
from tests.support.cluster_objects import GPU
from tests.support.cluster_processes import START_PATIENCE_S, free_ports, wait_until
from tests.support.cluster_programs import (
    ProgramMissingError,
    module_files,
    program,
    require_openssl,
)

API = "kueue.x-k8s.io/v1beta2"
WORKLOAD = f"{API}/Workload"
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
METRICS_CERTIFICATES = Path("/etc/kueue/metrics/certs")
CRD = "apiextensions.k8s.io/v1/CustomResourceDefinition"
SERVICE = re.compile(
    r"service:\n\s+name: webhook-service\n\s+namespace: system\n\s+path: (?P<path>\S+)"
)
COVERED = {"cpu": "1k", "memory": "1Pi"}
"""Quota beside GPUs, so large that only GPUs are short."""


@dataclass(frozen=True, slots=True)
class Kueue:
    """The running controller of one cluster."""

    cluster: Cluster
    webhook_port: int
    health_port: int
    metrics_port: int

    def start(self) -> None:
        """Define Kueue's kinds, start the controller, then send admissions to its webhooks.

        Raises:
            ProgramFailedError: it did not start; shows its log.
        """
        folder = self._folder()
        reached = _Reached(self.webhook_port, folder / "tls.crt")
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

    def _define_kinds(self, reached: _Reached) -> None:
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
        _make_certificate(folder)
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
            "integrations": {"frameworks": ["batch/job", "pod", "deployment", "statefulset"]},
        }
        (folder / "config.json").write_text(json.dumps(config), encoding="ascii")
        return folder

    def _is_ready(self) -> bool:
        return answers(f"http://127.0.0.1:{self.health_port}/readyz")

    def _send_admissions(self, reached: _Reached) -> None:
        """Register Kueue's webhooks, on loopback."""
        path = module_files("kueue", "components") / "webhook" / "manifests.yaml"
        for text in reached.instead_of_service(path.read_text(encoding="utf-8")).split("\n---\n"):
            kind = re.findall(r"^kind: (\w+)$", text, re.MULTILINE)[0]
            name = re.findall(r"^  name: (\S+)$", text, re.MULTILINE)[0]
            self.cluster.client.apply_text(f"admissionregistration.k8s.io/v1/{kind}", name, text)


@dataclass(frozen=True, slots=True)
class _Reached:
    """How the API server reaches Kueue's webhooks."""

    port: int
    certificate: Path

    def instead_of_service(self, text: str) -> str:
        """Return webhook definitions with the address where they name a service."""
        return SERVICE.sub(lambda match: self._client_config(match["path"]), text)

    def with_conversion(self, text: str) -> str:
        """Return a kind's definition with the conversion of its older versions."""
        conversion = (
            "spec:\n  conversion:\n    strategy: Webhook\n    webhook:\n"
            "      conversionReviewVersions: [v1]\n      clientConfig:\n"
            f"        {self._client_config('/convert', indent=8)}\n"
        )
        return text.replace("spec:\n", conversion, 1)

    def _client_config(self, path: str, *, indent: int = 4) -> str:
        bundle = base64.b64encode(self.certificate.read_bytes()).decode("ascii")
        address = f"https://127.0.0.1:{self.port}{path}"
        return f"url: {address}\n{' ' * indent}caBundle: {bundle}"


def _object(kind: str, name: str, spec: Manifest) -> Manifest:
    return {"apiVersion": API, "kind": kind, "metadata": {"name": name}, "spec": spec}


def _make_certificate(folder: Path) -> None:
    """Make a key and a certificate for 127.0.0.1 that is its own authority."""
    command = [
        require_openssl(), "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
        "-subj", "/CN=kueue", "-addext", "subjectAltName=IP:127.0.0.1",
        "-keyout", str(folder / "tls.key"), "-out", str(folder / "tls.crt"),
    ]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True)


@contextmanager
def metrics_certificates() -> Iterator[None]:
    """Have a certificate where Kueue insists on one; leave nothing behind that was not there.

    Raises:
        ProgramMissingError: it is not there and only root could put it there.
    """
    if (METRICS_CERTIFICATES / "tls.crt").exists():
        yield
        return
    if os.geteuid() != 0:
        raise ProgramMissingError(
            f"Kueue reads {METRICS_CERTIFICATES}/tls.crt and tls.key: run as root or put them there"
        )
    top = next(
        p
        for p in (*reversed(METRICS_CERTIFICATES.parents[:-2]), METRICS_CERTIFICATES)
        if not p.exists()
    )
    METRICS_CERTIFICATES.mkdir(parents=True)
    try:
        _make_certificate(METRICS_CERTIFICATES)
        yield
    finally:
        shutil.rmtree(top)


def started_kueue(cluster: Cluster) -> Kueue:
    """Start Kueue for a cluster, with which it stops; needs ``metrics_certificates`` around it.

    Raises:
        ProgramMissingError: it is not built.
        ProgramFailedError: it did not start; shows its log.
    """
    kueue = Kueue(cluster, *free_ports(3))
    kueue.start()
    return kueue
