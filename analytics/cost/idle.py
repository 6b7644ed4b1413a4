"""Idle cost: what capacity costs and nobody was allocated, per resource and per node or cluster.

Idle of a node below zero is not idle but an error in the data: something is allocated there that
the price of the node does not contain. A sum over the cluster would hide it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from analytics.cost.rounding import Exact


class Level(StrEnum):
    """Where idle is counted."""

    NODE = "node"
    CLUSTER = "cluster"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asset:
    """What one node costs over a period."""

    cluster: str
    node: str
    costs: Mapping[str, Exact]
    """By resource, at the rates of the price book."""
    adjustment: Exact = 0
    """What the bill differs by: spread over the resources in proportion to their cost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocated:
    """What was allocated of one node."""

    cluster: str
    node: str
    costs: Mapping[str, Exact]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """More is allocated of a node's resource than the node costs."""

    cluster: str
    node: str
    resource: str
    excess: Fraction
    """By how much, above 0."""

    def __str__(self) -> str:
        """Return the sentence a person reads."""
        return f"{self.node}: {self.resource} is allocated for more than the node costs"


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleCost:
    """Capacity less allocation, exactly, and what is wrong with it."""

    exact: Mapping[tuple[str, str], Fraction]
    """By place (node or cluster) and resource, ascending; adds up to capacity less allocated.
    A value below 0 is kept for the books, and never shown."""
    faults: tuple[Fault, ...]
    """Of nodes, at either level, ascending."""

    def shown(self) -> dict[tuple[str, str], Fraction | None]:
        """Return what may be shown: null, not 0, where the data are wrong."""
        return {where: amount if amount >= 0 else None for where, amount in self.exact.items()}


def adjusted(asset: Asset) -> dict[str, Fraction]:
    """Return an asset's cost by resource after its adjustment, in proportion to cost.

    Raises:
        ValueError: there is an adjustment and nothing it could be spread over.
    """
    costs = {resource: Fraction(cost) for resource, cost in asset.costs.items()}
    total = sum(costs.values(), Fraction(0))
    if not asset.adjustment:
        return costs
    if total == 0:
        raise ValueError(f"{asset.node} costs nothing that an adjustment could be spread over")
    factor = 1 + Fraction(asset.adjustment) / total
    return {resource: cost * factor for resource, cost in costs.items()}


def idle_cost(assets: Iterable[Asset], allocated: Iterable[Allocated], *, level: Level) -> IdleCost:
    """Return idle cost per resource and per node or cluster, with errors found per node.

    Args:
        assets: every node of the inventory, whether anything ran on it or not.
        allocated: what was allocated, by node; a resource that the node's asset does not name is
            one it costs nothing for.
        level: where to count.
    """
    nodes: dict[tuple[str, str, str], Fraction] = {}
    for asset in assets:
        _add(nodes, asset.cluster, asset.node, costs=adjusted(asset))
    for held in allocated:
        less = {resource: -Fraction(cost) for resource, cost in held.costs.items()}
        _add(nodes, held.cluster, held.node, costs=less)
    exact: dict[tuple[str, str], Fraction] = {}
    for (cluster, node, resource), amount in sorted(nodes.items()):
        where = (node if level is Level.NODE else cluster, resource)
        exact[where] = exact.get(where, Fraction(0)) + amount
    faults = tuple(
        Fault(cluster=cluster, node=node, resource=resource, excess=-amount)
        for (cluster, node, resource), amount in sorted(nodes.items())
        if amount < 0
    )
    return IdleCost(exact=dict(sorted(exact.items())), faults=faults)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaOverhead:
    """What a quota costs that nobody used: a notional row.

    It is inside idle cost already, and is never added to it.
    """

    costs: Mapping[str, Fraction]
    is_notional: bool = True

    @property
    def total(self) -> Fraction:
        """Return the sum over resources."""
        return sum(self.costs.values(), Fraction(0))


def quota_overhead(
    quota: Mapping[str, Exact],
    requested: Mapping[str, Exact],
    *,
    prices: Mapping[str, Exact],
    hours: Exact,
) -> QuotaOverhead:
    """Return the cost of quota beyond what was requested, per resource, never below 0.

    Args:
        quota: hard limits by resource.
        requested: by resource; one it does not name was not requested.
        prices: per unit and hour; a resource without a price is left out.
        hours: how long.
    """
    unused = {
        resource: max(Fraction(hard) - Fraction(requested.get(resource, 0)), Fraction(0))
        for resource, hard in sorted(quota.items())
        if resource in prices
    }
    rate = {resource: Fraction(prices[resource]) * Fraction(hours) for resource in unused}
    return QuotaOverhead(costs={name: amount * rate[name] for name, amount in unused.items()})


def _add(
    nodes: dict[tuple[str, str, str], Fraction],
    cluster: str,
    node: str,
    *,
    costs: Mapping[str, Fraction],
) -> None:
    for resource, cost in costs.items():
        key = (cluster, node, resource)
        nodes[key] = nodes.get(key, Fraction(0)) + cost
