"""What live objects say beside the warehouse: managers, versions, pods and disruption budgets.

Only workloads for which a step on an object is due are read. What cannot be read, or is gone, has
no ``resource_version``: a plan leaves such a workload alone.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from enforcer.actuators import Surroundings, managers_of
from enforcer.actuators.fields import (
    controller_of,
    items_at,
    mapping_at,
    target_of,
    text_at,
    texts_at,
    whole_at,
)
from enforcer.actuators.kinds import actuator_of, is_pod
from enforcer.decisions import TAKING_STEPS, Decision, Step
from enforcer.facts import Disruption, PodFact, Snapshot, Workload
from enforcer.gateway.port import Gateway, KubernetesObject, Target
from enforcer.planning.stakes import checkpoint_at
from steward.errors import ClusterError

WRITTEN_STEPS: Final = TAKING_STEPS | {Step.LOWER_PRIORITY}
"""Steps that write an object of the owner's."""
UNREAD: Final = ""
"""The ``resource_version`` of a workload whose object is gone or could not be read."""
_QUEUE_ENTRIES: Final = ("kueue.x-k8s.io/v1beta2", "kueue.x-k8s.io/v1beta1")
_AUTOSCALERS: Final = "autoscaling/v2"
_SCALED_OBJECTS: Final = "keda.sh/v1alpha1"
_BUDGETS: Final = "policy/v1"
_HELD_PHASES: Final = frozenset({"Pending", "Running", "Unknown"})
_GPU_RESOURCES: Final = re.compile(
    r"(nvidia\.com/(gpu|gpu\.shared|mig-[\w.-]+)|amd\.com/gpu(_\w+)?|gpu\.intel\.com/(i915|xe)"
    r"|huawei\.com/(Ascend\w*|npu))"
)
"""Resources that count devices, instances or shares, not their memory or cores."""
_OTHER_VERSIONS: Final = {
    "Job": ("batch.volcano.sh/v1alpha1",),
    "MPIJob": ("kubeflow.org/v2beta1",),
    "Notebook": ("kubeflow.org/v1beta1",),
    "RayCluster": ("ray.io/v1alpha1",),
    "RayJob": ("ray.io/v1alpha1",),
    "RayService": ("ray.io/v1alpha1",),
}
"""Where else an object of a kind may be that is not found where it usually is."""


def enriched(snapshot: Snapshot, decisions: Iterable[Decision], gateway: Gateway) -> Snapshot:
    """Return the snapshot with what the live objects of due workloads say.

    A namespace that cannot be read leaves its workloads unread; the others go on.
    """
    due = {each.workload_uid for each in decisions if each.step in WRITTEN_STEPS}
    reading = _Reading(gateway)
    workloads = tuple(
        reading.workload(each) if each.uid in due else each for each in snapshot.workloads
    )
    disruptions = {(each.namespace, each.name): each for each in snapshot.disruptions}
    disruptions |= {(each.namespace, each.name): each for each in reading.disruptions}
    ordered = tuple(disruptions[key] for key in sorted(disruptions))
    return replace(snapshot, workloads=workloads, disruptions=ordered, is_live=True)


def surroundings(gateway: Gateway, namespace: str | None) -> Surroundings:
    """Return what in a namespace may have a word about its workloads.

    Raises:
        ClusterError: it could not be read; then nothing is known and nothing may act.
    """
    entries: Sequence[KubernetesObject] = ()
    for version in _QUEUE_ENTRIES:
        entries = entries or gateway.list(api_version=version, kind="Workload", namespace=namespace)
    return Surroundings(
        queue_entries=tuple(entries),
        autoscalers=tuple(
            gateway.list(
                api_version=_AUTOSCALERS, kind="HorizontalPodAutoscaler", namespace=namespace
            )
        ),
        scaled_objects=tuple(
            gateway.list(api_version=_SCALED_OBJECTS, kind="ScaledObject", namespace=namespace)
        ),
    )


def subject_target(workload: Workload) -> Target:
    """Return how a workload's own object is addressed."""
    return Target(
        api_version=workload.api_version,
        kind=workload.kind,
        namespace=workload.namespace,
        name=workload.name,
        uid=workload.object_uid or None,
    )


@dataclass(slots=True)
class _Namespace:
    """What was read once of one namespace."""

    around: Surroundings
    pods: Sequence[KubernetesObject]


