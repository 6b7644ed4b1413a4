"""Whose a workload is and what it is for, from labels and a list of small rules.

A rule is a class and the conditions that must all hold, as in ``inference: kind=Deployment
namespace=prod-*``. Values are glob patterns; the first rule that fits counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Final

from collector.ownership import OwnershipLevel
from steward.errors import SettingsError
from steward.settings.model import OwnershipSettings

CLASSES: Final = ("training", "inference", "development", "system")
FIELDS: Final = ("kind", "namespace", "queue", "priority-class")
LABEL_PREFIX: Final = "label."
NAMESPACE_FIELD: Final = "metadata.namespace"
"""Among the team labels this stands for the namespace's own name."""

BUILT_IN: Final = (
    "system: namespace=kube-*",
    "system: namespace=gpu-operator",
    "system: kind=DaemonSet",
    "system: kind=ClusterPolicy",
    "system: kind=Node",
    "development: kind=Notebook",
    "development: kind=Workspace",
    "development: label.component=singleuser-server",
    "inference: kind=InferenceService",
    "inference: kind=LLMInferenceService",
    "inference: kind=RayService",
    "inference: kind=NIMService",
    "inference: kind=DynamoGraphDeployment",
    "inference: kind=LeaderWorkerSet",
    "inference: kind=Deployment",
    "inference: kind=ReplicaSet",
    "training: kind=*Job",
    "training: kind=JobSet",
    "training: kind=RayCluster",
    "training: kind=Workflow",
    "training: kind=CronWorkflow",
    "training: kind=AppWrapper",
    "training: kind=PodGroup",
    "training: kind=SparkApplication",
)
"""What kinds are usually for; own rules come before these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What a class is judged by."""

    kind: str
    namespace: str | None
    queue: str | None
    priority_class: str | None
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassRule:
    """A class, and what must hold for it."""

    workload_class: str
    conditions: tuple[tuple[str, str], ...]
    """Field and pattern; a field is one of ``FIELDS``, or ``label.`` with the label's key."""

    def fits(self, subject: Subject) -> bool:
        """Return whether all conditions hold; what is not known fits nothing."""
        return all(
            text is not None and fnmatchcase(text, pattern)
            for text, pattern in (
                (_text(subject, name), pattern) for name, pattern in self.conditions
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnershipRules:
    """How tenants, persons and classes are found."""

    team_labels: tuple[str, ...] = OwnershipSettings().team_labels
    owner_labels: tuple[str, ...] = OwnershipSettings().owner_labels
    class_rules: tuple[ClassRule, ...] = field(default_factory=lambda: _parsed(BUILT_IN))
    _read: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Note once which labels count."""
        fields = (name for rule in self.class_rules for name, _ in rule.conditions)
        named = (name.removeprefix(LABEL_PREFIX) for name in fields if name not in FIELDS)
        read = frozenset((*self.team_labels, *self.owner_labels, *named))
        object.__setattr__(self, "_read", read)

    def tenant(
        self,
        *,
        pod: Mapping[str, str],
        workload: Sequence[Mapping[str, str]],
        namespace: str | None,
        namespace_labels: Mapping[str, str],
        queue: str | None,
        queue_labels: Mapping[str, str],
    ) -> tuple[str | None, OwnershipLevel]:
        """Return the tenant and where it was found.

        Args:
            pod: the pod's labels.
            workload: labels of its owners, nearest first.
            namespace: its name, which counts where ``metadata.namespace`` is a team label.
            namespace_labels: the namespace's.
            queue: the queue's name.
            queue_labels: the queue's.
        """
        named = {NAMESPACE_FIELD: namespace} if namespace is not None else {}
        places = (
            (OwnershipLevel.POD, (pod,)),
            (OwnershipLevel.WORKLOAD, workload),
            (OwnershipLevel.NAMESPACE, ({**namespace_labels, **named},)),
            (OwnershipLevel.QUEUE, (queue_labels,)),
        )
        for level, labels in places:
            found = first_label(self.team_labels, labels)
            if found is not None:
                return found, level
        if queue is not None:
            return queue.rpartition("/")[2], OwnershipLevel.QUEUE
        return None, OwnershipLevel.UNATTRIBUTED

    def owner(self, places: Iterable[Mapping[str, str]]) -> str | None:
        """Return the person that labels name, nearest first."""
        return first_label(self.owner_labels, places)

    def workload_class(self, subject: Subject) -> str | None:
        """Return what the first rule that fits says; None where none fits."""
        return next((each.workload_class for each in self.class_rules if each.fits(subject)), None)

    def read_labels(self, labels: Mapping[str, str] | None) -> dict[str, str]:
        """Return those labels that the rules read."""
        if not labels:
            return {}
        return {name: labels[name] for name in self._read if name in labels}


def ownership_rules(settings: OwnershipSettings) -> OwnershipRules:
    """Return the rules that the settings state, followed by the built-in ones.

    Raises:
        SettingsError: one or more rules are wrong; the message lists all of them.
    """
    faults: list[str] = []
    own: list[ClassRule] = []
    for text in settings.class_rules:
        try:
            own.append(class_rule(text))
        except SettingsError as error:
            faults.append(error.message)
    if faults:
        raise SettingsError("; ".join(faults), hint=_HINT)
    return OwnershipRules(
        team_labels=settings.team_labels,
        owner_labels=settings.owner_labels,
        class_rules=(*own, *_parsed(BUILT_IN)),
    )


_HINT: Final = "write for example 'inference: kind=Deployment namespace=prod-*'"


def class_rule(text: str) -> ClassRule:
    """Return the rule that a text states.

    Raises:
        SettingsError: it states none; the message names the part that is wrong.
    """
    head, colon, tail = text.partition(":")
    name = head.strip()
    if not colon or name not in CLASSES:
        raise _fault(text, f"it must begin with one of {', '.join(CLASSES)} and a colon")
    conditions = tuple(_condition(text, part) for part in tail.split())
    if not conditions:
        raise _fault(text, "it has no condition")
    return ClassRule(workload_class=name, conditions=conditions)


def _condition(text: str, part: str) -> tuple[str, str]:
    name, equals, pattern = part.partition("=")
    is_label = name.startswith(LABEL_PREFIX) and len(name) > len(LABEL_PREFIX)
    if name not in FIELDS and not is_label:
        raise _fault(text, f"{name!r} is none of {', '.join(FIELDS)} and label.KEY")
    if not equals or not pattern:
        raise _fault(text, f"{name} needs a pattern after =")
    return name, pattern


def _fault(text: str, what: str) -> SettingsError:
    return SettingsError(f"ownership.class_rules: {text!r}: {what}", hint=_HINT)


def _parsed(texts: Iterable[str]) -> tuple[ClassRule, ...]:
    return tuple(class_rule(text) for text in texts)


def first_label(keys: Iterable[str], places: Iterable[Mapping[str, str]]) -> str | None:
    """Return the first key's text, in the nearest place that has one of the keys."""
    wanted = tuple(keys)
    for labels in places:
        for key in wanted:
            if labels.get(key):
                return labels[key]
    return None


def _text(subject: Subject, name: str) -> str | None:
    if name.startswith(LABEL_PREFIX):
        return subject.labels.get(name.removeprefix(LABEL_PREFIX))
    fields = {
        "kind": subject.kind,
        "namespace": subject.namespace,
        "queue": subject.queue,
        "priority-class": subject.priority_class,
    }
    return fields[name]
