"""Quota per tenant and GPU model: a guarantee, a limit above it, and one cohort to borrow in."""

from __future__ import annotations

from collections import Counter
from typing import Final

from collector.sources.simulated.fleet import Fleet
from collector.sources.simulated.requests import TENANT_WEIGHTS, Request

BORROWABLE_RATIO: Final = 0.4
"""The part of the others' guarantees that a tenant may borrow."""
_TOLERANCE: Final = 1e-9


class QuotaLedger:
    """Who has reserved how much of what."""

    def __init__(self, fleet: Fleet) -> None:
        """Start with nothing reserved."""
        self._total = Counter(device.model.name for device in fleet.devices)
        self._used = {
            (tenant, model): 0.0 for tenant in TENANT_WEIGHTS for model in sorted(self._total)
        }

    def owners(self) -> list[tuple[str, str]]:
        """Return every tenant and GPU model, in a fixed order."""
        return list(self._used)

    def guaranteed(self, tenant: str, model: str) -> float:
        """Return the GPUs that are the tenant's own."""
        return TENANT_WEIGHTS[tenant] * self._total[model]

    def limit(self, tenant: str, model: str) -> float:
        """Return the most the tenant may hold, borrowed ones included."""
        own = self.guaranteed(tenant, model)
        return own + BORROWABLE_RATIO * (self._total[model] - own)

    def used(self, tenant: str, model: str) -> float:
        """Return the GPUs reserved by the tenant."""
        return self._used[tenant, model]

    def is_within_limit(self, request: Request, model: str) -> bool:
        """Tell whether the request keeps its tenant within the tenant's own limit."""
        wanted = self._used[request.tenant, model] + request.quota_gpu_count
        return wanted <= self.limit(request.tenant, model) + _TOLERANCE

    def has_room(self, request: Request, model: str, *, freed_gpu_count: float = 0.0) -> bool:
        """Tell whether tenant and cohort have room, after freeing what is to be freed."""
        if not self.is_within_limit(request, model):
            return False
        reserved = sum(used for (_, each), used in self._used.items() if each == model)
        wanted = reserved - freed_gpu_count + request.quota_gpu_count
        return wanted <= self._total[model] + _TOLERANCE

    def reserve(self, request: Request, model: str) -> None:
        """Count the whole gang against its tenant."""
        self._used[request.tenant, model] += request.quota_gpu_count

    def release(self, request: Request, model: str) -> None:
        """Give the gang's quota back; sums of shares end at an exact zero."""
        left = self._used[request.tenant, model] - request.quota_gpu_count
        self._used[request.tenant, model] = 0.0 if abs(left) < _TOLERANCE else left

    def shortage(self, request: Request) -> str:
        """Return Kueue's words for why no quota could be reserved."""
        parts = []
        for model in request.models:
            reserved = sum(used for (_, each), used in self._used.items() if each == model)
            unused = min(
                self.limit(request.tenant, model) - self._used[request.tenant, model],
                self._total[model] - reserved,
            )
            missing = request.quota_gpu_count - max(0.0, unused)
            parts.append(
                f"insufficient unused quota for {request.resource} in flavor {model}, "
                f"{missing:g} more needed"
            )
        return "couldn't assign flavors to pod set main: " + ", ".join(parts)
