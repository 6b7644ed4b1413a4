"""The admission guard: a ValidatingAdmissionPolicy that the API server itself evaluates.

Nothing of ours stands in the way of a pod. Pods that ask for no GPU are never looked at. Ceilings
are written into the policy itself and not into a parameter object: an API server (1.36) that has
seen a policy with parameters go does not find those of one that comes after it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from enforcer.gateway.port import JsonValue, KubernetesObject
from enforcer.quota.model import QuotaFile

NAME: Final = "steward-gpu-guard"
API: Final = "admissionregistration.k8s.io/v1"
QUEUE_LABEL: Final = "kueue.x-k8s.io/queue-name"
"""Kueue chooses the model by flavor and sets the node selector afterwards."""
_KINDS: Final = (
    ("", "v1", "pods"),
    ("batch", "v1", "jobs"),
    ("apps", "v1", "deployments"),
    ("apps", "v1", "statefulsets"),
    ("apps", "v1", "replicasets"),
)
"""API group, version and resource of what is looked at. Other kinds are met by their pods."""


def manifests(file: QuotaFile, *, is_strict: bool) -> tuple[KubernetesObject, ...]:
    """Return the policy and its binding, in the order in which they are applied.

    Args:
        file: ceilings, models and labels.
        is_strict: refuse where a rule itself cannot be evaluated; otherwise let through: a fault of
            the guard then stops nobody's work.
    """
    return _policy(file, is_strict=is_strict), _binding()


def _policy(file: QuotaFile, *, is_strict: bool) -> KubernetesObject:
    return {
        "apiVersion": API,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": NAME},
        "spec": {
            "failurePolicy": "Fail" if is_strict else "Ignore",
            "matchConstraints": {"resourceRules": _resources()},
            "matchConditions": [{"name": "asks-for-gpus", "expression": _asks(file)}],
            "variables": _variables(file),
            "validations": _validations(file),
        },
    }


def _binding() -> KubernetesObject:
    spared: JsonValue = {
        "key": "kubernetes.io/metadata.name",
        "operator": "NotIn",
        "values": ["kube-system", "kube-public", "kube-node-lease"],
    }
    return {
        "apiVersion": API,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": NAME},
        "spec": {
            "policyName": NAME,
            "validationActions": ["Deny", "Audit"],
            "matchResources": {"namespaceSelector": {"matchExpressions": [spared]}},
        },
    }


def ranks(file: QuotaFile) -> dict[str, int]:
    """Return the place of each priority class, 0 is the lowest."""
    return {name: number for number, name in enumerate(file.priorities)}


def ceilings(file: QuotaFile) -> dict[str, int]:
    """Return the highest allowed place by ``TEAM/CLASS``; ``*`` is any."""
    rank = ranks(file)
    return {f"{one.tenant_id}/{one.workload_class}": rank[one.highest] for one in file.ceilings}


def allowed_products(file: QuotaFile) -> dict[str, list[str]]:
    """Return the values of the product label that each team may choose, ascending."""
    return {
        team.tenant_id: sorted(
            value
            for share in team.shares
            if (one := file.model(share.gpu_model)) is not None
            for value in one.node_label_values
        )
        for team in file.teams
    }


def _resources() -> list[JsonValue]:
    """Return what the guard looks at.

    Only when it is made: what runs already can still be suspended, resumed and finished.
    """
    return [
        {
            "apiGroups": [group],
            "apiVersions": [version],
            "operations": ["CREATE"],
            "resources": [resource],
        }
        for group, version, resource in _KINDS
    ]


def _template() -> str:
    """Return CEL for the pod's template: itself, or that of what makes pods."""
    return "(object.kind == 'Pod' ? object : object.spec.template)"


def _asks(file: QuotaFile) -> str:
    """Return CEL that is true where any container asks for any GPU resource."""
    names = sorted({one.resource for one in file.models})
    asked = " || ".join(f"{json.dumps(name)} in c.resources.limits" for name in names)
    spec = f"{_template()}.spec"
    return (
        f"({spec}.containers + (has({spec}.initContainers) ? {spec}.initContainers : [])).exists(c,"
        f" has(c.resources) && has(c.resources.limits) && ({asked}))"
    )


