"""Each kind's own way of giving GPUs back, and the way back from there."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from enforcer.actuators import (
    Act,
    Order,
    Refusal,
    RefusalReason,
    Surroundings,
    before_image,
    is_effective,
    is_restored,
    is_taken,
    live_pods,
    managers_of,
    reclaim,
    restore,
    tidied,
)
from enforcer.actuators.fields import target_of, value_at
from enforcer.actuators.kinds import CATALOGUE, Actuator, Means
from enforcer.decisions import Step
from enforcer.facts import Manager
from enforcer.gateway.memory import MemoryGateway
from enforcer.gateway.port import KubernetesObject, Verb, Write
from steward.errors import InputError
from tests.support.enforcer_objects import (
    Json,
    deployment,
    owned_by,
    pod,
    queue_entry,
    scaler,
    thing,
)

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
ORDER = Order(action_id="a-1", at=NOON)
ALONE = Surroundings()
QUEUED: Json = {"labels": {"kueue.x-k8s.io/queue-name": "gpus"}}
SUSPENDED = ("spec", "suspend")
SPECS: dict[str, Json] = {
    "Deployment": {"replicas": 3, "selector": {"matchLabels": {"app": "one"}}},
    "ReplicaSet": {"replicas": 2, "selector": {"matchLabels": {"app": "one"}}},
    "StatefulSet": {"replicas": 1, "selector": {"matchLabels": {"app": "one"}}},
    "LeaderWorkerSet": {"replicas": 1},
    "Workload": {"active": True},
    "RayJob": {"shutdownAfterJobFinishes": True},
}


def act_on(subject: KubernetesObject, around: Surroundings = ALONE, **changes: object) -> Act:
    """Return the act that suspends an object."""
    found = reclaim(Step.SUSPEND, subject, around, order=order(**changes))
    assert isinstance(found, Act), found
    return found


def refused(
    subject: KubernetesObject, around: Surroundings = ALONE, step: Step = Step.SUSPEND
) -> RefusalReason:
    """Return why an act is refused."""
    found = reclaim(step, subject, around, order=ORDER)
    assert isinstance(found, Refusal), found
    return found.reason


def order(**changes: object) -> Order:
    return Order(**{"action_id": "a-1", "at": NOON, **changes})  # type: ignore[arg-type]  # as given


@pytest.mark.parametrize(
    ("kind", "group", "means", "body"),
    [
        ("Deployment", "apps", Verb.SCALE, {"spec": {"replicas": 0}}),
        ("ReplicaSet", "apps", Verb.SCALE, {"spec": {"replicas": 0}}),
        ("StatefulSet", "apps", Verb.SCALE, {"spec": {"replicas": 0}}),
        ("LeaderWorkerSet", "leaderworkerset.x-k8s.io", Verb.SCALE, {"spec": {"replicas": 0}}),
        ("Job", "batch", Verb.PATCH, {"spec": {"suspend": True}}),
        ("CronJob", "batch", Verb.PATCH, {"spec": {"suspend": True}}),
        ("JobSet", "jobset.x-k8s.io", Verb.PATCH, {"spec": {"suspend": True}}),
        ("TrainJob", "trainer.kubeflow.org", Verb.PATCH, {"spec": {"suspend": True}}),
        ("PyTorchJob", "kubeflow.org", Verb.PATCH, {"spec": {"runPolicy": {"suspend": True}}}),
        ("TFJob", "kubeflow.org", Verb.PATCH, {"spec": {"runPolicy": {"suspend": True}}}),
        ("MPIJob", "kubeflow.org", Verb.PATCH, {"spec": {"runPolicy": {"suspend": True}}}),
        ("XGBoostJob", "kubeflow.org", Verb.PATCH, {"spec": {"runPolicy": {"suspend": True}}}),
        ("PaddleJob", "kubeflow.org", Verb.PATCH, {"spec": {"runPolicy": {"suspend": True}}}),
        ("JAXJob", "kubeflow.org", Verb.PATCH, {"spec": {"runPolicy": {"suspend": True}}}),
        ("Workspace", "kubeflow.org", Verb.PATCH, {"spec": {"paused": True}}),
        ("RayCluster", "ray.io", Verb.PATCH, {"spec": {"suspend": True}}),
        ("RayJob", "ray.io", Verb.PATCH, {"spec": {"suspend": True}}),
        (
            "RayService",
            "ray.io",
            Verb.PATCH,
            {"spec": {"rayClusterConfig": {"suspend": True}}},
        ),
        ("SparkApplication", "sparkoperator.k8s.io", Verb.PATCH, {"spec": {"suspend": True}}),
        ("AppWrapper", "workload.codeflare.dev", Verb.PATCH, {"spec": {"suspend": True}}),
        ("Workload", "kueue.x-k8s.io", Verb.PATCH, {"spec": {"active": False}}),
        (
            "Notebook",
            "kubeflow.org",
            Verb.PATCH,
            {"metadata": {"annotations": {"kubeflow-resource-stopped": "2026-06-01T12:00:00Z"}}},
        ),
        (
            "InferenceService",
            "serving.kserve.io",
            Verb.PATCH,
            {"metadata": {"annotations": {"serving.kserve.io/stop": "true"}}},
        ),
    ],
)
def test_each_kind_is_reclaimed_in_its_own_way(
    kind: str, group: str, means: Verb, body: KubernetesObject
) -> None:
    subject = thing(kind, group=group, spec=SPECS.get(kind, {"keep": 1}))
    act = act_on(subject)
    assert act.write == Write(
        verb=means, target=target_of(subject), body=body, resource_version="7"
    )


BY_FIELD = [each for each in CATALOGUE if each.means is not Means.COMMAND]


@pytest.mark.parametrize("actuator", BY_FIELD, ids=lambda each: each.resource)
@pytest.mark.parametrize("annotations", [None, {"mine": "1"}], ids=["bare", "annotated"])
def test_every_kind_comes_back_as_it_was(actuator: Actuator, annotations: Json | None) -> None:
    spec: Json = SPECS.get(actuator.kind, {"template": {"spec": {}}, "more": [1, {"a": None}]})
    metadata: Json = {} if annotations is None else {"annotations": annotations}
    subject = thing(actuator.kind, group=actuator.group, spec=spec, metadata=metadata)
    gateway = MemoryGateway([subject])
    act = act_on(gateway.read(target_of(subject)) or {})
    taken = gateway.write(act.write)
    before = before_image(act.before.text())
    assert before == act.before
    assert (is_taken(before, taken), is_restored(before, taken)) == (True, False)
    assert refused(taken) is RefusalReason.ALREADY_TAKEN
    undo = restore(before, taken, order=ORDER)
    assert isinstance(undo, Write), undo
    restored = gateway.write(undo)
    assert (is_taken(before, restored), is_restored(before, restored)) == (False, True)
    tidy = tidied(before, restored)
    assert (tidy is not None) == (actuator.resumed is not None)
    last = restored if tidy is None else gateway.write(tidy)
    assert last["spec"] == spec
    assert (value_at(last, "metadata", "annotations") or None) == annotations
    assert tidied(before, last) is None


@pytest.mark.parametrize(
    ("spec", "changed"),
    [
        pytest.param({}, {}, id="no run policy"),
        pytest.param({"runPolicy": {}}, {}, id="an empty one"),
        pytest.param({"runPolicy": {"suspend": False}}, {}, id="said to run"),
        pytest.param({"runPolicy": {"ttl": 5}}, {}, id="other limits"),
        pytest.param({}, {"ttl": 5}, id="limits that came meanwhile"),
    ],
)
def test_a_run_policy_comes_back_with_what_others_wrote(spec: Json, changed: Json) -> None:
    gateway = MemoryGateway([thing("PyTorchJob", group="kubeflow.org", spec=spec)])
    target = target_of(thing("PyTorchJob", group="kubeflow.org"))
    read = gateway.read(target)
    assert read is not None
    act = act_on(read)
    gateway.write(act.write)
    body: Json = {"spec": {"runPolicy": changed}}
    taken = gateway.write(Write(verb=Verb.PATCH, target=target, body=body, resource_version=None))
    undo = restore(act.before, taken, order=ORDER)
    assert isinstance(undo, Write)
    expected: Json = {"runPolicy": changed} if changed else spec
    assert gateway.write(undo)["spec"] == expected


def test_volcano_is_told_by_a_command_and_resumed_by_another() -> None:
    job = thing("Job", group="batch.volcano.sh", status={"state": {"phase": "Running"}})
    act = act_on(job)
    assert act.write.verb is Verb.CREATE
    assert act.write.target.kind == "Command"
    assert act.write.body["action"] == "AbortJob"
    assert act_on(job).write == act.write, "done twice it is the same object"
    assert not is_taken(act.before, job)
    aborted = {**job, "status": {"state": {"phase": "Aborted"}}}
    assert is_taken(act.before, aborted)
    assert is_effective(act.before, aborted, [])
    undo = restore(act.before, aborted, order=ORDER)
    assert isinstance(undo, Write)
    assert (undo.body["action"], undo.target.kind) == ("ResumeJob", "Command")
    assert undo.target.name != act.write.target.name
    assert is_restored(act.before, job)


@pytest.mark.parametrize(
    ("kind", "group"),
    [
        ("Job", "batch"),
        ("JobSet", "jobset.x-k8s.io"),
        ("PyTorchJob", "kubeflow.org"),
        ("RayCluster", "ray.io"),
    ],
)
def test_finding_f8_what_kueue_manages_is_only_deactivated(kind: str, group: str) -> None:
    job = thing(kind, group=group, metadata=QUEUED)
    other = thing(kind, group=group, name="other", metadata=QUEUED)
    entry = queue_entry(job)
    around = Surroundings(queue_entries=(queue_entry(other, name="an-other"), entry))
    assert managers_of(job, around) == {Manager.KUEUE}
    act = act_on(job, around)
    assert act.write.target == target_of(entry)
    assert act.write.body == {"spec": {"active": False}}
    assert act.before.subject == target_of(job)
    assert act.before.pod_labels == act_on(thing(kind, group=group)).before.pod_labels


def test_scenario_26_who_owns_the_suspend_field_of_a_ray_cluster() -> None:
    plain = thing("RayCluster", group="ray.io")
    assert act_on(plain).write.body == {"spec": {"suspend": True}}
    queued = thing("RayCluster", group="ray.io", metadata=QUEUED)
    assert refused(queued) is RefusalReason.QUEUE_ENTRY_MISSING
    around = Surroundings(queue_entries=(queue_entry(queued),))
    assert act_on(queued, around).write.target.kind == "Workload"


def test_kueue_manages_also_what_has_no_label_but_an_entry() -> None:
    job = thing("Job")
    assert managers_of(job, Surroundings(queue_entries=(queue_entry(job),))) == {Manager.KUEUE}


def test_a_deployment_in_a_queue_is_scaled_since_its_pods_would_be_made_again() -> None:
    subject = deployment(metadata=QUEUED)
    assert managers_of(subject, ALONE) == frozenset()
    assert act_on(subject).write.verb is Verb.SCALE


def test_keda_is_paused_at_zero_and_its_target_left_alone() -> None:
    subject = deployment()
    keda = scaler("ScaledObject", "keda.sh/v1alpha1", subject)
    hpa = scaler("HorizontalPodAutoscaler", "autoscaling/v2", subject)
    around = Surroundings(autoscalers=(hpa,), scaled_objects=(keda,))
    assert managers_of(subject, around) == {Manager.KEDA}, "its autoscaler is KEDA's own"
    act = act_on(subject, around)
    assert act.write.target.kind == "ScaledObject"
    assert act.write.body == {
        "metadata": {"annotations": {"autoscaling.keda.sh/paused-replicas": "0"}}
    }
    assert act.before.pod_labels == "app=one"


def test_an_autoscaler_lets_zero_be_and_goes_on_from_the_restored_count() -> None:
    subject = deployment()
    hpa = scaler("HorizontalPodAutoscaler", "autoscaling/v2", subject)
    around = Surroundings(autoscalers=(hpa,))
    assert managers_of(subject, around) == {Manager.HPA}
    act = act_on(subject, around)
    taken = MemoryGateway([subject]).write(
        Write(
            verb=act.write.verb, target=act.write.target, body=act.write.body, resource_version=None
        )
    )
    undo = restore(act.before, taken, order=ORDER)
    assert isinstance(undo, Write)
    assert (undo.verb, undo.body) == (Verb.SCALE, {"spec": {"replicas": 3}})


def test_an_autoscaler_of_another_object_has_no_word() -> None:
    subject = deployment()
    hpa = scaler("HorizontalPodAutoscaler", "autoscaling/v2", deployment(name="two"))  # type: ignore[arg-type]  # a name
    assert managers_of(subject, Surroundings(autoscalers=(hpa,))) == frozenset()


GITOPS_SIGNS: tuple[Json, ...] = (
    {"annotations": {"argocd.argoproj.io/tracking-id": "app:apps/Deployment:team-a/one"}},
    {"labels": {"kustomize.toolkit.fluxcd.io/name": "apps"}},
    {"labels": {"helm.toolkit.fluxcd.io/name": "apps"}},
    {
        "managedFields": [
            {"manager": "argocd-controller", "fieldsV1": {"f:spec": {"f:replicas": {}}}}
        ]
    },
)


@pytest.mark.parametrize("metadata", GITOPS_SIGNS, ids=["argo", "kustomize", "helm", "writer"])
def test_scenario_29_what_is_kept_as_git_has_it_is_only_told(metadata: Json) -> None:
    subject = deployment(metadata=metadata)
    assert managers_of(subject, ALONE) == {Manager.GITOPS}
    assert refused(subject) is RefusalReason.GITOPS_OWNED
    assert act_on(subject, overrides_gitops=True).write.verb is Verb.SCALE


@pytest.mark.parametrize(
    "metadata",
    [
        {},
        {"labels": {"app.kubernetes.io/instance": "one", "app.kubernetes.io/managed-by": "Helm"}},
        {"managedFields": [{"manager": "kubectl", "fieldsV1": {"f:spec": {"f:replicas": {}}}}]},
        {
            "managedFields": [
                {"manager": "argocd-controller", "fieldsV1": {"f:metadata": {"f:labels": {}}}}
            ]
        },
    ],
    ids=["nothing", "helm by hand", "kubectl", "argo, another field"],
)
def test_what_people_apply_by_hand_is_not_gitops(metadata: Json) -> None:
    assert managers_of(deployment(metadata=metadata), ALONE) == frozenset()


def test_gitops_does_not_write_what_kueue_owns() -> None:
    job = thing("Job", metadata={**QUEUED, **GITOPS_SIGNS[0]})
    around = Surroundings(queue_entries=(queue_entry(job),))
    assert managers_of(job, around) == {Manager.KUEUE}
    assert act_on(job, around).write.target.kind == "Workload"


def test_what_another_object_controls_is_not_touched() -> None:
    job_set = thing("JobSet", group="jobset.x-k8s.io")
    job = thing("Job", metadata=owned_by(job_set))
    assert managers_of(job, ALONE) == {Manager.OWNER}
    assert refused(job) is RefusalReason.GO_TO_OWNER
    assert refused(job, step=Step.LOWER_PRIORITY) is RefusalReason.GO_TO_OWNER


def test_a_cron_job_leaves_its_running_jobs_to_us() -> None:
    job = thing("Job", metadata=owned_by(thing("CronJob")))
    assert managers_of(job, ALONE) == frozenset()
    assert act_on(job).write.body == {"spec": {"suspend": True}}


def test_a_kind_without_a_way_is_refused() -> None:
    assert refused({**thing("Job"), "apiVersion": "example.org/v1"}) is (
        RefusalReason.KIND_NOT_SERVED
    )
    assert refused(pod()) is RefusalReason.KIND_NOT_SERVED, "a pod cannot be suspended"


@pytest.mark.parametrize(
    ("spec", "is_refused"),
    [
        ({}, True),
        ({"shutdownAfterJobFinishes": False}, True),
        ({"shutdownAfterJobFinishes": True}, False),
        ({"shutdownAfterJobFinishes": True, "clusterSelector": {}}, False),
        ({"shutdownAfterJobFinishes": True, "clusterSelector": {"ray.io/cluster": "a"}}, True),
    ],
)
def test_a_ray_job_that_kuberay_would_fail_is_not_suspended(
    spec: Json, *, is_refused: bool
) -> None:
    subject = thing("RayJob", group="ray.io", spec=spec)
    if is_refused:
        assert refused(subject) is RefusalReason.NOT_SUSPENDABLE
    else:
        assert act_on(subject).write.body == {"spec": {"suspend": True}}


@pytest.mark.parametrize("step", [Step.FINDING, Step.NOTIFY])
def test_a_step_that_writes_no_object_has_no_act(step: Step) -> None:
    assert refused(thing("Job"), step=step) is RefusalReason.KIND_NOT_SERVED


def test_only_a_bare_pod_is_evicted_and_never_brought_back() -> None:
    found = reclaim(Step.EVICT, pod(), ALONE, order=ORDER)
    assert isinstance(found, Act)
    assert (found.write.verb, found.write.target) == (Verb.EVICT, target_of(pod()))
    assert not is_effective(found.before, None, [pod()])
    assert is_effective(found.before, None, [pod("another")])
    undo = restore(found.before, None, order=ORDER)
    assert isinstance(undo, Refusal)
    assert undo.reason is RefusalReason.NOT_RESTORABLE
    owned = {**pod(), "metadata": {"name": "pod", **owned_by(thing("Job"))}}
    assert refused(owned, step=Step.EVICT) is RefusalReason.NOT_A_BARE_POD
    assert refused(thing("Job"), step=Step.EVICT) is RefusalReason.NOT_A_BARE_POD


def test_a_kueue_job_gets_a_lower_priority_class_and_its_own_again() -> None:
    label = "kueue.x-k8s.io/priority-class"
    labels: Json = {"kueue.x-k8s.io/queue-name": "gpus", label: "high"}
    job = thing("Job", metadata={"labels": labels})
    ordered = order(low_priority_class="low")
    act = reclaim(Step.LOWER_PRIORITY, job, ALONE, order=ordered)
    assert isinstance(act, Act)
    assert act.write.body == {"metadata": {"labels": {label: "low"}}}
    lowered: Json = {**job, "metadata": {"labels": {**labels, label: "low"}}}
    assert is_effective(act.before, lowered, [pod()]), "its pods stay"
    undo = restore(act.before, lowered, order=ordered)
    assert isinstance(undo, Write)
    assert undo.body == {"metadata": {"labels": {label: "high"}}}


def test_a_kai_workload_becomes_preemptible() -> None:
    subject = thing(
        "PyTorchJob", group="kubeflow.org", metadata={"labels": {"kai.scheduler/queue": "a"}}
    )
    act = reclaim(Step.LOWER_PRIORITY, subject, ALONE, order=ORDER)
    assert isinstance(act, Act)
    assert act.write.body == {
        "metadata": {"labels": {"kai.scheduler/preemptibility": "preemptible"}}
    }


@pytest.mark.parametrize("metadata", [{}, QUEUED], ids=["no queue", "no lower class named"])
def test_without_a_lower_priority_nothing_is_lowered(metadata: Json) -> None:
    job = thing("Job", metadata=metadata)
    assert refused(job, step=Step.LOWER_PRIORITY) is RefusalReason.NO_LOWER_PRIORITY


TAKEN_SPEC: Json = {"suspend": True}
OWN_LABELS: Json = {"batch.kubernetes.io/controller-uid": "uid-Job-one"}


@pytest.mark.parametrize(
    ("spec", "pods", "expected"),
    [
        pytest.param(TAKEN_SPEC, [], True, id="no pod left"),
        pytest.param(TAKEN_SPEC, [pod(labels=OWN_LABELS)], False, id="one runs"),
        pytest.param(TAKEN_SPEC, [pod(labels=OWN_LABELS, phase="Pending")], False, id="waits"),
        pytest.param(TAKEN_SPEC, [pod(labels=OWN_LABELS, phase="Succeeded")], True, id="ended"),
        pytest.param(TAKEN_SPEC, [pod(labels={})], True, id="another's"),
        pytest.param(TAKEN_SPEC, [pod("known", labels={})], False, id="known by its uid"),
        pytest.param({"suspend": False}, [], False, id="resumed by others"),
        pytest.param({}, [], False, id="never suspended"),
    ],
)
def test_scenario_24_only_pods_that_are_gone_free_gpus(
    spec: Json, pods: list[Json], *, expected: bool
) -> None:
    act = act_on(thing("Job"), pod_uids=("uid-known",))
    assert is_effective(act.before, thing("Job", spec=spec), pods) is expected


def test_scenario_24_an_inactive_workload_whose_job_runs_on_frees_nothing() -> None:
    job = thing("Job", metadata=QUEUED)
    act = act_on(job, Surroundings(queue_entries=(queue_entry(job),)))
    inactive = {**queue_entry(job, has_quota=False), "spec": {"active": False}}
    still_reserved = {**queue_entry(job), "spec": {"active": False}}
    running = pod(labels=OWN_LABELS)
    assert live_pods(act.before, [running]) == ("pod",)
    assert not is_effective(act.before, inactive, [running])
    assert not is_effective(act.before, still_reserved, [])
    assert is_effective(act.before, inactive, [])
    reactivated = {**inactive, "spec": {"active": True}}
    assert not is_effective(act.before, reactivated, []), "an edit of the job re-activates it"


def test_what_somebody_put_back_is_not_put_back_twice() -> None:
    act = act_on(deployment())
    scaled: Json = {**deployment(), "spec": {"replicas": 1}}
    undo = restore(act.before, scaled, order=ORDER)
    assert isinstance(undo, Refusal)
    assert undo.reason is RefusalReason.RESTORED_BY_OTHERS
    gone = restore(act.before, None, order=ORDER)
    assert isinstance(gone, Refusal)
    assert gone.reason is RefusalReason.OBJECT_GONE


def test_a_deployment_that_has_no_pods_gives_none_back() -> None:
    empty: Json = {**deployment(), "spec": {"replicas": 0}}
    assert refused(empty) is RefusalReason.ALREADY_TAKEN


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"step":"suspend"}', "null"])
def test_a_before_image_that_is_none_is_told(text: str) -> None:
    with pytest.raises(InputError, match="before-image"):
        before_image(text)


def test_scenario_07_a_restored_notebook_has_no_stale_activity() -> None:
    activity = "notebooks.kubeflow.org/last-activity"
    stale: Json = {"annotations": {activity: "2026-05-31T00:00:00Z"}}
    gateway = MemoryGateway([thing("Notebook", group="kubeflow.org", metadata=stale)])
    target = target_of(thing("Notebook", group="kubeflow.org"))
    read = gateway.read(target)
    assert read is not None
    act = act_on(read)
    taken = gateway.write(act.write)
    undo = restore(act.before, taken, order=ORDER)
    assert isinstance(undo, Write)
    restored = gateway.write(undo)
    for _round in range(3):
        assert not would_be_culled(restored), "the culler stops it again"
    assert is_restored(act.before, restored)


def would_be_culled(notebook: KubernetesObject) -> bool:
    """Return what Kubeflow's culler does: without a last activity it starts its clock anew."""
    metadata = notebook["metadata"]
    assert isinstance(metadata, dict)
    annotations = metadata.get("annotations") or {}
    assert isinstance(annotations, dict)
    return "notebooks.kubeflow.org/last-activity" in annotations
