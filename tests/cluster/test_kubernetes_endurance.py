"""The feed through much at once: pods come and go while the API server is killed and restarted."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from collector.sources.kubernetes.change import Change, ChangeType
from collector.sources.kubernetes.resources import PODS
from tests.support.cluster import Cluster, running_cluster
from tests.support.cluster_client import KubeStatusError
from tests.support.cluster_namespace import Namespace, emptied_namespace
from tests.support.cluster_objects import pod
from tests.support.kubernetes_feeds import QUICK, counted, running_feed

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(180),
    # A server killed between accepting a connection and its handshake: Python's own TLS socket
    # raises without closing itself, and says so when it is collected.
    pytest.mark.filterwarnings(
        "ignore:Exception ignored in. <ssl.SSLSocket:pytest.PytestUnraisableExceptionWarning"
    ),
]
LIVE = replace(QUICK, page_size=5, silence_s=30, answer_s=30, survey_s=1, backoff_max_s=1)
NAMES = tuple(f"train-{number}" for number in range(12))


class Churn:
    """Creates, changes and deletes pods at random until told to stop; keeps each uid it made."""

    def __init__(self, namespace: Namespace) -> None:
        """Prepare; nothing happens yet."""
        self.namespace = namespace
        self.random = random.Random(20_260_504)  # noqa: S311 - the same churn each time
        self.created_uids: set[str] = set()
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        while not self.stop.wait(0.01):
            try:
                self._step(self.random.choice(NAMES), self.random.random())
            except httpx.TransportError:
                self.stop.wait(0.1)
            except KubeStatusError as error:
                assert error.code in {403, 404, 409, 429, 500, 503, 504}, error  # noqa: PT017 - all others are faults of the test

    def _step(self, name: str, choice: float) -> None:
        namespace = self.namespace
        if choice < 0.4:
            made = namespace.client.create(pod(name, namespace=namespace.name))
            self.created_uids.add(made["metadata"]["uid"])
        elif choice < 0.7:
            namespace.annotate(name, note=str(choice))
        else:
            namespace.client.delete("v1/Pod", name, namespace=namespace.name, gracePeriodSeconds=0)


def known_after(changes: list[Change]) -> dict[str, str]:
    """Return version by uid; each change must fit the one before it."""
    known: dict[str, str] = {}
    for change in changes:
        if change.object is None:
            continue
        if change.type is ChangeType.DELETED:
            del known[change.key.uid]
            continue
        assert (change.key.uid in known) == (change.type is ChangeType.MODIFIED), change
        known[change.key.uid] = change.object.metadata.resource_version
    return known


@pytest.fixture
def own_cluster(cluster: Cluster, tmp_path: Path) -> Iterator[Cluster]:
    """Give a cluster to one test alone.

    A scheduler whose bindings are cut off by a killed API server may find its own cache corrupted
    and end, so the cluster of the other tests is left alone (and shows that there can be one).
    """
    assert cluster.url
    with running_cluster(tmp_path) as own:
        yield own


@pytest.fixture
def own_namespace(own_cluster: Cluster) -> Iterator[Namespace]:
    with emptied_namespace(own_cluster, "churn") as own:
        yield own


def test_churn_through_kills_and_lost_history(
    own_cluster: Cluster, own_namespace: Namespace
) -> None:
    cluster, namespace = own_cluster, own_namespace
    cluster.create_node("node")
    pods = replace(PODS, namespace=namespace.name)
    churn = Churn(namespace)
    with running_feed(cluster.kubeconfig, pods, pace=LIVE) as run:
        run.wait_for(lambda: run.feed.is_synced)
        churn.thread.start()
        for disturb in (
            lambda: cluster.restart_api_server(kill=True),
            cluster.expire_history,
            lambda: cluster.restart_api_server(kill=False),
        ):
            before = len(churn.created_uids)
            namespace.wait_until(
                lambda before=before: len(churn.created_uids) > before + 10, what="ten new pods"
            )
            disturb()
        churn.stop.set()
        churn.thread.join()

        def server_has() -> dict[str, str]:
            found = namespace.list("v1/Pod")
            return {one["metadata"]["uid"]: one["metadata"]["resourceVersion"] for one in found}

        run.wait_for(lambda: known_after(list(run.changes)) == server_has(), what="the same pods")
        assert run.health(pods).undecodable_count == 0
    assert {key for key, count in counted(run.changes).items() if count > 1} == set()
    told_uids = {one.key.uid for one in run.changes if one.object is not None}
    unanswered = told_uids - churn.created_uids
    assert len(unanswered) <= 3, "a kill may cut off the answer to one creation"
    assert len(told_uids) > 20


def test_pods_own_account_is_read_from_its_files(
    cluster: Cluster, namespace: Namespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a pod: address in the environment, token and authority as files, the token rotated."""
    import kubernetes.config.incluster_config as in_cluster

    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]}]
    user = cluster.add_user("in-cluster", rules)
    token = tmp_path / "token"
    token.write_text("expired", encoding="ascii")
    monkeypatch.setattr(in_cluster, "SERVICE_TOKEN_FILENAME", str(token))
    monkeypatch.setattr(in_cluster, "SERVICE_CERT_FILENAME", str(cluster.ca_file))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", cluster.url.rpartition(":")[2])
    namespace.apply(pod("train", namespace=namespace.name))
    pods = replace(PODS, namespace=namespace.name)
    with running_feed(None, pods, pace=LIVE) as run:
        run.wait_for(lambda: run.feed.health()[0].fault == "unauthorized")
        token.write_text(user.token, encoding="ascii")
        run.wait_for(lambda: run.feed.is_synced)
        run.wait_for(lambda: any("train" in one for one in run.told()))
