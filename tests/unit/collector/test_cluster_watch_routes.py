"""Exporters' pods and all pods come through one feed and must never be taken for each other."""

from __future__ import annotations

import threading
from pathlib import Path

from collector.cluster_watch import ClusterLink, ClusterWatch
from collector.discovery import ScrapeTarget
from collector.discovery_kubernetes import ExporterTargets, Selection
from collector.sources.kubernetes.change import Change, ChangeType
from collector.sources.kubernetes.credentials import Origin
from collector.sources.kubernetes.resources import PODS
from steward.clock import FixedClock
from tests.support.api_server_script import Document, listed, scripted_api_server
from tests.support.kubernetes_feeds import NOON, PATIENCE_S


def pod(name: str) -> Document:
    return {
        "metadata": {"name": name, "namespace": "gpu", "uid": f"u-{name}", "resourceVersion": "1"},
        "spec": {"nodeName": "n1", "containers": [{"ports": [{"containerPort": 9400}]}]},
        "status": {"phase": "Running", "podIP": "10.0.0.1"},
    }


def test_rows_see_all_pods_once_and_discovery_sees_the_exporters(tmp_path: Path) -> None:
    exporters = ExporterTargets([Selection(label_selector="app=dcgm", namespace="gpu")])
    seen: list[Change] = []
    synced = threading.Event()

    def apply(change: Change) -> None:
        seen.append(change)
        if change.resource == PODS and change.type is ChangeType.SYNCED:
            synced.set()

    with scripted_api_server() as server:
        server.kinds[""] = ("pods",)
        server.plan("list", "/api/v1/pods", listed(pod("dcgm"), pod("train")))
        server.plan("list", "/api/v1/namespaces/gpu/pods", listed(pod("dcgm")))
        link = ClusterLink(Origin(kubeconfig=server.kubeconfig(tmp_path)))
        watch = ClusterWatch(link, apply=apply, exporters=exporters, clock=FixedClock(NOON))
        ended = threading.Event()
        watch.start(on_end=ended.set)
        try:
            assert synced.wait(PATIENCE_S)
            while not exporters.is_synced:
                assert not ended.wait(0.01)
        finally:
            watch.stop()
    assert {one.resource for one in seen} == {PODS}
    assert [one.key.name for one in seen] == ["dcgm", "train", ""]
    assert exporters.look() == (
        ScrapeTarget(url="http://10.0.0.1:9400/metrics", node="n1", pod="dcgm"),
    )
    names = [one.name for one in watch.health()]
    assert "pods" in names
    assert "pods (gpu app=dcgm)" in names
