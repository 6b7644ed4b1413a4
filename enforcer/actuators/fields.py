"""Reading and changing single fields of Kubernetes objects as plain JSON.

A change is a path, what stands there and what shall: from it come both the merge patch of a reclaim
and, turned round, the one of its undoing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

from enforcer.gateway.port import JsonValue, KubernetesObject, Target

Path = tuple[str, ...]
Json = dict[str, JsonValue]
EMPTY: Final[KubernetesObject] = {}


def value_at(thing: JsonValue, *path: str) -> JsonValue:
    """Return what stands at a path; None also where nothing does."""
    for key in path:
        if not isinstance(thing, Mapping):
            return None
        thing = thing.get(key)
    return thing


def mapping_at(thing: JsonValue, *path: str) -> KubernetesObject:
    """Return the object at a path; empty where there is none."""
    found = value_at(thing, *path)
    return found if isinstance(found, Mapping) else EMPTY


def text_at(thing: JsonValue, *path: str) -> str | None:
    """Return the text at a path; None where there is none."""
    found = value_at(thing, *path)
    return found if isinstance(found, str) else None


def whole_at(thing: JsonValue, *path: str) -> int | None:
    """Return the whole number at a path; None where there is none."""
    found = value_at(thing, *path)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def items_at(thing: JsonValue, *path: str) -> tuple[KubernetesObject, ...]:
    """Return the objects of the list at a path, in its order."""
    found = value_at(thing, *path)
    if isinstance(found, str) or not isinstance(found, Sequence):
        return ()
    return tuple(item for item in found if isinstance(item, Mapping))


def texts_at(thing: JsonValue, *path: str) -> dict[str, str]:
    """Return the texts of the object at a path by their keys, such as labels."""
    found = mapping_at(thing, *path)
    return {key: text for key, text in found.items() if isinstance(text, str)}


def condition_status(thing: KubernetesObject, name: str) -> str | None:
    """Return ``True``, ``False`` or ``Unknown`` of a condition; None where it is not told."""
    for condition in items_at(thing, "status", "conditions"):
        if condition.get("type") == name:
            return text_at(condition, "status")
    return None


def target_of(thing: KubernetesObject) -> Target:
    """Return how an object is addressed, with its uid."""
    return Target(
        api_version=text_at(thing, "apiVersion") or "",
        kind=text_at(thing, "kind") or "",
        namespace=text_at(thing, "metadata", "namespace"),
        name=text_at(thing, "metadata", "name") or "",
        uid=text_at(thing, "metadata", "uid"),
    )


def group_of(api_version: str) -> str:
    """Return the group of an ``apiVersion``; empty for the core's."""
    return api_version.rpartition("/")[0]


def controller_of(thing: KubernetesObject) -> Target | None:
    """Return the object that controls this one; None where nothing does."""
    for owner in items_at(thing, "metadata", "ownerReferences"):
        if owner.get("controller") is True:
            return Target(
                api_version=text_at(owner, "apiVersion") or "",
                kind=text_at(owner, "kind") or "",
                namespace=text_at(thing, "metadata", "namespace"),
                name=text_at(owner, "name") or "",
                uid=text_at(owner, "uid"),
            )
    return None


def is_owned_by(thing: KubernetesObject, uid: str | None) -> bool:
    """Return whether an object has this owner, controlling or not."""
    owners = items_at(thing, "metadata", "ownerReferences")
    return uid is not None and any(owner.get("uid") == uid for owner in owners)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One field, as it was before and as it shall be; None is no field at all."""

    path: Path
    old: JsonValue
    new: JsonValue
    kept_depth: int
    """How many leading keys of the path existed before: deeper objects go with the field."""
    resumed: JsonValue = None
    """What is written instead of taking the field away, where its controller needs that."""

    def is_made(self, thing: KubernetesObject) -> bool:
        """Return whether the object has the new value."""
        return value_at(thing, *self.path) == self.new

    def is_unmade(self, thing: KubernetesObject) -> bool:
        """Return whether the object has the old value, or what stands for its absence."""
        return value_at(thing, *self.path) in (self.old, self.back)

    def is_untidy(self, thing: KubernetesObject) -> bool:
        """Return whether the object has what only stands for the absence of a field."""
        return self.back != self.old and value_at(thing, *self.path) == self.back

    @property
    def back(self) -> JsonValue:
        """Return the value that takes the change back; None: no field."""
        return self.resumed if self.old is None else self.old


def change(
    thing: KubernetesObject, path: Path, new: JsonValue, *, resumed: JsonValue = None
) -> Change:
    """Return the change of one field, with what an object has there now."""
    kept_depth = 0
    for depth in range(1, len(path) + 1):
        if value_at(thing, *path[:depth]) is None:
            break
        kept_depth = depth
    old = value_at(thing, *path)
    return Change(path=path, old=old, new=new, kept_depth=kept_depth, resumed=resumed)


def patch_of(changes: Iterable[Change]) -> KubernetesObject:
    """Return the merge patch that makes the changes."""
    patch: Json = {}
    for each in changes:
        _put(patch, each.path, each.new)
    return patch


def unpatch_of(changes: Iterable[Change], thing: KubernetesObject) -> KubernetesObject:
    """Return the merge patch that takes the changes back, in words that controllers obey."""
    return _back_patch(thing, ((each, each.back) for each in changes))


def tidy_patch_of(changes: Iterable[Change], thing: KubernetesObject) -> KubernetesObject:
    """Return the merge patch that makes the fields exactly as they were."""
    return _back_patch(thing, ((each, each.old) for each in changes))


def _back_patch(
    thing: KubernetesObject, values: Iterable[tuple[Change, JsonValue]]
) -> KubernetesObject:
    """Return the merge patch of old values.

    An object that came only with the field goes with it, unless others wrote into it since.
    """
    patch: Json = {}
    for each, value in values:
        path = each.path if value is not None else _shortest_own(each, thing)
        _put(patch, path, value)
    return patch


def _shortest_own(each: Change, thing: KubernetesObject) -> Path:
    """Return the shortest path at which there is nothing but the field that came."""
    path = each.path
    while len(path) - 1 > each.kept_depth and len(mapping_at(thing, *path[:-1])) <= 1:
        path = path[:-1]
    return path


def _put(patch: Json, path: Path, value: JsonValue) -> None:
    place = patch
    for key in path[:-1]:
        place = cast("Json", place.setdefault(key, {}))
    place[path[-1]] = value
