"""What each queue may hold and holds, as last read before the period's end."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Self

import polars as pl


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """One queue's quota of one GPU model."""

    cluster: str
    queue: str
    cohort: str | None
    gpu_model: str | None
    guaranteed_gpu_count: float | None
    limit_gpu_count: float | None
    """None: no limit is known."""
    used_gpu_count: float | None
    observed_at: datetime

    @property
    def unused(self) -> float | None:
        """Return what is left below the limit; None: not known."""
        if self.limit_gpu_count is None or self.used_gpu_count is None:
            return None
        return max(0.0, self.limit_gpu_count - self.used_gpu_count)

    @property
    def spare(self) -> float:
        """Return what is guaranteed and not used."""
        if self.guaranteed_gpu_count is None or self.used_gpu_count is None:
            return 0.0
        return max(0.0, self.guaranteed_gpu_count - self.used_gpu_count)


class Quotas:
    """The last readings of all queues."""

    def __init__(self, quotas: tuple[Quota, ...]) -> None:
        """Keep the readings."""
        self._quotas = quotas
        self._by_queue: dict[tuple[str, str], list[Quota]] = {}
        for each in quotas:
            self._by_queue.setdefault((each.cluster, each.queue), []).append(each)

    @classmethod
    def from_rows(cls, rows: pl.DataFrame) -> Self:
        """Return the last readings among rows of ``quota_use``."""
        keys = ["cluster", "queue", "gpu_model"]
        last = rows.sort("observed_at").unique(keys, keep="last", maintain_order=True)
        fields = (*keys, "cohort", "guaranteed_gpu_count", "limit_gpu_count", "used_gpu_count",
                  "observed_at")  # fmt: skip
        named = last.sort(keys, nulls_last=True).select(fields).iter_rows(named=True)
        return cls(tuple(Quota(**row) for row in named))

    def of(self, cluster: str, queue: str | None) -> list[Quota]:
        """Return the quotas of a queue; those of its cluster queue where it has none of its own."""
        own = self._by_queue.get((cluster, queue or ""), [])
        has_own = any(
            each.limit_gpu_count is not None or each.guaranteed_gpu_count is not None
            for each in own
        )
        if has_own or not own or own[0].cohort is None:
            return own
        return self._by_queue.get((cluster, own[0].cohort), [])

    def cohort(self, quota: Quota) -> list[Quota]:
        """Return the quotas of the same model that may lend to each other, itself included."""
        if quota.cohort is None:
            return [quota]
        return [
            each
            for each in self._quotas
            if (each.cluster, each.cohort, each.gpu_model)
            == (quota.cluster, quota.cohort, quota.gpu_model)
            and each.guaranteed_gpu_count is not None
        ]

    def cohort_unused(self, quota: Quota) -> float | None:
        """Return what is guaranteed to the cohort and used by nobody; None: not known."""
        members = self.cohort(quota)
        if not members or any(each.used_gpu_count is None for each in members):
            return None
        guaranteed = sum(each.guaranteed_gpu_count or 0.0 for each in members)
        return max(0.0, guaranteed - sum(each.used_gpu_count or 0.0 for each in members))
