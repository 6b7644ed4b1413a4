"""What the gateway may and may not on a real API server, and what it says when there is none."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from enforcer.actuators.fields import target_of
from enforcer.gateway.live import LiveGateway
from enforcer.gateway.live_access import LiveAccess, Origin
from enforcer.gateway.port import Verb, Write
from steward.errors import ClusterError, DeniedError, RefusedError
from tests.support.cluster import Cluster
from tests.support.cluster_client import Manifest
from tests.support.cluster_enforcer import live_gateway
from tests.support.cluster_namespace import Namespace
from tests.support.cluster_objects import deployment, job

pytestmark = pytest.mark.slow
APPS = {"api_version": "apps/v1", "kind": "Deployment"}


@contextmanager
def gateway_of(cluster: Cluster, name: str, *rules: Manifest) -> Iterator[LiveGateway]:
    """Give the gateway of an account with these rules."""
    access = LiveAccess(Origin(kubeconfig=cluster.add_user(name, list(rules)).kubeconfig))
    try:
        yield LiveGateway(access, is_leading=lambda: True)
    finally:
        access.close()


def rule(verbs: list[str], resources: list[str], *groups: str) -> Manifest:
    """Return an RBAC rule."""
    return {"apiGroups": list(groups), "resources": resources, "verbs": verbs}


def suspension(own: Namespace) -> Write:
    """Return the suspension of a Job that was made just now."""
    target = target_of(own.apply(job("train", namespace=own.name, spec={"suspend": True})))
    return Write(
        verb=Verb.PATCH, target=target, body={"spec": {"parallelism": 2}}, resource_version=None
    )


def test_who_may_only_read_writes_nothing(cluster: Cluster, namespace: Namespace) -> None:
    write = suspension(namespace)
    with gateway_of(cluster, "reader", rule(["get", "list"], ["*"], "*")) as gateway:
        namespace.wait_until(
            lambda: gateway.may(verb="get", api_version="batch/v1", kind="Job", namespace=None),
            what="the role to be in force",
        )
        assert not gateway.may(
            verb="patch", api_version="batch/v1", kind="Job", namespace=namespace.name
        )
        for send in (gateway.rehearse, gateway.write):
            with pytest.raises(DeniedError, match="cannot patch resource"):
                send(write)
        assert gateway.read(write.target) is not None
    assert namespace.get("batch/v1/Job", "train")["spec"]["parallelism"] == 1


def test_scaling_needs_the_scale_alone(cluster: Cluster, namespace: Namespace) -> None:
    target = target_of(namespace.apply(deployment("serve", namespace=namespace.name)))
    body: Manifest = {"spec": {"replicas": 0}}
    read = rule(["get"], ["deployments"], "apps")
    scale = rule(["patch"], ["deployments/scale"], "apps")
    with gateway_of(cluster, "scaler", read, scale) as gateway:
        namespace.wait_until(
            lambda: gateway.may(verb="patch/scale", namespace=None, **APPS),
            what="the role to be in force",
        )
        assert not gateway.may(verb="patch", namespace=None, **APPS)
        patch = Write(verb=Verb.PATCH, target=target, body=body, resource_version=None)
        with pytest.raises(DeniedError):
            gateway.write(patch)
        gateway.write(Write(verb=Verb.SCALE, target=target, body=body, resource_version=None))
    assert namespace.get("apps/v1/Deployment", "serve")["spec"]["replicas"] == 0


def test_an_admission_policy_refuses_and_is_quoted(cluster: Cluster, namespace: Namespace) -> None:
    admission = "admissionregistration.k8s.io/v1"
    name = f"calm-{namespace.name}"
    space = {"kubernetes.io/metadata.name": namespace.name}
    rules = [rule([], ["jobs"], "batch") | {"apiVersions": ["v1"], "operations": ["UPDATE"]}]
    del rules[0]["verbs"]
    policy: Manifest = {
        "apiVersion": admission,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {
                "resourceRules": rules,
                "namespaceSelector": {"matchLabels": space},
            },
            "validations": [
                {"expression": "object.spec.parallelism == 1", "message": "one at a time"}
            ],
        },
    }
    binding: Manifest = {
        "apiVersion": admission,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": name, "validationActions": ["Deny"]},
    }
    write = suspension(namespace)
    cluster.client.apply(policy)
    cluster.client.apply(binding)
    try:
        with live_gateway(cluster) as gateway:
            namespace.wait_until(lambda: is_refused(gateway, write), what="the policy to count")
            with pytest.raises(RefusedError, match="one at a time"):
                gateway.write(write)
    finally:
        for kind in ("ValidatingAdmissionPolicyBinding", "ValidatingAdmissionPolicy"):
            cluster.client.delete(f"{admission}/{kind}", name)


def is_refused(gateway: LiveGateway, write: Write) -> bool:
    """Return whether a rehearsal is refused."""
    try:
        gateway.rehearse(write)
    except RefusedError:
        return True
    return False


def test_a_server_that_is_away_is_one_error_and_back_without_us(
    cluster: Cluster, namespace: Namespace
) -> None:
    write = suspension(namespace)
    with live_gateway(cluster) as gateway:
        assert gateway.read(write.target) is not None
        cluster.stop_api_server(kill=True)
        for call in (
            lambda: gateway.read(write.target),
            lambda: gateway.write(write),
            lambda: gateway.list(api_version="v1", kind="Pod", namespace=None),
        ):
            with pytest.raises(ClusterError) as caught:
                call()
            assert type(caught.value) is ClusterError
        cluster.start_api_server()
        assert gateway.read(write.target) is not None
        gateway.write(write)
    assert namespace.get("batch/v1/Job", "train")["spec"]["parallelism"] == 2
