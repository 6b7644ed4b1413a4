"""The feed against a real API server: whatever that does, nothing is lost or doubled."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from collector.sources.kubernetes.access import ApiAccess
from collector.sources.kubernetes.api_error import ApiFault
from collector.sources.kubernetes.change import ChangeType
from collector.sources.kubernetes.credentials import Origin
from collector.sources.kubernetes.permissions import (
    MissingPermission,
    cluster_role,
    missing_permissions,
)
from collector.sources.kubernetes.resource import Resource
from collector.sources.kubernetes.resources import JOBS, NODES, PODS, RESOURCES
from steward.clock import SystemClock
from tests.support.cluster import Cluster
from tests.support.cluster_client import Manifest
from tests.support.cluster_namespace import Namespace
from tests.support.cluster_objects import job, pod
from tests.support.kubernetes_feeds import (
    QUICK,
    THINGS,
    FeedRun,
    counted,
    running_feed,
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(180),
    # A server killed between accepting a connection and its handshake: Python's own TLS socket
    # raises without closing itself, and says so when it is collected.
    pytest.mark.filterwarnings(
        "ignore:Exception ignored in. <ssl.SSLSocket:pytest.PytestUnraisableExceptionWarning"
    ),
]
LIVE = replace(QUICK, page_size=3, silence_s=30, answer_s=30, survey_s=0.5, backoff_max_s=0.5)
WIDGETS = replace(THINGS, group="shop.example", plural="widgets", kind="Widget", is_optional=True)


def within(resource: Resource, namespace: Namespace) -> Resource:
    """Narrow a resource to one namespace, so that a test meets only its own objects."""
    return replace(resource, namespace=namespace.name)


def replayed(run: FeedRun, resource: Resource) -> dict[str, str]:
    """Return what the changes add up to: version by uid; each change must fit the one before."""
    known: dict[str, str] = {}
    for change in list(run.changes):
        if change.resource != resource or change.object is None:
            continue
        uid = change.key.uid
        if change.type is ChangeType.DELETED:
            del known[uid]
            continue
        assert (uid in known) == (change.type is ChangeType.MODIFIED), change
        known[uid] = change.object.metadata.resource_version
    return known


def on_server(namespace: Namespace, kind: str) -> dict[str, str]:
    found = namespace.list(kind)
    return {one["metadata"]["uid"]: one["metadata"]["resourceVersion"] for one in found}


def wait_until_same(run: FeedRun, resource: Resource, namespace: Namespace, kind: str) -> None:
    """Wait until the changes add up to the server's own list; nothing may have come twice."""
    run.wait_for(
        lambda: replayed(run, resource) == on_server(namespace, kind), what=f"the server's {kind}"
    )
    doubled = {key: count for key, count in counted(run.changes).items() if count > 1}
    assert not doubled


def test_pods_life_is_told_as_the_server_has_it(cluster: Cluster, namespace: Namespace) -> None:
    cluster.create_node("node")
    pods, jobs = within(PODS, namespace), within(JOBS, namespace)
    for number in range(7):
        namespace.apply(pod(f"early-{number}", namespace=namespace.name))
    with running_feed(cluster.kubeconfig, jobs, pods, NODES, pace=LIVE, clock=SystemClock()) as run:
        run.wait_for(lambda: run.feed.is_synced)
        namespace.apply(job("train", namespace=namespace.name, pod_count=3))
        namespace.wait_for_pods(8, phase="Running")
        namespace.finish_pod("early-0")
        namespace.delete("v1/Pod", "early-1")
        namespace.wait_until(lambda: len(namespace.pods()) == 9, what="the deleted pod to be gone")
        wait_until_same(run, pods, namespace, "v1/Pod")
        wait_until_same(run, jobs, namespace, "batch/v1/Job")
    ended = [one for one in run.changes if one.resource == pods and one.type is ChangeType.DELETED]
    assert [one.key.name for one in ended] == ["early-1"]
    assert all(one.list_count == 1 and one.error_count == 0 for one in run.feed.health())


