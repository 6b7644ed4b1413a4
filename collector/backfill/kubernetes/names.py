"""Undoes what kube-state-metrics does to names: dots and slashes become underscores."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

_LABEL: Final = "label_"
_VENDORS: Final = {
    "nvidia_com_": "nvidia.com/",
    "amd_com_": "amd.com/",
    "huawei_com_": "huawei.com/",
    "gpu_intel_com_": "gpu.intel.com/",
}
_MIG: Final = re.compile(r"mig_(?P<slices>\d+g)_(?P<memory>\d+gb)(?P<more>.*)")
_SHARED: Final = "_shared"
WELL_KNOWN_LABELS: Final = (
    "nvidia.com/gpu.product",
    "nvidia.com/gpu.count",
    "nvidia.com/gpu.memory",
    "nvidia.com/gpu.clique",
    "nvidia.com/gpu.family",
    "nvidia.com/gpu.machine",
    "nvidia.com/gpu.replicas",
    "nvidia.com/gpu.sharing-strategy",
    "nvidia.com/mig.strategy",
    "amd.com/gpu.product-name",
    "cloud.google.com/gke-accelerator",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/rack",
    "network.topology.nvidia.com/leaf",
    "network.topology.nvidia.com/accelerator",
    "node.kubernetes.io/instance-type",
    "kubernetes.io/arch",
    "kueue.x-k8s.io/queue-name",
    "kueue.x-k8s.io/pod-group-name",
    "app.kubernetes.io/name",
    "app.kubernetes.io/instance",
    "app.kubernetes.io/component",
)
"""Labels whose true names are known; of any other the underscores stay."""


def sanitized(name: str) -> str:
    """Return a label's name as kube-state-metrics writes it."""
    return re.sub(r"[^a-zA-Z0-9_]", "_", name)


def true_labels(labels: Mapping[str, str], *, known: Iterable[str]) -> dict[str, str]:
    """Return an object's labels from those of its ``…_labels`` series.

    Args:
        labels: of the series: ``label_team``, ``label_app_kubernetes_io_name``.
        known: label names that may be meant, beside the well-known ones.
    """
    by_spelling = {sanitized(name): name for name in (*WELL_KNOWN_LABELS, *known)}
    return {
        by_spelling.get(name.removeprefix(_LABEL), name.removeprefix(_LABEL)): text
        for name, text in labels.items()
        if name.startswith(_LABEL)
    }


def resource_name(spelling: str) -> str:
    """Return a resource's true name: ``nvidia_com_mig_1g_5gb`` is ``nvidia.com/mig-1g.5gb``."""
    for prefix, vendor in _VENDORS.items():
        if spelling.startswith(prefix):
            rest = spelling.removeprefix(prefix)
            shared = ".shared" if rest.endswith(_SHARED) else ""
            rest = rest.removesuffix(_SHARED)
            found = _MIG.fullmatch(rest)
            if found is not None:
                more = found["more"].replace("_", ".")
                rest = f"mig-{found['slices']}.{found['memory']}{more}"
            return f"{vendor}{rest}{shared}"
    return spelling
