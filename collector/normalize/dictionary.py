"""Every name that any exporter is known to use, merged from the vendors' tables.

``docs/metrics.md`` prints this dictionary for people.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from collector.normalize.metric import MEASURES, XID, Metric
from collector.normalize.vendors import agent, amd, ascend, hami, nvidia, nvidia_smi

__all__ = ["MEASURES", "METRICS", "SPLIT_BY", "XID", "Metric", "known_metric"]

METRICS: Final[Mapping[str, Metric]] = MappingProxyType(
    {
        **nvidia.METRICS,
        **nvidia_smi.METRICS,
        **amd.METRICS,
        **ascend.METRICS,
        **hami.METRICS,
        **agent.METRICS,
    }
)
"""Every known name; any other is counted and left out."""
SPLIT_BY: Final[Mapping[str, str]] = amd.SPLIT_BY
"""Families of several measures; ``name{label=value}`` stands in ``METRICS`` for each of them."""
_PREFIXED_LABEL: Final = "gpu_id"
_PREFIXED: Final = frozenset(amd.METRICS) | frozenset(amd.SPLIT_BY)


def known_metric(name: str, labels: Mapping[str, str]) -> Metric | None:
    """Return what the name means; None where nothing is known of it.

    Args:
        name: as printed. AMD's exporter may put any prefix before its names.
        labels: of one of the family's series; AMD's always hold ``gpu_id``.
    """
    metric = METRICS.get(name)
    if metric is not None or _PREFIXED_LABEL not in labels:
        return metric
    return METRICS.get(without_prefix(name))


def without_prefix(name: str) -> str:
    """Return AMD's own part of a prefixed name; the name itself where it has none."""
    for start in ("gpu_", "pcie_"):
        _, found, rest = name.partition(start)
        if found and start + rest in _PREFIXED:
            return start + rest
    return name
