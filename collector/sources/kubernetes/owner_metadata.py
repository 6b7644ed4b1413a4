"""Metadata of single objects whose kinds are not followed: owners met on the way to a workload."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from collector.sources.kubernetes.access import ApiAccess
from collector.sources.kubernetes.api_error import ApiError, ApiFault, Question
from collector.sources.kubernetes.objects import Metadata, Object
from collector.sources.kubernetes.wire_faults import decoded

log = logging.getLogger(__name__)

ANSWER_S: Final = 3.0
"""Whoever asks holds everything else up meanwhile."""


class _Kind(msgspec.Struct):
    name: str
    kind: str
    namespaced: bool = True


class _KindList(msgspec.Struct):
    resources: list[_Kind] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Where objects of a kind are found."""

    group: str
    root: str
    plural: str
    is_namespaced: bool


class OwnerMetadata:
    """Asks the API server for one object at a time; a kind that is refused is not asked again.

    Args:
        access: the API server.
    """

    def __init__(self, access: ApiAccess) -> None:
        """Know no kind yet."""
        self._access = access
        self._places: dict[str, Mapping[str, _Place]] = {}
        self._refused: set[tuple[str, str]] = set()

    @property
    def refused(self) -> frozenset[tuple[str, str]]:
        """Return API group and plural of the kinds that the account may not get."""
        places = (self._places.get(version, {}).get(kind) for version, kind in self._refused)
        return frozenset((one.group, one.plural) for one in places if one is not None)

    def get_metadata(
        self, *, api_version: str, kind: str, namespace: str | None, name: str
    ) -> Metadata | None:
        """Return the object's metadata; None where the server has no answer or gives none."""
        if (api_version, kind) in self._refused:
            return None
        try:
            place = self._place(api_version, kind)
            return None if place is None else self._asked(place, namespace=namespace, name=name)
        except ApiError as error:
            self._note(error, api_version=api_version, kind=kind)
            return None

    def _note(self, error: ApiError, *, api_version: str, kind: str) -> None:
        if error.fault is ApiFault.FORBIDDEN:
            self._refused.add((api_version, kind))
            log.warning("owners of kind %s are not followed further: %s", kind, error)
        else:
            log.debug("no answer for an owner of kind %s: %s", kind, error)

    def _place(self, api_version: str, kind: str) -> _Place | None:
        """Return where objects of the kind are; None where the server has no such kind."""
        if api_version not in self._places:
            root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
            question = Question(path=root)
            body = self._access.get(question, answer_s=ANSWER_S)
            listed = decoded(body, _KindList, question=question, server=self._access.server)
            group = api_version.rpartition("/")[0]
            self._places[api_version] = {
                one.kind: _Place(
                    group=group, root=root, plural=one.name, is_namespaced=one.namespaced
                )
                for one in listed.resources or ()
                if "/" not in one.name
            }
        return self._places[api_version].get(kind)

    def _asked(self, place: _Place, *, namespace: str | None, name: str) -> Metadata:
        scope = f"/namespaces/{namespace}" if place.is_namespaced else ""
        question = Question(
            path=f"{place.root}{scope}/{place.plural}/{name}",
            group=place.group,
            plural=place.plural,
        )
        body = self._access.get(question, answer_s=ANSWER_S)
        return decoded(body, Object, question=question, server=self._access.server).metadata
