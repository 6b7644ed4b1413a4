"""What the collector's account may read, and the rules that would permit the rest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from collector.sources.kubernetes.access import ApiAccess
from collector.sources.kubernetes.api_error import Question
from collector.sources.kubernetes.resource import Resource
from collector.sources.kubernetes.wire_faults import decoded

VERBS: Final = ("list", "watch")
REVIEW_PATH: Final = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


@dataclass(frozen=True, slots=True, order=True, kw_only=True)
class MissingPermission:
    """One thing that the account may not do."""

    group: str
    resource: str
    """The plural."""
    verb: str
    namespace: str = ""
    """Where; empty means the whole cluster."""


class _Attributes(msgspec.Struct, omit_defaults=True):
    verb: str
    group: str
    resource: str
    namespace: str = ""


class _Specification(msgspec.Struct, rename="camel"):
    resource_attributes: _Attributes


class _Review(msgspec.Struct, rename="camel"):
    spec: _Specification
    api_version: str = "authorization.k8s.io/v1"
    kind: str = "SelfSubjectAccessReview"


class _Verdict(msgspec.Struct):
    allowed: bool = False


class _Reviewed(msgspec.Struct):
    status: _Verdict


def missing_permissions(
    access: ApiAccess, resources: Iterable[Resource], *, answer_s: float = 10.0
) -> list[MissingPermission]:
    """Return what the account may not do, ascending; empty where it may read everything.

    Args:
        access: as whom to ask; every account may ask this about itself.
        resources: what should be listed and watched, served or not.
        answer_s: for each question.

    Raises:
        ApiError: the server does not answer, or does not know the account.
    """
    wanted = sorted(
        {(one.group, one.plural, verb, one.namespace or "") for one in resources for verb in VERBS}
    )
    return [
        MissingPermission(group=group, resource=plural, verb=verb, namespace=namespace)
        for group, plural, verb, namespace in wanted
        if not _is_allowed(
            access,
            _Attributes(verb=verb, group=group, resource=plural, namespace=namespace),
            answer_s=answer_s,
        )
    ]


def cluster_role(resources: Sequence[Resource], *, name: str) -> str:
    """Return the ClusterRole that permits to read these resources, as YAML, one rule per group."""
    plurals: dict[str, set[str]] = {}
    for resource in resources:
        plurals.setdefault(resource.group, set()).add(resource.plural)
    lines = [
        "apiVersion: rbac.authorization.k8s.io/v1",
        "kind: ClusterRole",
        "metadata:",
        f"  name: {name}",
        "rules:",
    ]
    for group in sorted(plurals):
        lines += [
            f'  - apiGroups: ["{group}"]',
            f"    resources: [{', '.join(sorted(plurals[group]))}]",
            f"    verbs: [{', '.join(VERBS)}]",
        ]
    return "\n".join(lines) + "\n"


def _is_allowed(access: ApiAccess, wanted: _Attributes, *, answer_s: float) -> bool:
    question = Question(path=REVIEW_PATH, verb="ask", group="", plural=None)
    review = _Review(spec=_Specification(resource_attributes=wanted))
    body = access.post(question, msgspec.json.encode(review), answer_s=answer_s)
    reviewed = decoded(body, _Reviewed, question=question, server=access.server)
    return reviewed.status.allowed
