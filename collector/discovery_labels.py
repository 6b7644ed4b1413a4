"""Targets as Prometheus' service discovery writes them: addresses with labels beside.

Nothing here opens a file or a connection.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlencode

from collector.discovery import ScrapeTarget, target_url
from steward.errors import InputError, UsageError

NODE_LABELS: Final = (
    "node",
    "__meta_kubernetes_pod_node_name",
    "__meta_kubernetes_endpointslice_endpoint_node_name",
    "__meta_kubernetes_endpoint_node_name",
    "__meta_kubernetes_node_name",
)
"""Where a target's node is named, the first that is there wins."""
POD_LABELS: Final = ("__meta_kubernetes_pod_name", "pod")
PARAMETER_PREFIX: Final = "__param_"

Labels = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceState:
    """How it goes with one place that targets come from."""

    source: str
    """The file, URL or selector."""
    target_count: int
    error: str | None
    """What is wrong now, the last good targets stay; None where nothing is."""
    hint: str | None = None


def targets_of(document: object, *, source: str) -> tuple[ScrapeTarget, ...]:
    """Return the targets of a ``file_sd`` or ``http_sd`` document.

    Args:
        document: ``[{"targets": ["host:port", …], "labels": {…}}, …]``, decoded.
        source: names the document in messages.

    Raises:
        InputError: the document is not of that shape, or an address is wrong; it is taken whole
            or not at all.
    """
    if not isinstance(document, list):
        raise _shape_error(source, "it is not a list of groups")
    return tuple(
        _target(address, labels, source=source)
        for number, group in enumerate(document, start=1)
        for address, labels in _group(group, number, source=source)
    )


def labelled_target(address: str, labels: Labels) -> ScrapeTarget:
    """Return the target at an address, with what its labels say.

    Raises:
        UsageError: address, scheme or path make no URL.
    """
    scheme = labels.get("__scheme__", "http")
    path = labels.get("__metrics_path__", "")
    url = labels.get("__address__", address)
    if "://" not in url:
        url = f"{scheme}://{url}{path if path.startswith('/') or not path else '/' + path}"
    parameters = {
        name.removeprefix(PARAMETER_PREFIX): value
        for name, value in sorted(labels.items())
        if name.startswith(PARAMETER_PREFIX)
    }
    if parameters:
        url += f"?{urlencode(parameters)}"
    return ScrapeTarget(url=target_url(url), node=_node(labels), pod=_first(labels, POD_LABELS))


def merged_targets(sources: Iterable[Iterable[ScrapeTarget]]) -> tuple[ScrapeTarget, ...]:
    """Return each URL once, ascending; of several that name it the one that knows most wins."""
    best: dict[str, ScrapeTarget] = {}
    for targets in sources:
        for target in targets:
            known = best.get(target.url)
            if known is None or _knowledge(target) > _knowledge(known):
                best[target.url] = target
    return tuple(best[url] for url in sorted(best))


def _knowledge(target: ScrapeTarget) -> int:
    return (target.node is not None) * 2 + (target.pod is not None)


def _group(group: object, number: int, *, source: str) -> Sequence[tuple[str, Labels]]:
    if not isinstance(group, dict):
        raise _shape_error(source, f"group {number} is no object")
    addresses, labels = _given(group, "targets", []), _given(group, "labels", {})
    if not (isinstance(addresses, list) and all(isinstance(one, str) for one in addresses)):
        raise _shape_error(source, f"targets of group {number} is no list of addresses")
    if not isinstance(labels, dict):
        raise _shape_error(source, f"labels of group {number} is no object")
    if not all(isinstance(part, str) for pair in labels.items() for part in pair):
        raise _shape_error(source, f"a label of group {number} is no text")
    return [(address, labels) for address in addresses]


def _given(group: Mapping[str, object], name: str, otherwise: object) -> object:
    """Return a part of a group; what is null counts as left out."""
    value = group.get(name)
    return otherwise if value is None else value


def _target(address: str, labels: Labels, *, source: str) -> ScrapeTarget:
    try:
        return labelled_target(address, labels)
    except UsageError as error:
        raise InputError(f"{source}: {error.message}", hint=error.hint) from error


def _node(labels: Labels) -> str | None:
    """Return the node; ``instance`` counts where it is a name that a person put there."""
    named = _first(labels, NODE_LABELS)
    if named is not None:
        return named
    instance = labels.get("instance", "")
    return instance if instance and not _is_address(instance) else None


def _is_address(instance: str) -> bool:
    if ":" in instance or "/" in instance:
        return True
    try:
        ip_address(instance)
    except ValueError:
        return False
    return True


def _first(labels: Labels, names: Iterable[str]) -> str | None:
    return next((labels[name] for name in names if labels.get(name)), None)


def _shape_error(source: str, fault: str) -> InputError:
    return InputError(
        f"{source} lists no targets: {fault}",
        hint='write [{"targets": ["host:9400"], "labels": {"node": "n1"}}]',
    )