@dataclass(slots=True)
class _Reading:
    """Reads each namespace once."""

    gateway: Gateway
    disruptions: list[Disruption] = field(default_factory=list)
    _namespaces: dict[str, _Namespace | None] = field(default_factory=dict)

    def workload(self, workload: Workload) -> Workload:
        """Return a workload as it is now."""
        space = self._namespace(workload.namespace)
        subject = None if space is None else self._subject(workload)
        if space is None or subject is None:
            return replace(workload, resource_version=UNREAD)
        metadata = mapping_at(subject, "metadata")
        annotations = {**workload.annotations, **texts_at(metadata, "annotations")}
        return replace(
            workload,
            api_version=text_at(subject, "apiVersion") or workload.api_version,
            object_uid=text_at(metadata, "uid") or "",
            resource_version=text_at(metadata, "resourceVersion") or UNREAD,
            labels={**workload.labels, **texts_at(metadata, "labels")},
            annotations=annotations,
            checkpoint_at=checkpoint_at(annotations),
            managers=managers_of(subject, space.around),
            pods=_own_pods(subject, workload, space.pods),
        )

    def _subject(self, workload: Workload) -> KubernetesObject | None:
        target = subject_target(workload)
        others = _OTHER_VERSIONS.get(target.kind, ())
        targets = (target, *(replace(target, api_version=other) for other in others))
        try:
            found = (self.gateway.read(each) for each in targets)
            return next((thing for thing in found if thing is not None), None)
        except ClusterError:
            return None

    def _namespace(self, name: str) -> _Namespace | None:
        if name not in self._namespaces:
            self._namespaces[name] = self._read_namespace(name)
        return self._namespaces[name]

    def _read_namespace(self, name: str) -> _Namespace | None:
        try:
            around = surroundings(self.gateway, name)
            pods = self.gateway.list(api_version="v1", kind="Pod", namespace=name)
            budgets = self.gateway.list(
                api_version=_BUDGETS, kind="PodDisruptionBudget", namespace=name
            )
        except ClusterError:
            return None
        self.disruptions += [_disruption(each) for each in budgets]
        return _Namespace(around, pods)


def _own_pods(
    subject: KubernetesObject, workload: Workload, pods: Iterable[KubernetesObject]
) -> tuple[PodFact, ...]:
    """Return the pods of a workload that hold or wait, ascending by uid."""
    known = {each.uid: each for each in workload.pods}
    labels = _pod_labels(subject)
    uids = {*known, target_of(subject).uid}
    own = (pod for pod in pods if _is_own(pod, labels=labels, uids=uids) and _is_held(pod))
    return tuple(sorted((_pod_fact(pod, known) for pod in own), key=lambda fact: fact.uid))


def _is_own(
    pod: KubernetesObject, *, labels: Mapping[str, str], uids: Collection[str | None]
) -> bool:
    found = texts_at(pod, "metadata", "labels")
    is_labelled = bool(labels) and all(found.get(key) == text for key, text in labels.items())
    return is_labelled or target_of(pod).uid in uids


def _is_held(pod: KubernetesObject) -> bool:
    return (text_at(pod, "status", "phase") or "Pending") in _HELD_PHASES


def _pod_labels(subject: KubernetesObject) -> dict[str, str]:
    target = target_of(subject)
    actuator = actuator_of(target.api_version, target.kind)
    if actuator is None or is_pod(subject):
        return {}
    terms = (term.partition("=") for term in actuator.pod_labels(subject).split(",") if term)
    return {key: text for key, _, text in terms}


def _pod_fact(pod: KubernetesObject, known: Mapping[str, PodFact]) -> PodFact:
    """Return a pod as it is now; what the warehouse knows of its GPUs stays."""
    target = target_of(pod)
    former = known.get(target.uid or "")
    counted = sum(_gpus(each) for each in items_at(pod, "spec", "containers"))
    return PodFact(
        uid=target.uid or "",
        name=target.name,
        node=text_at(pod, "spec", "nodeName"),
        phase=text_at(pod, "status", "phase") or "Pending",
        gpu_count=counted if former is None else former.gpu_count,
        labels=texts_at(pod, "metadata", "labels"),
        has_controller=controller_of(pod) is not None,
    )


def _gpus(container: KubernetesObject) -> int:
    """Return the GPUs and instances that a container asks for, of any vendor."""
    amounts = mapping_at(container, "resources", "limits")
    return sum(
        whole_at(amounts, name) or _whole(text_at(amounts, name))
        for name in amounts
        if _GPU_RESOURCES.fullmatch(name)
    )


def _whole(text: str | None) -> int:
    return int(text) if text is not None and text.isdecimal() else 0


def _disruption(budget: KubernetesObject) -> Disruption:
    """Return a budget; one that is not told by equalities counts for the whole namespace."""
    selector = mapping_at(budget, "spec", "selector")
    has_expressions = bool(items_at(selector, "matchExpressions"))
    target = target_of(budget)
    return Disruption(
        namespace=target.namespace or "",
        name=target.name,
        match_labels={} if has_expressions else texts_at(selector, "matchLabels"),
        allowed_disruption_count=whole_at(budget, "status", "disruptionsAllowed") or 0,
    )
