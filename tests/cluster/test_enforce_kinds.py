"""Every kind on a real cluster: its GPUs are taken, its pods go, it comes back as it was.

Kubernetes' own kinds, JobSet, KubeRay, the Kubeflow training operator and Kueue have their real
controllers. Notebook, Workspace, InferenceService, Volcano Job and ScaledObject are minimal
definitions: what is written and taken back is real, their controllers are not there.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from enforcer.actuators import Act, Refusal, RefusalReason, is_taken, managers_of, reclaim
from enforcer.actuators.fields import value_at
from enforcer.decisions import Step
from enforcer.enrich import surroundings
from enforcer.facts import Manager
from steward.errors import RefusedError
from tests.support.cluster import Cluster
from tests.support.cluster_client import Manifest
from tests.support.cluster_enforcer import ORDER, Actor, as_text, live_gateway
from tests.support.cluster_kueue import QUEUE_LABEL, WORKLOAD, Kueue
from tests.support.cluster_namespace import Namespace
from tests.support.cluster_objects import deployment, job, pod, pod_template

pytestmark = pytest.mark.slow


@pytest.fixture
def actor(cluster: Cluster, namespace: Namespace) -> Iterator[Actor]:
    """Act in a namespace with one GPU node."""
    cluster.create_node("node")
    with live_gateway(cluster) as gateway:
        yield Actor(namespace, gateway)


@pytest.fixture
def operator(operated: Kueue, operated_namespace: Namespace) -> Iterator[Actor]:
    """Act in a namespace with one GPU node, where operators run."""
    operated.cluster.create_node("node")
    with live_gateway(operated.cluster) as gateway:
        yield Actor(operated_namespace, gateway)


def always(template: Manifest) -> Manifest:
    """Return a pod template whose containers are restarted."""
    return {**template, "spec": {**template["spec"], "restartPolicy": "Always"}}


def set_of(kind: str, name: str, **spec: object) -> Manifest:
    """Return a ReplicaSet or StatefulSet of two pods."""
    template = always(pod_template(labels={"app": name}))
    selector = {"matchLabels": {"app": name}}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {"replicas": 2, "selector": selector, "template": template, **spec},
    }


def custom(api_version: str, kind: str, spec: Manifest, *, queue: str | None = None) -> Manifest:
    """Return an object of another project."""
    labels = {} if queue is None else {QUEUE_LABEL: queue}
    metadata = {"name": f"one-{kind.lower()}", "labels": labels}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}


def ray_spec(**more: object) -> Manifest:
    """Return the spec of a Ray cluster with a head and one worker."""

    def group(name: str) -> Manifest:
        template = pod_template(gpu_count=1)
        template["spec"]["containers"][0]["name"] = name
        return {"rayStartParams": {}, "template": template}

    worker = {**group("ray-worker"), "groupName": "w", "replicas": 1, "minReplicas": 1}
    return {
        "rayVersion": "2.52.0",
        "headGroupSpec": group("ray-head"),
        "workerGroupSpecs": [{**worker, "maxReplicas": 1}],
        **more,
    }


def test_a_deployment_and_its_autoscaler(actor: Actor) -> None:
    manifest = deployment("serve", namespace=actor.own.name, replica_count=2)
    actor.own.apply(manifest)
    scaler: Manifest = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "serve"},
        "spec": {
            "minReplicas": 2,
            "maxReplicas": 4,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "serve"},
        },
    }
    actor.own.apply(scaler)
    around = surroundings(actor.gateway, actor.own.name)
    assert managers_of(actor.subject(manifest), around) == {Manager.HPA}
    before = actor.there_and_back(manifest, pod_count=2)
    assert before.pod_labels == "app=serve"


@pytest.mark.parametrize("kind", ["ReplicaSet", "StatefulSet"])
def test_a_set_of_pods(actor: Actor, kind: str) -> None:
    manifest = set_of(kind, "set", **({"serviceName": "set"} if kind == "StatefulSet" else {}))
    actor.own.apply(manifest)
    actor.there_and_back(manifest, pod_count=2)


def test_a_job(actor: Actor) -> None:
    manifest = job("train", namespace=actor.own.name, pod_count=2)
    actor.own.apply(manifest)
    actor.there_and_back(manifest, pod_count=2)


def test_a_cron_job_starts_no_more_and_its_running_job_is_taken_itself(actor: Actor) -> None:
    template = {"spec": job("nightly", namespace=actor.own.name)["spec"]}
    manifest = custom("batch/v1", "CronJob", {"schedule": "0 0 31 2 *", "jobTemplate": template})
    actor.own.apply(manifest)
    spec = as_text(actor.subject(manifest)["spec"])
    before = actor.taken(manifest)
    assert value_at(actor.subject(manifest), "spec", "suspend") is True
    actor.undone(before)
    assert as_text(actor.subject(manifest)["spec"]) == spec
    metadata = actor.subject(manifest)["metadata"]
    assert isinstance(metadata, dict)
    owner = {"apiVersion": "batch/v1", "kind": "CronJob", "controller": True}
    running = job("nightly-1", namespace=actor.own.name)
    running["metadata"]["ownerReferences"] = [
        {**owner, "name": metadata["name"], "uid": metadata["uid"]}
    ]
    actor.own.apply(running)
    actor.there_and_back(running, pod_count=1)


def test_finding_f9_a_bare_pod_is_evicted_unless_a_budget_keeps_it(actor: Actor) -> None:
    manifest = pod("shell", namespace=actor.own.name, template=pod_template(labels={"app": "x"}))
    actor.own.apply(manifest)
    actor.own.wait_for_pods(1, phase="Running")
    budget: Manifest = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "keep"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}},
    }
    actor.own.apply(budget)
    kind = "policy/v1/PodDisruptionBudget"
    actor.own.wait_until(
        lambda: actor.own.get(kind, "keep").get("status", {}).get("currentHealthy") == 1,
        what="the budget to count",
    )
    with pytest.raises(RefusedError, match="disruption budget"):
        actor.taken(manifest, Step.EVICT)
    assert len(actor.own.pods("Running")) == 1
    actor.own.delete(kind, "keep")
    before = actor.taken(manifest, Step.EVICT)
    actor.wait_until_effective(before)


@pytest.mark.parametrize(
    ("api_version", "kind", "path"),
    [
        ("kubeflow.org/v1", "Notebook", ("metadata", "annotations", "kubeflow-resource-stopped")),
        ("kubeflow.org/v1beta1", "Workspace", ("spec", "paused")),
        (
            "serving.kserve.io/v1beta1",
            "InferenceService",
            ("metadata", "annotations", "serving.kserve.io/stop"),
        ),
    ],
)
def test_a_kind_whose_controller_is_not_here(
    cluster: Cluster, actor: Actor, api_version: str, kind: str, path: tuple[str, ...]
) -> None:
    cluster.install_minimal_crds()
    manifest = custom(api_version, kind, {"template": {"spec": {"containers": []}}})
    actor.own.apply(manifest)
    found = actor.subject(manifest)
    before = actor.taken(manifest)
    assert value_at(actor.subject(manifest), *path) is not None
    assert actor.is_effective(before), "it has no pods here"
    actor.undone(before)
    restored = actor.subject(manifest)
    assert as_text(restored["spec"]) == as_text(found["spec"])
    assert value_at(restored, "metadata", "annotations") is None


def test_a_volcano_job_is_told_by_commands(cluster: Cluster, actor: Actor) -> None:
    cluster.install_minimal_crds()
    manifest = custom("batch.volcano.sh/v1alpha1", "Job", {"minAvailable": 2, "queue": "gpus"})
    actor.own.apply(manifest)
    spec = as_text(actor.subject(manifest)["spec"])
    before = actor.taken(manifest)
    (command,) = actor.own.list("bus.volcano.sh/v1alpha1/Command")
    assert (command["action"], command["target"]["name"]) == ("AbortJob", "one-job")
    assert not actor.is_effective(before), "nobody obeyed yet"
    obey(actor, "Aborted")
    assert actor.is_effective(before)
    actor.undone(before, is_seen=False)
    (resume,) = actor.own.list("bus.volcano.sh/v1alpha1/Command")
    assert resume["action"] == "ResumeJob"
    obey(actor, "Running")
    assert not is_taken(before, actor.subject(manifest))
    assert as_text(actor.subject(manifest)["spec"]) == spec


def obey(actor: Actor, phase: str) -> None:
    """Do with commands what Volcano's controller does: act, and take them away."""
    client, space = actor.own.client, actor.own.name
    change = {"status": {"state": {"phase": phase}}}
    client.patch(
        "batch.volcano.sh/v1alpha1/Job", "one-job", change, namespace=space, subresource="status"
    )
    client.delete_all("bus.volcano.sh/v1alpha1/Command", namespace=space)


