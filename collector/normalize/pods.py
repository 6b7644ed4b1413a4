"""Who holds a device according to an exporter's labels: the weakest of all attribution sources."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from collector.normalize.dialects import DCGM, PodLabels
from collector.normalize.sentinels import meaning

EXPORTER_NAME: Final = re.compile(r"(dcgm|metrics|npu)-exporter")
"""Found in the name of an exporter's own pod."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """A container that the exporter names as the device's holder."""

    namespace: str | None
    pod: str
    container: str | None


def holder(
    labels: Mapping[str, str],
    *,
    spellings: Iterable[PodLabels] = DCGM.pods,
    own_pod: str | None = None,
) -> Holder | None:
    """Return the holder that the labels name; None for an unallocated device.

    An empty pod is no pod, and the exporter's own pod never holds a device: where one spelling
    names the exporter, the next is asked.

    Args:
        labels: one series' labels.
        spellings: which labels to ask, in this order; the first that is there decides.
        own_pod: the exporter's own pod, where discovery knows it.
    """
    for spelling in spellings:
        if spelling.pod not in labels:
            continue
        pod = meaning(labels[spelling.pod])
        if pod is None:
            return None
        container = first_meaning(labels, spelling.container)
        if pod == own_pod or _is_exporter(pod, container):
            continue
        namespace = first_meaning(labels, spelling.namespace)
        return Holder(namespace=namespace, pod=pod, container=container)
    return None


def first_meaning(labels: Mapping[str, str], names: Iterable[str]) -> str | None:
    """Return the first of these labels that says something."""
    return next((text for name in names if (text := meaning(labels.get(name)))), None)


def _is_exporter(pod: str, container: str | None) -> bool:
    if EXPORTER_NAME.search(pod) is None:
        return False
    return container is None or "exporter" in container