def test_killed_api_server_loses_and_doubles_nothing(
    cluster: Cluster, namespace: Namespace
) -> None:
    cluster.create_node("node")
    pods = within(PODS, namespace)
    for number in range(5):
        namespace.apply(pod(f"train-{number}", namespace=namespace.name))
    namespace.wait_for_pods(5, phase="Running")
    with running_feed(cluster.kubeconfig, pods, pace=LIVE) as run:
        run.wait_for(lambda: run.feed.is_synced)
        cluster.stop_api_server(kill=True)
        run.wait_for(lambda: run.health(pods).fault is ApiFault.REFUSED)
        cluster.start_api_server()
        namespace.finish_pod("train-0")
        namespace.apply(pod("later", namespace=namespace.name))
        namespace.delete("v1/Pod", "train-1")
        namespace.wait_for_pods(4, phase="Running")
        wait_until_same(run, pods, namespace, "v1/Pod")
        assert run.health(pods).error is None


def test_lost_history_lists_anew_and_tells_only_differences(
    cluster: Cluster, namespace: Namespace
) -> None:
    cluster.create_node("node")
    pods = within(PODS, namespace)
    for number in range(5):
        namespace.apply(pod(f"train-{number}", namespace=namespace.name))
    namespace.wait_for_pods(5, phase="Running")
    with running_feed(cluster.kubeconfig, pods, pace=LIVE) as run:
        run.wait_for(lambda: run.feed.is_synced)
        told_before = len(run.changes)
        cluster.expire_history()
        run.wait_for(lambda: run.health(pods).list_count >= 2 and run.health(pods).error is None)
        assert set(run.told()[told_before:]) == {"SYNCED"}
        namespace.apply(pod("train-4b", namespace=namespace.name))
        namespace.wait_for_pods(6, phase="Running")
        wait_until_same(run, pods, namespace, "v1/Pod")


def test_differences_while_nobody_could_watch_are_told_after_the_410(
    cluster: Cluster, namespace: Namespace
) -> None:
    """The feed may not watch for a time, in which objects change and history goes."""
    pods = within(PODS, namespace)
    reader = cluster.add_user("sometimes", [_rule("pods")])
    for name in ("same", "changed", "gone", "replaced"):
        namespace.apply(pod(name, namespace=namespace.name))
    with running_feed(reader.kubeconfig, pods, pace=LIVE) as run:
        run.wait_for(lambda: run.feed.is_synced)
        cluster.add_user("sometimes", [_rule("configmaps")])
        cluster.restart_api_server()
        run.wait_for(lambda: run.health(pods).fault is ApiFault.FORBIDDEN)
        told_before = len(run.told())
        namespace.annotate("changed", note="now")
        for name in ("gone", "replaced"):
            cluster.client.delete("v1/Pod", name, namespace=namespace.name, gracePeriodSeconds=0)
        namespace.wait_until(lambda: len(namespace.pods()) == 2, what="two pods to be gone")
        namespace.apply(pod("replaced", namespace=namespace.name))
        namespace.apply(pod("new", namespace=namespace.name))
        cluster.expire_history()
        cluster.add_user("sometimes", [_rule("pods")])
        wait_until_same(run, pods, namespace, "v1/Pod")
        told = [one.rpartition("@")[0].replace(f" {namespace.name}/", " ") for one in run.told()]
    news = [one for one in told[told_before:] if one]
    for expected in ("DELETED gone", "DELETED replaced", "ADDED replaced", "ADDED new"):
        assert news.count(expected) == 1
    assert news.index("DELETED replaced") < news.index("ADDED replaced")
    assert "MODIFIED changed" in news
    assert not [one for one in news if "same" in one]


def test_frozen_api_server_is_noticed_and_waited_for(
    cluster: Cluster, namespace: Namespace
) -> None:
    """A stopped process keeps its connections open and says nothing, like a dead route."""
    pods = within(PODS, namespace)
    impatient = replace(LIVE, silence_s=1, answer_s=1)
    with running_feed(cluster.kubeconfig, pods, pace=impatient) as run:
        run.wait_for(lambda: run.feed.is_synced)
        server = cluster.programs.running["kube-apiserver"].process.pid
        os.kill(server, signal.SIGSTOP)
        try:
            run.wait_for(lambda: run.health(pods).fault is ApiFault.TIMEOUT)
        finally:
            os.kill(server, signal.SIGCONT)
        namespace.apply(pod("later", namespace=namespace.name))
        wait_until_same(run, pods, namespace, "v1/Pod")
        run.wait_for(lambda: run.health(pods).error is None)


