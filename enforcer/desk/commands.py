"""What ``steward request`` does."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Final

from enforcer.assembly import Store, connect, open_store, person, person_hands
from enforcer.desk.grants import with_grants
from enforcer.desk.intake import Wish
from enforcer.desk.model import Answer, Case, RequestKind
from enforcer.desk.office import Desk
from enforcer.desk.settling import (
    Settlement,
    settle_kept,
    settle_priorities,
    settle_quotas,
)
from enforcer.desk.tending import in_order
from enforcer.desk.use import LOOK_BACK, Use, earlier_grants, use_of
from enforcer.desk.whatif import what_if
from enforcer.enrich import subject_target
from enforcer.entries import instant_text
from enforcer.gateway.port import Target
from enforcer.hands import Hands
from enforcer.ledger import QUEUE_KINDS
from enforcer.policies.durations import duration_from, duration_text
from enforcer.policies.listing import json_line, table
from enforcer.quota.commands import FAULT_EXIT_CODE, file_from
from enforcer.quota.comparing import compared
from enforcer.sight import WarehouseSight
from steward.command import Context
from steward.errors import UsageError
from steward.output import visible
from steward.period import instant_from

LISTED: Final = ("request", "state", "kind", "scope", "wish", "until", "by", "needs", "reason")


def run_quota(args: argparse.Namespace, context: Context) -> int:
    """Ask for GPUs."""
    return _submitted(args, context, RequestKind.QUOTA, scope=("tenant", args.team))


def run_priority(args: argparse.Namespace, context: Context) -> int:
    """Ask for a priority class."""
    return _submitted(args, context, RequestKind.PRIORITY, scope=("workload", args.workload))


def run_exemption(args: argparse.Namespace, context: Context) -> int:
    """Ask that something is left alone."""
    named = (("workload", args.workload), ("tenant", args.team), ("namespace", args.namespace))
    kind, key = next((kind, key) for kind, key in named if key is not None)
    return _submitted(args, context, RequestKind.EXEMPTION, scope=(kind, key))


def run_keep(args: argparse.Namespace, context: Context) -> int:
    """Ask that a workload is left alone for hours."""
    return _submitted(args, context, RequestKind.KEEP_ALIVE, scope=("workload", args.workload))


def run_list(args: argparse.Namespace, context: Context) -> int:
    """Print requests, newest first."""
    with open_store(context.settings) as store:
        cases = _desk(store, context, None).cases()
    rows = [_row(one) for one in reversed(cases) if args.state in {None, one.state.value}]
    if args.format == "json":
        sys.stdout.write(json_line(rows))
    else:
        sys.stdout.write(table(rows, LISTED) if rows else "nothing was asked for\n")
    return 0


def run_show(args: argparse.Namespace, context: Context) -> int:
    """Print what an approver needs to know."""
    now = context.clock.now()
    with open_store(context.settings) as store:
        desk = _desk(store, context, None)
        case, cases = desk.case(args.number), desk.cases()
        lately = use_of(store, case, from_at=now - LOOK_BACK, until_at=now)
        earlier = earlier_grants(store, case, cases, now=now)
        sight = WarehouseSight(store, gateway=None, cluster=case.request.cluster)
        workloads = sight.snapshot((), now).workloads
    lines = [*_page(case), f"last {duration_text(LOOK_BACK)}: {_use(lately)}"]
    waiting = [
        one for one in workloads if one.is_pending and one.tenant_id == case.request.tenant_id
    ]
    gpus = sum(one.gpu_count for one in waiting)
    lines.append(f"waiting now: {len(waiting)} workloads of the team for {gpus:g} GPUs")
    for one in earlier:
        until = instant_text(one.case.request.period.until_at)
        number = one.case.request.request_id
        lines.append(f"granted before: request {number} until {until}: {_use(one.use)}")
    if not earlier:
        lines.append("granted before: nothing for this scope")
    if args.quota is not None:
        held = with_grants(file_from(args.quota, context), cases, now=now)
        lines += what_if(held, case, workloads)
    sys.stdout.write("".join(f"{visible(line)}\n" for line in lines))
    return 0


def run_approve(args: argparse.Namespace, context: Context) -> int:
    """Agree."""
    return _answered(args, context, Answer.GRANTED)


def run_refuse(args: argparse.Namespace, context: Context) -> int:
    """Say no."""
    return _answered(args, context, Answer.REFUSED)


def run_withdraw(args: argparse.Namespace, context: Context) -> int:
    """Take one's own request back."""
    return _answered(args, context, Answer.WITHDRAWN)


def run_settle(args: argparse.Namespace, context: Context) -> int:
    """Carry out and take back; 1 where something could not be."""
    with open_store(context.settings) as store:
        desk = _desk(store, context, None)
        found = _told(settle_kept(desk))
        has_writes = args.quota is not None or any(
            one.request.kind is RequestKind.PRIORITY for one in desk.cases()
        )
        if has_writes:
            found += _told(_settled_in_cluster(args, context, store=store, desk=desk))
    if not found:
        sys.stdout.write("nothing is due\n")
    return FAULT_EXIT_CODE if any(one.event == "failed" for one in found) else 0


def _told(found: Iterable[Settlement]) -> list[Settlement]:
    """Print what was done at once: what follows may fail."""
    told = list(found)
    for one in told:
        detail = f": {one.detail}" if one.detail else ""
        line = f"request {one.case.request.request_id} is {one.event}{detail}"
        sys.stdout.write(f"{visible(line)}\n")
    return told


