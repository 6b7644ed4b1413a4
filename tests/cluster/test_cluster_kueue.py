"""Kueue is real: it admits by quota in order, and takes a place away when told."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.cluster_client import Manifest
from tests.support.cluster_kueue import QUEUE_LABEL, Kueue
from tests.support.cluster_namespace import Namespace
from tests.support.cluster_objects import job, pod_template

pytestmark = pytest.mark.slow


def is_admitted(workload: Manifest) -> bool:
    """Whether Kueue lets a Workload run now."""
    conditions = {c["type"]: c["status"] for c in workload.get("status", {}).get("conditions", [])}
    return conditions.get("Admitted") == "True"


def test_kueue_admits_in_order_and_hands_the_place_on(
    kueue: Kueue, kueue_namespace: Namespace
) -> None:
    own = kueue_namespace
    kueue.cluster.create_node("node")
    kueue.add_flavor()
    kueue.add_cluster_queue(f"{own.name}-eight", gpu_count=8)
    kueue.add_local_queue("team", namespace=own.name, cluster_queue=f"{own.name}-eight")

    def admitted(name: str) -> bool:
        return is_admitted(kueue.workload_of(name, namespace=own.name))

    for name in ("first", "second"):
        template = pod_template(gpu_count=8)
        labels = {QUEUE_LABEL: "team"}
        own.apply(job(name, namespace=own.name, template=template, labels=labels))
        if name == "first":
            own.wait_until(lambda: admitted("first"), what="the first Job to be admitted")
    (running,) = own.wait_for_pods(1, phase="Running")
    assert running["metadata"]["labels"]["batch.kubernetes.io/job-name"] == "first"
    assert not admitted("second")
    assert own.get("batch/v1/Job", "second")["spec"]["suspend"] is True
    older = own.list("kueue.x-k8s.io/v1beta1/Workload")
    assert len(older) == 2, "Kueue converts its older version"
    first = kueue.workload_of("first", namespace=own.name)
    kueue.set_active(first, is_active=False)
    own.wait_until(lambda: admitted("second"), what="the second Job to be admitted")
    own.wait_for_pods(1, phase="Running", where=belongs_to("second"))
    assert own.get("batch/v1/Job", "first")["spec"]["suspend"] is True
    kueue.set_active(first, is_active=True)
    (of_second,) = own.wait_for_pods(1, phase="Running")
    own.finish_pod(of_second["metadata"]["name"])
    own.wait_for_pods(1, phase="Running", where=belongs_to("first"))


def belongs_to(job_name: str) -> Callable[[Manifest], bool]:
    """Return whether a pod is one of this Job."""
    return lambda pod: pod["metadata"]["labels"]["batch.kubernetes.io/job-name"] == job_name
