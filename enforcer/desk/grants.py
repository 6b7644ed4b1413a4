"""What granted quotas add to the quota file while they hold. Pure.

The file and the grants in force make what the cluster should have: when a grant ends, the same
comparison takes it back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from enforcer.desk.model import Case, RequestKind, is_in_force
from enforcer.quota.model import QuotaFile, Share, TeamQuota


def with_grants(file: QuotaFile, found: Iterable[Case], *, now: datetime) -> QuotaFile:
    """Return the file with every quota in force added to its team's guarantee.

    A team that the file does not name has no queue, and gets nothing.
    """
    added: Counter[tuple[str, str]] = Counter()
    for case in found:
        wish = case.request
        is_ours = wish.kind is RequestKind.QUOTA and wish.cluster == file.cluster
        if is_ours and is_in_force(case, now) and wish.tenant_id and wish.gpu_model:
            added[wish.tenant_id, wish.gpu_model] += wish.gpu_count
    teams = tuple(_team(team, added) for team in file.teams)
    return replace(file, teams=teams)


def _team(team: TeamQuota, added: Counter[tuple[str, str]]) -> TeamQuota:
    shares = {share.gpu_model: share for share in team.shares}
    for (tenant, model), count in added.items():
        if tenant == team.tenant_id:
            share = shares.get(model) or Share(
                gpu_model=model,
                guaranteed_gpu_count=0,
                borrow_gpu_count=0,
                lend_gpu_count=None,
            )
            shares[model] = replace(share, guaranteed_gpu_count=share.guaranteed_gpu_count + count)
    return replace(team, shares=tuple(shares[model] for model in sorted(shares)))
