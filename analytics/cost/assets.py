"""What a node costs and what it is made of: component rates, GPUs counted, efficiency."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from analytics.cost.rounding import Exact

GPU_RESOURCE: Final = "nvidia.com/gpu"
SHARED_RESOURCE: Final = "nvidia.com/gpu.shared"
COUNT_LABEL: Final = "nvidia.com/gpu.count"
"""Boards in the node, as GPU feature discovery counts them, whatever is shared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuCount:
    """GPUs of a node; null where the node does not tell."""

    physical: int | None
    """Boards: what capacity and cost count."""
    virtual: int | None
    """What pods can request: replicas where boards are shared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """One resource of a workload."""

    price: Exact
    requested: Exact
    used: Exact | None
    """Null: not measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Efficiency:
    """Cost-weighted efficiency, and how much of the cost it speaks of."""

    ratio: Fraction | None
    """Used cost / requested cost over resources with a reading; may exceed 1 where more was used
    than requested. Null where none of them costs anything."""
    coverage_ratio: Fraction | None
    """Requested cost with a reading / all requested cost; null where nothing costs anything."""


def component_rates(
    base: Mapping[str, Exact], amounts: Mapping[str, Exact], *, node_price: Exact | None
) -> dict[str, Fraction] | None:
    """Return the rate of each component, scaled so that the components cost what the node does.

    Source: OpenCost Specification v0.1, Appendix A.

    Args:
        base: rates by component, whose ratios are kept. They are rates per unit of the component,
            never the price of the node.
        amounts: how much of each the node has; a component it does not name it has none of.
        node_price: what the whole node costs in the same time; None: the node has no price of its
            own and costs what its components do, at their base rates.

    Returns:
        rates by component; None where a node price cannot be divided: everything is free
    """
    rates = {name: Fraction(rate) for name, rate in base.items()}
    if node_price is None:
        return rates
    listed = node_cost(rates, amounts)
    if listed == 0:
        return None
    return {name: rate * Fraction(node_price) / listed for name, rate in rates.items()}


def node_cost(rates: Mapping[str, Exact], amounts: Mapping[str, Exact]) -> Fraction:
    """Return what components cost together; a component without an amount costs 0."""
    parts = (Fraction(rate) * Fraction(amounts.get(name, 0)) for name, rate in rates.items())
    return sum(parts, Fraction(0))


def node_price(base: Exact | None, *, gpus: int | None, per_gpu: Exact | None) -> Fraction | None:
    """Return the price of a node of a rate card: its base and each of its GPUs.

    Returns:
        null where the base, the number of GPUs or the price of a GPU it has is unknown, never 0
    """
    if base is None or gpus is None:
        return None
    if gpus == 0:
        return Fraction(base)
    return None if per_gpu is None else Fraction(base) + gpus * Fraction(per_gpu)


def gpu_count(capacity: Mapping[str, int | str], labels: Mapping[str, int | str]) -> GpuCount:
    """Return the boards of a node and what they are offered as.

    Args:
        capacity: extended resources of the node.
        labels: of the node.

    Returns:
        boards from the label, else from capacity that is not shared; a number that cannot be read
        is null
    """
    plain, shared = _whole(capacity.get(GPU_RESOURCE)), _whole(capacity.get(SHARED_RESOURCE))
    offered = [count for count in (plain, shared) if count is not None]
    labelled = _whole(labels.get(COUNT_LABEL))
    boards = labelled if labelled is not None else plain if shared is None else None
    return GpuCount(physical=boards, virtual=sum(offered) if offered else None)


def physical_share(requested: Exact, count: GpuCount) -> Fraction | None:
    """Return requested replicas as whole boards: 5 of 10 replicas of 2 boards are 1.

    Returns:
        null where either count is unknown or nothing is offered
    """
    if count.physical is None or not count.virtual:
        return None
    return Fraction(requested) * count.physical / count.virtual


def efficiency(resources: Iterable[Used]) -> Efficiency:
    """Return how much of what was paid for was used, each resource weighted by its cost."""
    told = tuple(resources)
    known = [one for one in told if one.used is not None]
    cost = sum((Fraction(one.price) * Fraction(one.requested) for one in told), Fraction(0))
    paid = sum((Fraction(one.price) * Fraction(one.requested) for one in known), Fraction(0))
    used = sum((Fraction(one.price) * Fraction(one.used or 0) for one in known), Fraction(0))
    return Efficiency(
        ratio=used / paid if paid else None, coverage_ratio=paid / cost if cost else None
    )


def _whole(told: float | str | None) -> int | None:
    """Return a count, null where it is none: negative, with a fraction, or no number."""
    try:
        count = int(str(told))
    except ValueError:
        return None
    return count if count >= 0 else None
