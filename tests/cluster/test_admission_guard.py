"""The admission guard, evaluated by a real API server: who is let in, and what the others read."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from enforcer.quota.guard import NAME, manifests
from enforcer.quota.model import ANY, Ceiling, ModelName, QuotaFile, Share, TeamQuota
from tests.support.cluster_client import KubeStatusError, Manifest
from tests.support.cluster_namespace import PRIORITY_CLASS, Namespace
from tests.support.cluster_objects import GPU, OWN_LABEL, pod_template
from tests.support.cluster_processes import wait_until
from tests.support.enforcer_quota import quota_file

PRODUCT = "nvidia.com/gpu.product"
H100, L40S = "NVIDIA-H100-80GB-HBM3", "NVIDIA-L40S"
KINDS = ("ValidatingAdmissionPolicyBinding", "ValidatingAdmissionPolicy")
VISION = {"team": "vision", "workload-class": "training"}


def models() -> tuple[ModelName, ...]:
    return tuple(
        ModelName(
            gpu_model=value,
            resource=GPU,
            flavor=value.lower(),
            node_label_values=(value,),
            capacity_gpu_count=None,
        )
        for value in (H100, L40S)
    )


def guarded() -> QuotaFile:
    """Return quotas by which vision trains up to ``normal`` on H100 only."""
    share = Share(gpu_model=H100, guaranteed_gpu_count=8, borrow_gpu_count=0, lend_gpu_count=None)
    vision = TeamQuota(tenant_id="vision", queue="vision", namespaces=("vision",), shares=(share,))
    ceilings = (
        Ceiling(tenant_id=ANY, workload_class=ANY, highest="high"),
        Ceiling(tenant_id="vision", workload_class="training", highest="normal"),
    )
    return quota_file(vision, models=models(), ceilings=ceilings)


@pytest.fixture
def guard(namespace: Namespace) -> Iterator[Namespace]:
    """Put the guard up around this namespace, and take it down after the test."""
    client = namespace.client
    for name, value in (("low", 1), ("normal", 2), ("high", 3), ("emperor", 9)):
        own = {"name": name, "labels": OWN_LABEL}
        client.apply(
            {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": own,
                "value": value,
            }
        )
    for one in manifests(guarded(), is_strict=True):
        client.apply(dict(one), namespace=namespace.name)
    try:
        wait_until(
            lambda: "names its team" in str(refusal(namespace, pod("probe", {}))),
            what="the guard",
        )
        yield namespace
    finally:
        for kind in KINDS:
            client.delete(f"admissionregistration.k8s.io/v1/{kind}", NAME)
        client.delete_all(PRIORITY_CLASS, labelSelector="steward.test/own=true")
        wait_until(lambda: refusal(namespace, pod("probe", {})) is None, what="no guard")


def pod(
    name: str,
    labels: dict[str, str],
    *,
    gpu_count: int = 1,
    priority: str | None = None,
    product: str | None = H100,
) -> Manifest:
    spec: Manifest = {}
    if product is not None:
        spec["nodeSelector"] = {PRODUCT: product}
    if priority is not None:
        spec["priorityClassName"] = priority
    template = pod_template(gpu_count=gpu_count, labels=labels, spec=spec)
    template["metadata"]["name"] = name
    return {"apiVersion": "v1", "kind": "Pod", **template}


def refusal(namespace: Namespace, manifest: Manifest) -> str | None:
    """Return why the server refuses the object; None where it would take it."""
    resource = namespace.client.resource(f"{manifest['apiVersion']}/{manifest['kind']}")
    try:
        namespace.client.request(
            "POST", resource.path(namespace.name), body=manifest, params={"dryRun": "All"}
        )
    except KubeStatusError as error:
        return str(error)
    return None


def test_the_guard_refuses_in_words_and_lets_the_rest_in(guard: Namespace) -> None:
    cases = {
        "in order": (pod("a", VISION, priority="normal"), None),
        "below the ceiling": (pod("a", VISION, priority="low"), None),
        "no priority asked for": (pod("a", VISION), None),
        "no gpu: not looked at": (pod("a", {}, gpu_count=0, product=None), None),
        "no team": (pod("a", {"workload-class": "training"}), "names its team: one of team"),
        "no class": (pod("a", {"team": "vision"}), "names its class: one of workload-class"),
        "above the ceiling": (
            pod("a", VISION, priority="high"),
            "priority class high is above what training workloads of team vision may use",
        ),
        "a class nobody ranked": (pod("a", VISION, priority="emperor"), "emperor is above"),
        "another class of the team": (
            pod("a", {**VISION, "workload-class": "inference"}, priority="high"),
            None,
        ),
        "a model of others": (pod("a", VISION, product=L40S), f"one of {H100}"),
        "no model chosen": (pod("a", VISION, product=None), f"one of {H100}"),
        "kueue chooses the model": (
            pod("a", {**VISION, "kueue.x-k8s.io/queue-name": "vision"}, product=None),
            None,
        ),
        "a team without quota": (pod("a", {**VISION, "team": "audio"}, product=L40S), None),
    }
    seen = {name: refusal(guard, manifest) for name, (manifest, _) in cases.items()}
    wrong = {
        name: (seen[name], words)
        for name, (_, words) in cases.items()
        if (words is None) != (seen[name] is None) or (words and words not in str(seen[name]))
    }
    assert wrong == {}


def test_what_makes_pods_is_refused_at_once_and_not_only_its_pods(guard: Namespace) -> None:
    template = pod("x", {}, priority="high")
    bad = {"metadata": {"labels": VISION}, "spec": template["spec"]}
    good = {"metadata": {"labels": VISION}, "spec": pod("x", VISION)["spec"]}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}}
    for one in (bad, good):
        one["spec"]["restartPolicy"] = "Never"
    assert "is above what training" in str(refusal(guard, {**job, "spec": {"template": bad}}))
    assert refusal(guard, {**job, "spec": {"template": good}}) is None


def test_a_guard_put_up_again_knows_its_numbers_and_spares_what_runs(guard: Namespace) -> None:
    assert "is above what" in str(refusal(guard, pod("a", VISION, priority="high")))
    for kind in KINDS:
        guard.client.delete(f"admissionregistration.k8s.io/v1/{kind}", NAME)
    wait_until(lambda: refusal(guard, pod("a", {})) is None, what="no guard")
    guard.apply(pod("older", {}))
    for one in manifests(guarded(), is_strict=False):
        guard.client.apply(dict(one), namespace=guard.name)
    wait_until(lambda: refusal(guard, pod("a", {})) is not None, what="the guard again")
    assert "is above what" in str(refusal(guard, pod("a", VISION, priority="high")))
    assert refusal(guard, pod("a", VISION, priority="normal")) is None
    guard.annotate("older", note="what runs already is not looked at again")
