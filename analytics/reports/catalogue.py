"""All reports by name: what each needs, and how it is made."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from analytics.reports import (
    capacity,
    cost,
    devices,
    efficiency,
    energy,
    fairness,
    fragmentation,
    health,
    inventory,
    queue,
    reclaim,
    tiers,
    utilization,
    value,
)
from analytics.reports.model import ReportDefinition

REPORTS: Final[Mapping[str, ReportDefinition]] = MappingProxyType(
    {
        definition.name: definition
        for definition in (
            health.DEFINITION,
            inventory.DEFINITION,
            devices.DEFINITION,
            utilization.DEFINITION,
            efficiency.DEFINITION,
            queue.DEFINITION,
            fragmentation.DEFINITION,
            cost.DEFINITION,
            energy.DEFINITION,
            fairness.DEFINITION,
            reclaim.DEFINITION,
            value.DEFINITION,
            tiers.DEFINITION,
            capacity.DEFINITION,
        )
    }
)
"""In the order a person would read them."""