def test_account_with_few_rights_reads_what_it_may(cluster: Cluster, namespace: Namespace) -> None:
    user = cluster.add_user("pods-only", [_rule("pods")])
    pods = within(PODS, namespace)
    namespace.apply(pod("train", namespace=namespace.name))
    with running_feed(user.kubeconfig, NODES, pods, pace=LIVE) as run:
        run.wait_for(lambda: run.health(NODES).fault is ApiFault.FORBIDDEN and run.feed.is_synced)
        wait_until_same(run, pods, namespace, "v1/Pod")
        nodes = run.health(NODES)
        assert nodes.is_permitted is False
        assert nodes.hint is not None
        assert 'apiGroups: [""], resources: ["nodes"], verbs: ["list", "watch"]' in nodes.hint
        assert missing(user.kubeconfig, NODES, PODS) == [
            MissingPermission(group="", resource="nodes", verb="list"),
            MissingPermission(group="", resource="nodes", verb="watch"),
        ]
        cluster.add_user("pods-only", [_rule("pods"), _rule("nodes")])
        run.wait_for(lambda: run.health(NODES).is_synced)
        assert missing(user.kubeconfig, NODES, PODS) == []


def test_administrator_may_read_everything(cluster: Cluster) -> None:
    assert missing(cluster.kubeconfig, *RESOURCES) == []


def test_role_of_the_documentation_is_enough(cluster: Cluster) -> None:
    role = yaml.safe_load(cluster_role(RESOURCES, name="steward-collector"))
    user = cluster.add_user("documented", role["rules"])
    assert missing(user.kubeconfig, *RESOURCES) == []
    with running_feed(user.kubeconfig, *RESOURCES, pace=LIVE) as run:
        run.wait_for(lambda: run.feed.is_synced)
        assert [one.name for one in run.feed.health() if one.error is not None] == []
        read = {one.name for one in run.feed.health() if one.is_synced}
    assert {one.name for one in RESOURCES if not one.is_optional} <= read


def test_kind_that_is_installed_later_is_followed_and_one_removed_is_ended(
    cluster: Cluster, namespace: Namespace
) -> None:
    with running_feed(cluster.kubeconfig, WIDGETS, pace=LIVE) as run:
        run.wait_for(lambda: run.health(WIDGETS).is_served is False)
        cluster.client.apply(WIDGET_DEFINITION)
        namespace.wait_until(
            lambda: cluster.client.knows("shop.example/v1/Widget"), what="widgets to be served"
        )
        namespace.apply(widget("one"))
        run.wait_for(
            lambda: [one.partition("@")[0] for one in run.told()] in widget_stories(namespace)
        )
        cluster.client.delete("apiextensions.k8s.io/v1/CustomResourceDefinition", WIDGETS.name)
        run.wait_for(lambda: any(one.startswith("DELETED") for one in run.told()))
        run.wait_for(lambda: run.health(WIDGETS).is_served is False)
        assert run.health(WIDGETS).object_count == 0


def widget_stories(namespace: Namespace) -> list[list[str]]:
    """The widget is either in the first list or comes after it."""
    added = f"ADDED {namespace.name}/one"
    return [[added, "SYNCED"], ["SYNCED", added]]


def missing(kubeconfig: Path, *resources: Resource) -> list[MissingPermission]:
    access = ApiAccess(Origin(kubeconfig=kubeconfig))
    try:
        return missing_permissions(access, resources)
    finally:
        access.close()


def _rule(*plurals: str) -> Manifest:
    return {"apiGroups": [""], "resources": list(plurals), "verbs": ["list", "watch"]}


def widget(name: str) -> Manifest:
    return {
        "apiVersion": "shop.example/v1",
        "kind": "Widget",
        "metadata": {"name": name},
        "spec": {"size": 3},
    }


WIDGET_DEFINITION: Manifest = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.shop.example"},
    "spec": {
        "group": "shop.example",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                    }
                },
            }
        ],
    },
}