def _variables(file: QuotaFile) -> list[JsonValue]:
    product = json.dumps(file.product_label)
    written = {
        "template": _template(),
        "labels": (
            "(has(variables.template.metadata) && has(variables.template.metadata.labels)"
            " ? variables.template.metadata.labels : {})"
        ),
        "own": "(has(object.metadata.labels) ? object.metadata.labels : {})",
        "team": _label(file.team_labels),
        "kind": _label(file.class_labels),
        "priority": (
            "(has(variables.template.spec.priorityClassName)"
            " ? variables.template.spec.priorityClassName : '')"
        ),
        "ranks": _literal(ranks(file)),
        "ceilings": _literal(ceilings(file)),
        "ceiling": _first_ceiling(),
        "products": _literal(allowed_products(file)),
        "product": (
            "(has(variables.template.spec.nodeSelector)"
            f" && {product} in variables.template.spec.nodeSelector"
            f" ? variables.template.spec.nodeSelector[{product}] : '')"
        ),
    }
    return [{"name": name, "expression": text} for name, text in written.items()]


def _label(keys: tuple[str, ...]) -> str:
    """Return CEL for the first of these labels, of the template or the object; else empty."""
    text = "''"
    for key in reversed(keys):
        quoted = json.dumps(key)
        text = (
            f"({quoted} in variables.labels ? variables.labels[{quoted}]"
            f" : ({quoted} in variables.own ? variables.own[{quoted}] : {text}))"
        )
    return text


def _literal(values: Mapping[str, int] | Mapping[str, list[str]]) -> str:
    """Return a CEL map; JSON is spelt as CEL is."""
    return json.dumps(dict(sorted(values.items())))


def _first_ceiling() -> str:
    """Return CEL for the most particular ceiling; -1 where there is none."""
    text = "-1"
    for team, kind in (("'*'", "'*'"), ("'*'", None), (None, "'*'"), (None, None)):
        key = f"({team or 'variables.team'} + '/' + {kind or 'variables.kind'})"
        text = f"({key} in variables.ceilings ? variables.ceilings[{key}] : {text})"
    return text


def _validations(file: QuotaFile) -> list[JsonValue]:
    """Return the rules, each with words for whoever is refused."""
    rules: list[JsonValue] = []
    for keys, variable, what in (
        (file.team_labels, "team", "names its team"),
        (file.class_labels, "kind", "names its class"),
    ):
        if keys:
            rules.append(
                {
                    "expression": f"variables.{variable} != ''",
                    "message": f"a workload with GPUs needs a label that {what}: one of "
                    + ", ".join(keys),
                    "reason": "Invalid",
                }
            )
    return [*rules, _priority_rule(), _model_rule(file)]


def _priority_rule() -> JsonValue:
    return {
        "expression": (
            "variables.priority == '' || variables.ceiling < 0 || "
            "(variables.priority in variables.ranks && "
            "variables.ranks[variables.priority] <= variables.ceiling)"
        ),
        "messageExpression": (
            "'priority class ' + variables.priority + ' is above what ' + variables.kind"
            " + ' workloads of team ' + variables.team + ' may use'"
        ),
        "reason": "Forbidden",
    }


def _model_rule(file: QuotaFile) -> JsonValue:
    queue = json.dumps(QUEUE_LABEL)
    return {
        "expression": (
            "!(variables.team in variables.products) || "
            f"{queue} in variables.own || {queue} in variables.labels || "
            "variables.product in variables.products[variables.team]"
        ),
        "messageExpression": (
            f"'team ' + variables.team + ' may use GPUs with {file.product_label} one of '"
            " + variables.products[variables.team].join(', ') + '; choose one by nodeSelector'"
        ),
        "reason": "Forbidden",
    }
