"""One namespace of the test cluster for each test; pods are ended by hand, all goes at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.support.cluster import Cluster
from tests.support.cluster_client import KubeClient, Manifest, Manifests, Parameter
from tests.support.cluster_objects import OWN_LABEL
from tests.support.cluster_processes import wait_until

PATIENCE_S = 30.0
PRIORITY_CLASS = "scheduling.k8s.io/v1/PriorityClass"
NODE_KINDS = ("v1/Node", "resource.k8s.io/v1/ResourceSlice", "resource.k8s.io/v1/DeviceClass")
"""What tests create outside their namespace; all of it goes with the namespace."""


@dataclass(frozen=True, slots=True)
class Namespace:
    """A namespace of a running cluster."""

    cluster: Cluster
    name: str

    @property
    def client(self) -> KubeClient:
        """Return the administrator's client."""
        return self.cluster.client

    def apply(self, manifest: Manifest) -> Manifest:
        """Create or change an object in this namespace."""
        return self.client.apply(manifest, namespace=self.name)

    def get(self, kind: str, name: str) -> Manifest:
        """Return one object of this namespace."""
        return self.client.get(kind, name, namespace=self.name)

    def list(self, kind: str, **params: Parameter) -> Manifests:
        """Return all objects of a kind in this namespace, by name."""
        found = self.client.list(kind, namespace=self.name, **params)
        return sorted(found, key=lambda item: item["metadata"]["name"])

    def delete(self, kind: str, name: str) -> None:
        """Ask for an object's end."""
        self.client.delete(kind, name, namespace=self.name)

    def pods(self, phase: str | None = None) -> Manifests:
        """Return the pods (in a phase), by name."""
        return [pod for pod in self.list("v1/Pod") if phase in {None, pod["status"].get("phase")}]

    def annotate(self, pod_name: str, **annotations: str | None) -> None:
        """Set a pod's annotations ``steward.test/...`` (``_`` is ``-``); None takes one away."""
        named = {f"steward.test/{key.replace('_', '-')}": v for key, v in annotations.items()}
        change = {"metadata": {"annotations": named}}
        self.client.patch("v1/Pod", pod_name, change, namespace=self.name)

    def finish_pod(self, name: str, *, exit_code: int = 0, reason: str = "Error") -> None:
        """End all containers of a running pod; the reason counts for a failing one."""
        if exit_code == 0:
            self.annotate(name, finish="succeed")
        else:
            self.annotate(name, finish="fail", exit_code=str(exit_code), exit_reason=reason)

    def evict_pod(self, name: str) -> None:
        """Evict a pod through the eviction API, as a drain does."""
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": self.name},
        }
        self.client.request(
            "POST", f"/api/v1/namespaces/{self.name}/pods/{name}/eviction", body=body
        )

    def wait_for_pods(
        self, count: int, *, phase: str, where: Callable[[Manifest], bool] = lambda _pod: True
    ) -> Manifests:
        """Return the pods once so many are in the phase and as told."""
        found: Manifests = []

        def enough() -> bool:
            found[:] = [pod for pod in self.pods(phase) if where(pod)]
            return len(found) == count

        self.wait_until(enough, what=f"{count} pods in phase {phase}")
        return found

    def wait_until(self, condition: Callable[[], bool], *, what: str) -> None:
        """Return once the condition holds; fail with the state of the pods when it does not."""
        try:
            wait_until(condition, what=what, patience_s=PATIENCE_S)
        except TimeoutError as error:
            states = {p["metadata"]["name"]: p["status"].get("phase") for p in self.pods()}
            raise AssertionError(f"{error} in {self.name}; pods: {states}") from None


@contextmanager
def emptied_namespace(cluster: Cluster, name: str) -> Iterator[Namespace]:
    """Give a new namespace; at the end it ends, its pods at once, and every node goes."""
    cluster.renew_controllers()
    metadata = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    cluster.client.apply(metadata)
    own = Namespace(cluster, name)
    own.wait_until(
        lambda: any(
            account["metadata"]["name"] == "default" for account in own.list("v1/ServiceAccount")
        ),
        what="the default service account",
    )
    try:
        yield own
    finally:
        cluster.client.delete("v1/Namespace", name)
        cluster.client.delete_all("v1/Pod", namespace=name, gracePeriodSeconds=0)
        for kind in NODE_KINDS:
            cluster.client.delete_all(kind)
        ((label, value),) = OWN_LABEL.items()
        own_classes = f"{label}={value}"
        cluster.client.delete_all(PRIORITY_CLASS, labelSelector=own_classes)
