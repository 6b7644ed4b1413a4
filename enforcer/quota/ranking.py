"""Setting the priority class of one workload, with the same care as every other act."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from enforcer.actuators import Order, Refusal, RefusalReason, reclaim
from enforcer.decisions import Step
from enforcer.enrich import surroundings
from enforcer.gateway.port import Target
from enforcer.hands import Hands
from enforcer.ledger import Draft
from enforcer.quota.applying import write_through

SETS_PRIORITY: Final = "set_priority"
"""The ledger's word for it."""
GONE: Final = "its workload does not exist any more"
UNDER_WAY: Final = "another act on it is under way"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """Which workload is to have which priority class, and why."""

    plan_id: str
    workload_uid: str
    tenant_id: str | None
    target: Target
    priority_class: str
    reasons: tuple[str, ...]
    evidence: object
    undo_at: datetime | None
    """When it is taken back by itself; None: never."""


def set_priority(wish: Ranking, hands: Hands) -> str | None:
    """Write the priority class; return what stood in the way, None where it is in force.

    Raises:
        FencedError: another replica leads now.
        ClusterError: the object cannot be read; nothing was begun.
    """
    facts_at = hands.clock.now()
    subject = hands.gateway.read(wish.target)
    if subject is None:
        return GONE
    draft = _draft(wish, hands)
    order = Order(action_id=draft.action_id, at=facts_at, low_priority_class=wish.priority_class)
    around = surroundings(hands.gateway, wish.target.namespace)
    act = reclaim(Step.LOWER_PRIORITY, subject, around, order=order)
    if isinstance(act, Refusal):
        return None if act.reason is RefusalReason.ALREADY_TAKEN else act.detail
    begun = hands.ledger.begin(
        replace(draft, before=act.before.text()), known=hands.ledger.known(at=facts_at)
    )
    if begun is None:
        return UNDER_WAY
    is_done, detail = write_through(begun, act.write, hands)
    return None if is_done else detail


def _draft(wish: Ranking, hands: Hands) -> Draft:
    return Draft(
        plan_id=wish.plan_id,
        number=0,
        step=SETS_PRIORITY,
        workload_uid=wish.workload_uid,
        tenant_id=wish.tenant_id,
        target=wish.target,
        gpu_milli=0,
        reasons=wish.reasons,
        evidence=wish.evidence,
        undo_at=wish.undo_at,
        is_dry_run=hands.reach.is_dry_run,
    )
