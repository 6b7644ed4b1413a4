"""Exporters found in a real cluster by the labels of their pods and Services."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from collector.discovery import ScrapeTarget
from collector.discovery_kubernetes import ExporterTargets, Role, Selection
from collector.sources.kubernetes.access import ApiAccess
from collector.sources.kubernetes.credentials import Origin
from collector.sources.kubernetes.feed import KubernetesFeed
from steward.clock import SystemClock
from tests.support.cluster import Cluster
from tests.support.cluster_client import Manifest
from tests.support.cluster_namespace import Namespace
from tests.support.cluster_objects import pod, pod_template
from tests.support.kubernetes_feeds import QUICK

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]
LABELS = {"app": "dcgm-exporter"}


def exporter(name: str, namespace: Namespace, node: str) -> Manifest:
    template = pod_template(gpu_count=0, labels=LABELS)
    manifest = pod(name, namespace=namespace.name, template=template)
    manifest["spec"]["nodeName"] = node
    manifest["spec"]["containers"][0]["ports"] = [{"name": "metrics", "containerPort": 9400}]
    return manifest


def service() -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "dcgm", "labels": LABELS},
        "spec": {"selector": LABELS, "ports": [{"name": "metrics", "port": 9400}]},
    }


@pytest.mark.parametrize("role", [Role.POD, Role.ENDPOINTSLICE])
def test_exporters_come_and_go(cluster: Cluster, namespace: Namespace, role: Role) -> None:
    for node in ("node-a", "node-b"):
        cluster.create_node(node)
        namespace.apply(exporter(f"dcgm-{node}", namespace, node))
    namespace.apply(service())
    namespace.apply(pod("other", namespace=namespace.name))
    running = namespace.wait_for_pods(
        2,
        phase="Running",
        where=lambda one: LABELS.items() <= one["metadata"].get("labels", {}).items(),
    )
    expected = tuple(
        sorted(
            (
                ScrapeTarget(
                    url=f"http://{one['status']['podIP']}:9400/metrics",
                    node=one["spec"]["nodeName"],
                    pod=one["metadata"]["name"],
                )
                for one in running
            ),
            key=lambda target: target.url,
        )
    )
    found = ExporterTargets(
        [Selection(role=role, label_selector="app=dcgm-exporter", namespace=namespace.name)]
    )
    access = ApiAccess(Origin(kubeconfig=cluster.kubeconfig))
    pace = replace(QUICK, silence_s=30, answer_s=30)
    feed = KubernetesFeed(access, found.resources, clock=SystemClock(), pace=pace)
    stop = threading.Event()
    thread = threading.Thread(target=feed.run, args=(stop, found.apply))
    thread.start()
    try:
        namespace.wait_until(lambda: found.look() == expected, what=f"{expected}")
        assert found.is_synced
        namespace.delete("v1/Pod", "dcgm-node-a")
        rest = tuple(one for one in expected if one.node == "node-b")
        namespace.wait_until(lambda: found.look() == rest, what=f"{rest}")
    finally:
        stop.set()
        thread.join()
