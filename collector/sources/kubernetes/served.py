"""Which kinds an API server has, and in which version each is read."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Final, TypeAlias

import msgspec

from collector.sources.kubernetes.access import ApiAccess
from collector.sources.kubernetes.api_error import ApiError, Question
from collector.sources.kubernetes.resource import Resource
from collector.sources.kubernetes.wire_faults import decoded

NEEDED_VERBS: Final = frozenset({"list", "watch"})


class _GroupVersion(msgspec.Struct):
    version: str


class _Group(msgspec.Struct):
    name: str
    versions: list[_GroupVersion]


class _GroupList(msgspec.Struct):
    groups: list[_Group]


class _Kind(msgspec.Struct):
    name: str
    verbs: list[str] | None = None


class _KindList(msgspec.Struct):
    resources: list[_Kind] | None = None


Served: TypeAlias = str | ApiError | None
"""The version in which a resource is read; None where the server has none; or why that is not
known."""


def survey(
    access: ApiAccess, resources: Sequence[Resource], *, answer_s: float
) -> dict[Resource, Served]:
    """Return for each resource the version in which it is best read.

    A group that does not answer now hides only its own resources.

    Raises:
        ApiError: the server does not say what it has.
    """
    groups = served_groups(access, answer_s=answer_s)
    kinds = _Kinds(access, answer_s)
    return {
        resource: kinds.best_version(resource, groups.get(resource.group, frozenset()))
        for resource in resources
    }


def served_versions(
    access: ApiAccess, resources: Sequence[Resource], *, answer_s: float
) -> dict[Resource, str | None]:
    """Return the version in which each resource is best read; None where none is served.

    A resource whose group does not answer now is left out: nothing is known of it.

    Raises:
        ApiError: the server does not say what it has.
    """
    served = survey(access, resources, answer_s=answer_s)
    return {one: found for one, found in served.items() if not isinstance(found, ApiError)}


def served_groups(access: ApiAccess, *, answer_s: float) -> Mapping[str, frozenset[str]]:
    """Return the versions of each group that the server has.

    Raises:
        ApiError: the server does not say what it has.
    """
    question = Question(path="/apis")
    body = access.get(question, answer_s=answer_s)
    listed = decoded(body, _GroupList, question=question, server=access.server)
    named = {group.name: frozenset(v.version for v in group.versions) for group in listed.groups}
    return {"": frozenset({"v1"}), **named}


class _Kinds:
    """What each group and version has, asked once each."""

    def __init__(self, access: ApiAccess, answer_s: float) -> None:
        self._access = access
        self._answer_s = answer_s
        self._known: dict[str, frozenset[str]] = {}

    def best_version(self, resource: Resource, offered: Container[str]) -> Served:
        try:
            for version in resource.versions:
                if version in offered and resource.plural in self._watchable(resource, version):
                    return version
        except ApiError as error:
            return error
        return None

    def _watchable(self, resource: Resource, version: str) -> frozenset[str]:
        """Return the plurals that can be listed and watched."""
        root = resource.root(version)
        if root not in self._known:
            question = Question(path=root)
            body = self._access.get(question, answer_s=self._answer_s)
            kinds = decoded(body, _KindList, question=question, server=self._access.server)
            self._known[root] = frozenset(
                kind.name for kind in kinds.resources or () if set(kind.verbs or ()) >= NEEDED_VERBS
            )
        return self._known[root]
