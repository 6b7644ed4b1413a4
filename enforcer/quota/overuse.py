"""Teams that hold more than they are promised, in whole GPUs and shares of them.

Schedulers that count devices overlook shares: two workloads with 0.6 of a GPU each hold 1.2.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from enforcer.facts import Workload
from enforcer.quota.model import QuotaFile

UNNAMED_MODEL: Final = "unknown"
_MILLI: Final = 1_000
"""GPUs are summed in thousandths, so that shares add up exactly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overuse:
    """What one team holds of one model beyond its guarantee."""

    tenant_id: str
    gpu_model: str
    held_gpu_count: float
    guaranteed_gpu_count: int
    limit_gpu_count: int | None
    is_beyond_limit: bool
    """False: it borrows, as it may."""


def overuses(file: QuotaFile, workloads: Iterable[Workload]) -> tuple[Overuse, ...]:
    """Return teams beyond their guarantee, ascending by team and model.

    A model that the team has no share of is held against a guarantee and a limit of 0. Workloads of
    several models, or of none known, are counted under ``unknown`` where the team is named.

    Args:
        file: the promises.
        workloads: all of the cluster; those that still wait hold nothing.
    """
    held_milli: dict[tuple[str, str], int] = defaultdict(int)
    teams = {one.tenant_id: one for one in file.teams}
    for one in workloads:
        if not one.is_pending and one.tenant_id in teams:
            model = one.gpu_models[0] if len(one.gpu_models) == 1 else UNNAMED_MODEL
            held_milli[one.tenant_id, model] += round(one.gpu_count * _MILLI)
    found = []
    for (tenant, model), milli in sorted(held_milli.items()):
        share = next((one for one in teams[tenant].shares if one.gpu_model == model), None)
        guaranteed = 0 if share is None else share.guaranteed_gpu_count
        limit = 0 if share is None else share.limit_gpu_count
        if milli > guaranteed * _MILLI:
            found.append(
                Overuse(
                    tenant_id=tenant,
                    gpu_model=model,
                    held_gpu_count=milli / _MILLI,
                    guaranteed_gpu_count=guaranteed,
                    limit_gpu_count=limit,
                    is_beyond_limit=limit is not None and milli > limit * _MILLI,
                )
            )
    return tuple(found)