def test_scenario_29_an_argo_owned_deployment_is_left_alone(actor: Actor) -> None:
    manifest = deployment("serve", namespace=actor.own.name)
    tracking = "app:apps/Deployment:team/serve"
    manifest["metadata"]["annotations"] = {"argocd.argoproj.io/tracking-id": tracking}
    actor.own.apply(manifest)
    found = reclaim(
        Step.SUSPEND,
        actor.subject(manifest),
        surroundings(actor.gateway, actor.own.name),
        order=ORDER,
    )
    assert isinstance(found, Refusal)
    assert found.reason is RefusalReason.GITOPS_OWNED


def test_a_job_set(operator: Actor) -> None:
    replicated = {"name": "workers", "replicas": 2, "template": {"spec": job_spec()}}
    manifest = custom("jobset.x-k8s.io/v1alpha2", "JobSet", {"replicatedJobs": [replicated]})
    operator.own.apply(manifest)
    operator.there_and_back(manifest, pod_count=2)


def job_spec() -> Manifest:
    """Return the spec of a Job of one pod, as in a JobSet."""
    spec = job("any", namespace="any")["spec"]
    return {key: spec[key] for key in ("parallelism", "completions", "backoffLimit", "template")}


@pytest.mark.parametrize("policy", [None, {"suspend": False, "cleanPodPolicy": "None"}])
def test_a_pytorch_job(operator: Actor, policy: Manifest | None) -> None:
    template = pod_template()
    template["spec"]["containers"][0]["name"] = "pytorch"
    role = {"replicas": 1, "restartPolicy": "OnFailure", "template": template}
    spec: Manifest = {"pytorchReplicaSpecs": {"Master": role, "Worker": role}}
    if policy is not None:
        spec["runPolicy"] = policy
    manifest = custom("kubeflow.org/v1", "PyTorchJob", spec)
    operator.own.apply(manifest)
    operator.there_and_back(manifest, pod_count=2)