def _settled_in_cluster(
    args: argparse.Namespace, context: Context, *, store: Store, desk: Desk
) -> list[Settlement]:
    gateway = connect(context.settings.kubernetes, lambda: True)
    hands = with_queues(person_hands(context, store, gateway, is_dry_run=False))
    found = list(settle_priorities(desk, hands, _finder(store, context)))
    if args.quota is None:
        return found
    file = file_from(args.quota, context)
    now = context.clock.now()
    comparison = compared(with_grants(file, desk.cases(), now=now), gateway)
    return [*found, *settle_quotas(desk, in_order(file, comparison, hands))]


def with_queues(hands: Hands) -> Hands:
    """Return hands that may write quotas: a person's word is enough, a controller's is not."""
    return replace(hands, reach=replace(hands.reach, kinds=hands.reach.kinds | QUEUE_KINDS))


def _finder(store: Store, context: Context) -> Callable[[str], Target | None]:
    sight = WarehouseSight(store, gateway=None, cluster=context.settings.cluster)
    targets = {
        one.uid: subject_target(one) for one in sight.snapshot((), context.clock.now()).workloads
    }
    return targets.get


def _submitted(
    args: argparse.Namespace, context: Context, kind: RequestKind, *, scope: tuple[str, str]
) -> int:
    now = context.clock.now()
    cluster = args.cluster or context.settings.cluster
    with open_store(context.settings) as store:
        wish = Wish(
            cluster=cluster,
            kind=kind,
            tenant_id=_tenant(store, context, scope),
            scope_kind=scope[0],
            scope_key=scope[1],
            gpu_model=getattr(args, "model", None),
            gpu_count=getattr(args, "gpus", None),
            priority_class=getattr(args, "priority_class", None),
            requester=person() if args.requester is None else args.requester,
            reason=args.reason,
            from_at=now if args.from_at is None else instant_from(args.from_at, option="--from"),
            length=_length(args.length),
        )
        case = _desk(store, context, args.requester).submit(wish)
    sys.stdout.write(f"{_sentence(case)}\n")
    return 0


def _tenant(store: Store, context: Context, scope: tuple[str, str]) -> str | None:
    """Return whose team is meant; a workload's is what is recorded of it."""
    kind, key = scope
    if kind == "tenant":
        return key
    sight = WarehouseSight(store, gateway=None, cluster=context.settings.cluster)
    for one in sight.snapshot((), context.clock.now()).workloads:
        if key == (one.uid if kind == "workload" else one.namespace):
            return one.tenant_id
    return None


def _answered(args: argparse.Namespace, context: Context, answer: Answer) -> int:
    with open_store(context.settings) as store:
        case = _desk(store, context, args.actor).answer(args.number, answer, reason=args.reason)
    sys.stdout.write(f"{_sentence(case)}\n")
    return 0


def _desk(store: Store, context: Context, actor: str | None) -> Desk:
    return Desk(state=store, clock=context.clock, actor=person() if actor is None else actor)


def _length(text: str) -> timedelta:
    found = duration_from(text)
    if found is None:
        raise UsageError(f"--for {text!r} is no length of time", hint="write it as 4h or 7d")
    return found


def _sentence(case: Case) -> str:
    more = case.needed_count - len(case.approvers)
    rest = f", {more} more to agree" if case.state.value == "pending" else ""
    return f"request {case.request.request_id} is {case.state.value}{rest}"


def _row(case: Case) -> dict[str, object]:
    request = case.request
    return {
        "request": request.request_id,
        "state": case.state.value,
        "kind": request.kind.value,
        "scope": f"{request.scope_kind} {request.scope_key}",
        "wish": _wish(case),
        "until": instant_text(request.period.until_at),
        "by": request.requester,
        "needs": f"{len(case.approvers)}/{case.needed_count} ({', '.join(case.needed_reasons)})",
        "reason": request.reason,
    }


def _wish(case: Case) -> str | None:
    request = case.request
    if request.kind is RequestKind.QUOTA:
        return f"{request.gpu_count} {request.gpu_model}"
    return request.priority_class


def _page(case: Case) -> list[str]:
    request = case.request
    row = _row(case)
    length = request.period.until_at - request.period.from_at
    lines = [
        _sentence(case),
        f"{request.requester} asks for {request.kind.value} of {row['scope']}"
        + (f": {row['wish']}" if row["wish"] else ""),
        f"from {instant_text(request.period.from_at)} for {length}: {request.reason}",
        f"must agree: {case.needed_count} ({', '.join(case.needed_reasons)})",
    ]
    for one in case.rulings:
        because = f": {one.reason}" if one.reason else ""
        lines.append(f"{one.answer.value} by {one.approver}{because}")
    return lines


def _use(use: Use | None) -> str:
    """Return a sentence; what is not known is said."""
    if use is None:
        return "no hour of the ledger is built"
    if use.effective_ratio is None:
        effect = "effective use not known"
    else:
        effect = f"{use.effective_ratio:.1%} effective (known for {use.known_ratio or 0:.0%})"
    return (
        f"held {use.held_gpu_hours:.1f} GPU-hours, {effect}, "
        f"idle {use.idle_gpu_hours:.1f}, unknown {use.unknown_gpu_hours:.1f}"
    )


PARTS: Final[Mapping[str, Callable[[argparse.Namespace, Context], int]]] = {
    "quota": run_quota,
    "priority": run_priority,
    "exemption": run_exemption,
    "keep-alive": run_keep,
    "list": run_list,
    "show": run_show,
    "approve": run_approve,
    "refuse": run_refuse,
    "withdraw": run_withdraw,
    "settle": run_settle,
}
"""By the word after ``steward request``."""
