"""The least permissions for what is enabled: one rule per kind, nothing to delete, no wildcard."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from enforcer.actuators.kinds import CATALOGUE, Actuator, Means
from enforcer.kinds import API_VERSIONS

SERVICE_ACCOUNT: Final = "steward-enforcer"
BARE_POD: Final = "Pod"
SCALED_OBJECT: Final = "ScaledObject"
VOLCANO: Final = "batch.volcano.sh/"
"""Volcano's Job is enabled with its group, as ``batch.volcano.sh/v1alpha1/Job``."""

Rule = dict[str, list[str]]
Manifest = dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """One thing the enforcer does to one kind."""

    kind: str
    api_version: str
    verbs: tuple[str, ...]
    """As RBAC has them; ``patch/scale`` is of the subresource."""
    is_acting: bool
    """False: only to see."""
    why: str


SEEN: Final = (
    ("Namespace", "v1", "namespaces", "labels that rules match"),
    ("Pod", "v1", "pods", "whether an act took effect"),
    ("PodDisruptionBudget", "policy/v1", "poddisruptionbudgets.policy", "budgets are kept"),
    (
        "HorizontalPodAutoscaler",
        "autoscaling/v2",
        "horizontalpodautoscalers.autoscaling",
        "who else writes replicas",
    ),
    (SCALED_OBJECT, "keda.sh/v1alpha1", "scaledobjects.keda.sh", "who else writes replicas"),
    ("Workload", "kueue.x-k8s.io/v1beta1", "workloads.kueue.x-k8s.io", "what Kueue manages"),
)
"""Kinds that are only read: kind, version, resource, why."""


def needs(kinds: Iterable[str]) -> tuple[Need, ...]:
    """Return all that is done with these kinds enabled, what is only seen first."""
    wanted = set(kinds)
    return (*_seeing(), *_acting(wanted))


def _seeing() -> Iterator[Need]:
    for kind, version, _resource, why in SEEN:
        yield Need(kind=kind, api_version=version, verbs=("get", "list"), is_acting=False, why=why)
    for each in CATALOGUE:
        if each.kind in API_VERSIONS and each.kind != "Workload" and not _is_volcano(each):
            version = API_VERSIONS[each.kind]
            yield Need(
                kind=each.kind,
                api_version=version,
                verbs=("get",),
                is_acting=False,
                why="how it is before an act",
            )
    yield Need(
        kind="Event", api_version="v1", verbs=("create", "get"), is_acting=False, why="notices"
    )


def _acting(wanted: set[str]) -> Iterator[Need]:
    for each in CATALOGUE:
        version = API_VERSIONS.get(each.kind, "")
        if _is_wanted(each.kind, version, wanted) and not _is_volcano(each):
            yield Need(
                kind=each.kind,
                api_version=version,
                verbs=_verbs(each),
                is_acting=True,
                why="reclaimed and restored",
            )
    if BARE_POD in wanted:
        yield Need(
            kind=BARE_POD,
            api_version="v1",
            verbs=("create/eviction", "patch"),
            is_acting=True,
            why="evicted where a rule opts in",
        )
    if SCALED_OBJECT in wanted:
        yield Need(
            kind=SCALED_OBJECT,
            api_version="keda.sh/v1alpha1",
            verbs=("patch",),
            is_acting=True,
            why="paused and released",
        )


def _is_wanted(kind: str, version: str, wanted: set[str]) -> bool:
    return bool({kind, f"{version}/{kind}"} & wanted)


def _is_volcano(actuator: Actuator) -> bool:
    return actuator.means is Means.COMMAND


def _verbs(actuator: Actuator) -> tuple[str, ...]:
    return ("patch", "patch/scale") if actuator.means is Means.SCALE else ("patch",)


def cluster_rules(kinds: Collection[str]) -> list[Rule]:
    """Return the rules of a ClusterRole, each group and verbs once."""
    found: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for need in needs(kinds):
        resource = _resource(need.kind)
        plain = tuple(verb for verb in need.verbs if "/" not in verb)
        if plain:
            _put(found, resource, plain)
        for verb, _, subresource in (verb.partition("/") for verb in need.verbs if "/" in verb):
            _put(found, resource, (verb,), subresource=subresource)
    rules = [
        {"apiGroups": [group], "resources": sorted(set(resources)), "verbs": list(verbs)}
        for (group, verbs), resources in found.items()
    ]
    if any(kind.startswith(VOLCANO) for kind in kinds):
        rules.append(
            {"apiGroups": ["bus.volcano.sh"], "resources": ["commands"], "verbs": ["create"]}
        )
    return rules


def _put(
    found: dict[tuple[str, tuple[str, ...]], list[str]],
    resource: str,
    verbs: tuple[str, ...],
    *,
    subresource: str = "",
) -> None:
    plural, _, group = resource.partition(".")
    name = f"{plural}/{subresource}" if subresource else plural
    found.setdefault((group, verbs), []).append(name)


def _resource(kind: str) -> str:
    """Return plural and group of a kind."""
    seen = {name: resource for name, _version, resource, _why in SEEN}
    if kind == "Event":
        return "events"
    if kind in seen:
        return seen[kind]
    return next(each.resource for each in CATALOGUE if each.kind == kind and not _is_volcano(each))


def manifests(
    kinds: Collection[str], *, namespace: str, lease_name: str
) -> list[dict[str, object]]:
    """Return account, roles and bindings as Kubernetes objects.

    Args:
        kinds: enabled ones.
        namespace: of the enforcer and of its lease.
        lease_name: the lease by which replicas agree.
    """
    subject = {"kind": "ServiceAccount", "name": SERVICE_ACCOUNT, "namespace": namespace}
    lease_rules = [
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create"]},
        {
            "apiGroups": ["coordination.k8s.io"],
            "resources": ["leases"],
            "resourceNames": [lease_name],
            "verbs": ["get", "patch"],
        },
    ]
    return [
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": SERVICE_ACCOUNT, "namespace": namespace},
        },
        _role("ClusterRole", cluster_rules(kinds), namespace=None),
        _binding("ClusterRoleBinding", "ClusterRole", subject, namespace=None),
        _role("Role", lease_rules, namespace=namespace),
        _binding("RoleBinding", "Role", subject, namespace=namespace),
    ]


def _role(kind: str, rules: object, *, namespace: str | None) -> dict[str, object]:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": kind,
        "metadata": _metadata(namespace),
        "rules": rules,
    }


def _binding(kind: str, role: str, subject: object, *, namespace: str | None) -> dict[str, object]:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": kind,
        "metadata": _metadata(namespace),
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": role,
            "name": SERVICE_ACCOUNT,
        },
        "subjects": [subject],
    }


def _metadata(namespace: str | None) -> dict[str, object]:
    where = {} if namespace is None else {"namespace": namespace}
    return {"name": SERVICE_ACCOUNT, **where}
