"""JobSet, KubeRay and the Kubeflow training operator for real, as processes beside the cluster.

Their definitions come unmodified from their Go modules. JobSet's webhooks are registered, since its
controller relies on their defaults; the training operator's only validate, and are left out.
"""

from __future__ import annotations

import functools
import json
import re
from contextlib import AbstractContextManager
from pathlib import Path

from tests.support.cluster import Cluster
from tests.support.cluster_client import Manifest
from tests.support.cluster_processes import START_PATIENCE_S, answers, free_ports, wait_until
from tests.support.cluster_programs import module_files, program
from tests.support.cluster_webhooks import (
    Reached,
    certificates_in,
    make_certificate,
    register_webhooks,
)

CRD = "apiextensions.k8s.io/v1/CustomResourceDefinition"
TRAINING_CERTIFICATES = Path("/tmp/k8s-webhook-server/serving-certs")  # noqa: S108 - fixed there
TRAINING_SPACE = "kubeflow"
QUEUED_FRAMEWORKS = (
    "batch/job",
    "jobset.x-k8s.io/jobset",
    "kubeflow.org/pytorchjob",
    "ray.io/raycluster",
)
"""What Kueue queues beside these operators."""


def training_certificates() -> AbstractContextManager[None]:
    """Have the certificate that the training operator waits for in a fixed folder."""
    return certificates_in(TRAINING_CERTIFICATES)


def start_operators(cluster: Cluster) -> None:
    """Start all three, their kinds being defined; they stop with the cluster.

    Needs ``training_certificates`` around it.

    Raises:
        ProgramMissingError: one is not built.
        ProgramFailedError: one did not start; shows its log.
    """
    start_job_set(cluster)
    start_kuberay(cluster)
    start_training(cluster)


def define_operator_kinds(cluster: Cluster) -> None:
    """Define the kinds of all three; return once all are served."""
    folders = (
        module_files("jobset", "components") / "crd" / "bases",
        module_files("kuberay", "crd"),
        module_files("training", "crds"),
    )
    for folder in folders:
        names = [
            name for path in sorted(folder.glob("*_*.yaml")) for name in _define(cluster, path)
        ]
        for name in names:
            wait_until(functools.partial(cluster.client.knows, name), what=name)


def start_job_set(cluster: Cluster) -> None:
    """Start JobSet, then send admissions to its webhooks."""
    webhook_port, health_port = free_ports(2)
    folder = cluster.folder / "jobset"
    folder.mkdir()
    make_certificate(folder)
    config = {
        "apiVersion": "config.jobset.x-k8s.io/v1alpha1",
        "kind": "Configuration",
        "health": {"healthProbeBindAddress": f"127.0.0.1:{health_port}"},
        "metrics": {"bindAddress": "0"},
        "webhook": {"host": "127.0.0.1", "port": webhook_port, "certDir": str(folder)},
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": False},
    }
    (folder / "config.json").write_text(json.dumps(config), encoding="ascii")
    started = cluster.programs.start(
        "jobset",
        program("jobset"),
        f"--config={folder / 'config.json'}",
        "--metrics-bind-address=0",
        f"--kubeconfig={cluster.kubeconfig}",
    )
    started.wait_ready(
        lambda: answers(f"http://127.0.0.1:{health_port}/readyz"), patience_s=START_PATIENCE_S
    )
    manifests = module_files("jobset", "components") / "webhook" / "manifests.yaml"
    reached = Reached(webhook_port, folder / "tls.crt")
    register_webhooks(cluster.client, manifests, reached, prefix="jobset-")


def start_kuberay(cluster: Cluster) -> None:
    """Start KubeRay; it has no webhooks unless asked for."""
    (health_port,) = free_ports(1)
    started = cluster.programs.start(
        "kuberay",
        program("kuberay"),
        f"--kubeconfig={cluster.kubeconfig}",
        f"--health-probe-bind-address=127.0.0.1:{health_port}",
        "--metrics-addr=0",
        "--enable-leader-election=false",
    )
    started.wait_ready(
        lambda: answers(f"http://127.0.0.1:{health_port}/readyz"), patience_s=START_PATIENCE_S
    )


def start_training(cluster: Cluster) -> None:
    """Start the training operator; its certificate goes into a secret that must exist."""
    webhook_port, health_port = free_ports(2)
    space: Manifest = {"apiVersion": "v1", "kind": "Namespace"}
    cluster.client.apply({**space, "metadata": {"name": TRAINING_SPACE}})
    secret = {"name": "training-operator-webhook-cert", "namespace": TRAINING_SPACE}
    cluster.client.apply({"apiVersion": "v1", "kind": "Secret", "metadata": secret})
    started = cluster.programs.start(
        "training-operator",
        program("training-operator"),
        f"--kubeconfig={cluster.kubeconfig}",
        f"--webhook-server-port={webhook_port}",
        f"--health-probe-bind-address=127.0.0.1:{health_port}",
        "--metrics-bind-address=0",
        "--kube-api-qps=500",
        "--kube-api-burst=500",
    )
    started.wait_ready(
        lambda: answers(f"http://127.0.0.1:{health_port}/readyz"), patience_s=START_PATIENCE_S
    )


def _define(cluster: Cluster, path: Path) -> list[str]:
    """Define one kind; return its names, one for each version."""
    text = path.read_text(encoding="utf-8")
    group, plural = path.stem.split("_")
    cluster.client.apply_text(CRD, f"{plural}.{group}", text)
    kind = re.findall(r"^    kind: (\w+)$", text, re.MULTILINE)[0]
    versions = re.findall(r"^(?:    |  - )name: (v\w+)$", text, re.MULTILINE)
    return [f"{group}/{version}/{kind}" for version in versions]
