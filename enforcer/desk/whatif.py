"""What granting a quota would change: the team's guarantee, and who could no longer have theirs."""

from __future__ import annotations

from collections.abc import Iterable

from enforcer.desk.model import Case, RequestKind
from enforcer.facts import Workload
from enforcer.quota.model import QuotaFile


def what_if(file: QuotaFile, case: Case, workloads: Iterable[Workload]) -> list[str]:
    """Return sentences; none where nothing of a quota is asked for.

    Args:
        file: quotas as they hold now, with what was granted before.
        case: a request that is not in force yet.
        workloads: all that hold or wait.
    """
    request = case.request
    if request.kind is not RequestKind.QUOTA or request.gpu_model is None:
        return []
    team = next((one for one in file.teams if one.tenant_id == request.tenant_id), None)
    if team is None:
        return [f"if granted: nothing, for the quota file does not name team {request.tenant_id}"]
    model = request.gpu_model
    promised = sum(
        share.guaranteed_gpu_count
        for one in file.teams
        for share in one.shares
        if share.gpu_model == model
    )
    own = next((share for share in team.shares if share.gpu_model == model), None)
    before = 0 if own is None else own.guaranteed_gpu_count
    after = before + request.gpu_count
    lines = [f"if granted: {before} -> {after} guaranteed {model}", _sum(file, case, promised)]
    waiting = [
        one
        for one in workloads
        if one.is_pending
        and one.tenant_id == request.tenant_id
        and (not one.gpu_models or model in one.gpu_models)
    ]
    held = sum(
        one.gpu_count
        for one in workloads
        if not one.is_pending and one.tenant_id == request.tenant_id and one.gpu_models == (model,)
    )
    fits = _started(waiting, room=after - held)
    return [*lines, f"of {len(waiting)} waiting workloads, {fits} would fit in the guarantee"]


def _sum(file: QuotaFile, case: Case, promised: int) -> str:
    model = file.model(case.request.gpu_model or "")
    total = promised + case.request.gpu_count
    if model is None or model.capacity_gpu_count is None:
        return f"all guarantees together: {promised} -> {total}; capacity is not said"
    words = f"all guarantees together: {promised} -> {total} of {model.capacity_gpu_count}"
    if total > model.capacity_gpu_count:
        return f"{words}: they could NOT all be kept"
    return words


def _started(waiting: Iterable[Workload], *, room: float) -> int:
    """Return how many fit one after the other, the oldest first."""
    count = 0
    for one in sorted(waiting, key=lambda each: (each.created_at, each.uid)):
        if one.gpu_count <= room:
            room -= one.gpu_count
            count += 1
    return count
