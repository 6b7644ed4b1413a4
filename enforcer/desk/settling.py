"""What is granted is carried out when its time begins, and taken back when it ends.

Exemptions are rows with an end of their own, which is only noted here. A priority is an act of the
ledger with a timer, which takes it back by itself. A quota adds to the quota file for as long as it
holds, so that comparing the cluster with file and grants both applies it and takes it back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

from enforcer.desk.model import KEEPING, Case, RequestKind, State
from enforcer.desk.office import Desk
from enforcer.entries import Entry, Outcome
from enforcer.gateway.port import Target
from enforcer.hands import Hands
from enforcer.quota.ranking import GONE, Ranking, set_priority
from steward.errors import ClusterError, FencedError

Find = Callable[[str], Target | None]
"""Returns a workload's object by its uid; None: it is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """One case and what was done about it."""

    case: Case
    event: str
    detail: str | None


def begins(case: Case, now: datetime) -> bool:
    """Tell whether a case is to be carried out now."""
    period = case.request.period
    is_waiting = case.state in {State.GRANTED, State.FAILED}
    return is_waiting and period.from_at <= now < period.until_at


def ends(case: Case, now: datetime) -> bool:
    """Tell whether what a case changed is to be put back now."""
    is_applied = case.state in {State.APPLIED, State.TAKE_BACK_FAILED}
    return is_applied and now >= case.request.period.until_at


def settle_kept(desk: Desk) -> tuple[Settlement, ...]:
    """Note exemptions that are over; they hold from the last agreement on."""
    now = desk.clock.now()
    found = []
    for case in desk.cases():
        if case.request.kind in KEEPING and ends(case, now):
            desk.record(case, "expired", before=None, detail=None)
            found.append(Settlement(case=case, event="expired", detail=None))
    return tuple(found)


def settle_priorities(desk: Desk, hands: Hands, find: Find) -> tuple[Settlement, ...]:
    """Set granted priorities, and note those that the timer took back."""
    now = desk.clock.now()
    found = []
    for case in desk.cases():
        if case.request.kind is not RequestKind.PRIORITY:
            continue
        if begins(case, now):
            found.append(_set_priority(case, desk, hands=hands, find=find))
        elif ends(case, now) and _is_back(case, hands):
            desk.record(case, "taken_back", before=None, detail=None)
            found.append(Settlement(case=case, event="taken_back", detail=None))
    return tuple(found)


def settle_quotas(desk: Desk, in_order: Iterable[str]) -> tuple[Settlement, ...]:
    """Note quotas that the cluster now has, or has no more.

    Args:
        desk: the desk.
        in_order: teams whose quotas are as file and grants say.
    """
    now = desk.clock.now()
    teams = set(in_order)
    found = []
    for case in desk.cases():
        if case.request.kind is not RequestKind.QUOTA or case.request.tenant_id not in teams:
            continue
        event = "applied" if begins(case, now) else "taken_back" if ends(case, now) else None
        if event is not None:
            desk.record(case, event, before=None, detail=None)
            found.append(Settlement(case=case, event=event, detail=None))
    return tuple(found)


def _set_priority(case: Case, desk: Desk, *, hands: Hands, find: Find) -> Settlement:
    try:
        detail = _priority_fault(case, hands, find)
    except FencedError:
        raise
    except ClusterError as error:
        detail = error.message
    event = "applied" if detail is None else "failed"
    if detail is None or _last_detail(case) != detail:
        desk.record(case, event, before=None, detail=detail)
    return Settlement(case=case, event=event, detail=detail)


def _priority_fault(case: Case, hands: Hands, find: Find) -> str | None:
    """Set the priority; return what stood in the way, if anything did."""
    request = case.request
    acts = _acts(case, hands)
    if any(one.outcome is Outcome.DONE for one in acts):
        return None
    target = find(request.scope_key)
    if target is None:
        return GONE
    wish = Ranking(
        plan_id=f"request-{request.request_id}-{len(acts)}",
        workload_uid=request.scope_key,
        tenant_id=request.tenant_id,
        target=target,
        priority_class=request.priority_class or "",
        reasons=(f"request_{request.request_id}",),
        evidence={"request": request, "approvers": case.approvers},
        undo_at=request.period.until_at,
    )
    return set_priority(wish, hands)


def _is_back(case: Case, hands: Hands) -> bool:
    """Tell whether the ledger has no act of the case that still holds."""
    return all(one.outcome is not Outcome.DONE for one in _acts(case, hands))


def _acts(case: Case, hands: Hands) -> tuple[Entry, ...]:
    prefix = f"request-{case.request.request_id}-"
    acts = hands.ledger.entries().of_workload(case.request.scope_key)
    return tuple(one for one in acts if one.plan_id.startswith(prefix))


def _last_detail(case: Case) -> str | None:
    return case.events[-1].detail if case.events else None
