"""Who holds a device according to an exporter's labels: the weakest of all attribution sources."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from collector.normalize.sentinels import meaning

EXPORTER_NAME: Final = re.compile(r"(dcgm|metrics|npu)-exporter")
"""Found in the name of an exporter's own pod."""
_SPELLINGS: Final = (
    ("exported_pod", "exported_namespace", "exported_container"),
    ("pod", "namespace", "container"),
    ("pod_name", "pod_namespace", "container_name"),
    ("podname", "podnamespace", "ctrname"),
)
"""In order: a server that relabels puts the exporter's own pod into the plain names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """A container that the exporter names as the device's holder."""

    namespace: str | None
    pod: str
    container: str | None


def holder(labels: Mapping[str, str]) -> Holder | None:
    """Return the holder that the labels name; None for an unallocated device.

    An empty pod is no pod, and the exporter's own pod never holds a device.
    """
    for pod_label, namespace_label, container_label in _SPELLINGS:
        if pod_label in labels:
            pod = meaning(labels[pod_label])
            container = meaning(labels.get(container_label))
            if pod is None or _is_exporter(pod, container):
                return None
            namespace = meaning(labels.get(namespace_label))
            return Holder(namespace=namespace, pod=pod, container=container)
    return None


def _is_exporter(pod: str, container: str | None) -> bool:
    if EXPORTER_NAME.search(pod) is None:
        return False
    return container is None or "exporter" in container