@pytest.mark.parametrize(
    ("kind", "replicas", "container", "roles"),
    [
        ("TFJob", "tfReplicaSpecs", "tensorflow", ("Chief", "Worker")),
        ("XGBoostJob", "xgbReplicaSpecs", "xgboost", ("Master", "Worker")),
        ("PaddleJob", "paddleReplicaSpecs", "paddle", ("Master", "Worker")),
        ("MPIJob", "mpiReplicaSpecs", "mpi", ("Launcher", "Worker")),
        ("JAXJob", "jaxReplicaSpecs", "jax", ("Worker",)),
    ],
)
def test_a_training_job_of_another_framework(
    operator: Actor, kind: str, replicas: str, container: str, roles: tuple[str, ...]
) -> None:
    template = pod_template()
    template["spec"]["containers"][0]["name"] = container
    role = {"replicas": 1, "restartPolicy": "OnFailure", "template": template}
    manifest = custom("kubeflow.org/v1", kind, {replicas: dict.fromkeys(roles, role)})
    operator.own.apply(manifest)
    operator.there_and_back(manifest, pod_count=len(roles))


@pytest.mark.parametrize("more", [{}, {"suspend": False}], ids=["unsaid", "said to run"])
def test_a_ray_cluster(operator: Actor, more: Manifest) -> None:
    manifest = custom("ray.io/v1", "RayCluster", ray_spec(**more))
    operator.own.apply(manifest)
    operator.there_and_back(manifest, pod_count=2)


def test_a_ray_job(operator: Actor) -> None:
    spec = {
        "entrypoint": "true",
        "shutdownAfterJobFinishes": True,
        "rayClusterSpec": ray_spec(),
    }
    manifest = custom("ray.io/v1", "RayJob", spec)
    operator.own.apply(manifest)
    operator.own.wait_for_pods(3, phase="Running")
    operator.there_and_back(manifest, pod_count=3)


def with_queue(operated: Kueue, own: Namespace, *, gpu_count: int) -> None:
    """Make a queue of so many GPUs in a namespace."""
    operated.add_flavor()
    operated.add_cluster_queue(own.name, gpu_count=gpu_count)
    operated.add_local_queue("team", namespace=own.name, cluster_queue=own.name)


def queued_job(own: Namespace, name: str) -> Manifest:
    """Return a Job of eight GPUs in the queue."""
    labels = {QUEUE_LABEL: "team"}
    return job(name, namespace=own.name, template=pod_template(gpu_count=8), labels=labels)


