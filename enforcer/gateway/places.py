"""Where an object is, whatever its version: group, kind, namespace and name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from enforcer.gateway.port import KubernetesObject, Target

Place = tuple[str, str, str, str]
"""Group, kind, namespace (empty for none) and name; orders as lists are ordered."""
_EMPTY: Final[KubernetesObject] = {}


def place(target: Target) -> Place:
    """Return where a target is."""
    return (group_of(target.api_version), target.kind, target.namespace or "", target.name)


def place_of(thing: KubernetesObject) -> Place:
    """Return where an object is."""
    metadata = metadata_of(thing)
    api_version, kind = str(thing.get("apiVersion")), str(thing.get("kind"))
    namespace, name = str(metadata.get("namespace") or ""), str(metadata.get("name"))
    return (group_of(api_version), kind, namespace, name)


def group_of(api_version: str) -> str:
    """Return the group of an ``apiVersion``; empty for the core's."""
    return api_version.rpartition("/")[0]


def metadata_of(thing: KubernetesObject) -> KubernetesObject:
    """Return an object's metadata; empty where it has none."""
    found = thing.get("metadata")
    return found if isinstance(found, Mapping) else _EMPTY
