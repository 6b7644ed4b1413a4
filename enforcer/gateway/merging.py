"""JSON merge patch (RFC 7396) and label selectors, as an API server has them."""

from __future__ import annotations

from collections.abc import Mapping

from enforcer.gateway.port import JsonValue, KubernetesObject


def merged(old: JsonValue, patch: JsonValue) -> JsonValue:
    """Return a value after a merge patch: null takes a field away, an object goes deeper."""
    if not isinstance(patch, Mapping):
        return patch
    result = dict(old) if isinstance(old, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


def merged_object(old: KubernetesObject, patch: KubernetesObject) -> dict[str, JsonValue]:
    """Return an object after a merge patch."""
    result = merged(old, patch)
    return dict(result) if isinstance(result, Mapping) else {}


def is_selected(labels: Mapping[str, str], selector: str) -> bool:
    """Return whether labels fit a selector of ``key=value``, ``key`` and ``!key``, by comma."""
    return all(_fits(labels, term.strip()) for term in selector.split(",") if term.strip())


def _fits(labels: Mapping[str, str], term: str) -> bool:
    if term.startswith("!"):
        return term[1:] not in labels
    key, equals, text = term.partition("=")
    return labels.get(key) == text.removeprefix("=") if equals else key in labels