def test_scenario_24_a_kueue_workload_frees_its_quota_and_queues_again(
    operated: Kueue, operator: Actor
) -> None:
    own = operator.own
    with_queue(operated, own, gpu_count=8)
    first, second = queued_job(own, "first"), queued_job(own, "second")
    own.apply(first)
    own.wait_for_pods(1, phase="Running")
    own.apply(second)
    operated.workload_of("second", namespace=own.name)
    assert runs(own) == {"first"}
    spec = as_text(own.get(WORKLOAD, entry_of(own, "first"))["spec"])
    before = operator.taken(first)
    assert before.holder.kind == "Workload"
    operator.wait_until_effective(before)
    own.wait_until(lambda: runs(own) == {"second"}, what="the second to have the GPUs")
    operator.undone(before)
    own.wait_until(
        lambda: reason_of(own, "first") == "Pending" and runs(own) == {"second"},
        what="the first to queue again",
    )
    (running,) = own.wait_for_pods(1, phase="Running")
    own.finish_pod(running["metadata"]["name"])
    own.wait_until(lambda: runs(own) == {"first"}, what="the first to run again")
    assert as_text(own.get(WORKLOAD, entry_of(own, "first"))["spec"]) == spec


def runs(own: Namespace) -> set[str]:
    """Return the Jobs that have a running pod."""
    label = "batch.kubernetes.io/job-name"
    return {each["metadata"]["labels"][label] for each in own.pods("Running")}


def entry_of(own: Namespace, name: str) -> str:
    """Return the name of an object's Workload."""
    found = own.list(WORKLOAD)
    return next(
        each["metadata"]["name"]
        for each in found
        if each["metadata"]["ownerReferences"][0]["name"] == name
    )


def reason_of(own: Namespace, name: str) -> str | None:
    """Return why a Workload has no quota; None while it has."""
    status = own.get(WORKLOAD, entry_of(own, name)).get("status", {})
    reserved = {each["type"]: each for each in status.get("conditions", [])}["QuotaReserved"]
    return None if reserved["status"] == "True" else reserved["reason"]


def test_scenario_26_a_queued_ray_cluster_is_taken_by_its_workload_alone(
    operated: Kueue, operator: Actor
) -> None:
    own = operator.own
    with_queue(operated, own, gpu_count=8)
    manifest = custom("ray.io/v1", "RayCluster", ray_spec(), queue="team")
    own.apply(manifest)
    own.wait_for_pods(2, phase="Running")
    around = surroundings(operator.gateway, own.name)
    running = operator.subject(manifest)
    assert managers_of(running, around) == {Manager.KUEUE}
    before = operator.taken(manifest)
    assert (before.holder.kind, before.subject.kind) == ("Workload", "RayCluster")
    operator.wait_until_effective(before)
    assert value_at(operator.subject(manifest), "spec", "suspend") is True, "Kueue wrote it"
    operator.undone(before)
    own.wait_for_pods(2, phase="Running")
    own.wait_until(
        lambda: operator.subject(manifest)["spec"] == running["spec"], what="the spec as it was"
    )


def test_finding_f8_suspending_a_queued_job_by_hand_does_not_last(
    operated: Kueue, operator: Actor
) -> None:
    own = operator.own
    with_queue(operated, own, gpu_count=8)
    manifest = queued_job(own, "first")
    own.apply(manifest)
    own.wait_for_pods(1, phase="Running")
    own.client.patch("batch/v1/Job", "first", {"spec": {"suspend": True}}, namespace=own.name)
    own.wait_until(
        lambda: own.get("batch/v1/Job", "first")["spec"]["suspend"] is False,
        what="Kueue to let it run again",
    )
    found = reclaim(
        Step.SUSPEND,
        operator.subject(manifest),
        surroundings(operator.gateway, own.name),
        order=ORDER,
    )
    assert isinstance(found, Act)
    assert found.write.target.kind == "Workload"


def test_a_queued_job_gets_a_lower_priority_without_losing_its_gpus(
    operated: Kueue, operator: Actor
) -> None:
    own = operator.own
    with_queue(operated, own, gpu_count=8)
    for name, value in (("low", 1), ("high", 100)):
        made = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "WorkloadPriorityClass"}
        own.client.apply({**made, "metadata": {"name": name}, "value": value})
    manifest = queued_job(own, "first")
    manifest["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] = "high"
    own.apply(manifest)
    own.wait_for_pods(1, phase="Running")

    def priority() -> int:
        found: int = own.get(WORKLOAD, entry_of(own, "first"))["spec"]["priority"]
        return found

    assert priority() == 100
    before = operator.taken(manifest, Step.LOWER_PRIORITY)
    own.wait_until(lambda: priority() == 1, what="Kueue to take the lower priority over")
    assert operator.is_effective(before)
    assert len(own.pods("Running")) == 1
    operator.undone(before)
    own.wait_until(lambda: priority() == 100, what="its own priority to be back")
