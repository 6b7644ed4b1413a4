"""What ``steward enforce`` does."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Final

import yaml

from enforcer import doctor, rbac
from enforcer.assembly import connect, open_store, person, person_hands, reach_of, terms_of
from enforcer.calls import CountedGateway
from enforcer.controller import Considered, RoundReport, consider
from enforcer.entries import Entry, instant_text
from enforcer.explain import explained, found_workload, gpus
from enforcer.gateway.memory import MemoryGateway
from enforcer.gateway.port import Gateway
from enforcer.hands import Hands
from enforcer.history import whole
from enforcer.jsontext import json_text
from enforcer.ledger import Ledger
from enforcer.policies.listing import json_line, table
from enforcer.run import once, serve
from enforcer.settling import settle
from enforcer.sight import WarehouseSight
from enforcer.undo import Undoing, Undone, undo, undoable
from steward.clock import FixedClock
from steward.command import Context
from steward.errors import InputError, UsageError
from steward.period import instant_from
from steward.ports import StateLog

FAULT_EXIT_CODE: Final = 1
LOOK_EVERY_S: Final = 0.5
PLANNED: Final = ("number", "step", "workload", "gpus", "rule", "reasons", "serves")
LEFT_OUT: Final = ("step", "workload", "reasons")
ACTS: Final = ("id", "action", "step", "workload", "gpus", "outcome", "begun", "by", "detail")


def run_plan(args: argparse.Namespace, context: Context) -> int:
    """Print what the next round would do."""
    considered = _considered(context)
    if args.format == "json":
        sys.stdout.write(json_text(considered.plan) + "\n")
    else:
        sys.stdout.write(_plan_text(considered))
    return 0


def run_run(args: argparse.Namespace, context: Context) -> int:
    """Do rounds, or one."""
    if not args.once and not args.dry_run:
        return serve(context)
    sys.stdout.write(_report_text(once(context, is_dry_run=args.dry_run)))
    return 0


def run_explain(args: argparse.Namespace, context: Context) -> int:
    """Print the page of one workload, as it is or as it was."""
    if args.at is None:
        considered = _considered(context)
    else:
        at = whole(instant_from(args.at, option="--at"))
        past = Context(settings=context.settings, clock=FixedClock(at))
        considered = _considered(past, gateway=MemoryGateway())
    sys.stdout.write(explained(considered, found_workload(considered, args.workload)))
    return 0


def run_list(args: argparse.Namespace, context: Context) -> int:
    """Print acts, newest first."""
    if args.limit < 0:
        raise UsageError(f"--limit {args.limit} is no number of acts", hint="0 or more")
    with open_store(context.settings) as store:
        entries = _ledger(context, store).entries().all()
    found = [one for one in reversed(entries) if args.workload in {None, one.workload_uid}]
    shown = [_shown(one) for one in islice(found, args.limit)]
    if args.format == "json":
        sys.stdout.write(json_line(shown))
    else:
        sys.stdout.write(table(shown, ACTS) if shown else "nothing was done yet\n")
    return 0


def run_undo(args: argparse.Namespace, context: Context) -> int:
    """Take acts back and wait until that is seen; 1 where one could not be."""
    with open_store(context.settings) as store:
        gateway = connect(context.settings.kubernetes, lambda: True)
        hands = person_hands(context, store, gateway, is_dry_run=args.dry_run)
        results = [_taken_back(entry, hands) for entry in _chosen(args, hands)]
    if not results:
        sys.stdout.write("there is nothing to take back\n")
    for one, word in results:
        detail = f": {one.detail}" if one.detail else ""
        sys.stdout.write(f"{one.entry.action_id} on {one.entry.workload_uid}: {word}{detail}\n")
    is_good = all(word == Undoing.DONE for _one, word in results)
    return 0 if is_good else FAULT_EXIT_CODE


def run_freeze(args: argparse.Namespace, context: Context) -> int:
    """Stop all acts."""
    return _turn(args, context, is_stopped=True)


def run_thaw(args: argparse.Namespace, context: Context) -> int:
    """Let acts be done again."""
    return _turn(args, context, is_stopped=False)


def run_doctor(_args: argparse.Namespace, context: Context) -> int:
    """Print what can be seen and done; 1 where something is missing."""
    settings = context.settings
    gateway = connect(settings.kubernetes, lambda: False)
    with open_store(settings) as store:
        sight = WarehouseSight(store, gateway=None, cluster=settings.cluster)
        now = context.clock.now()
        policies = sight.policies(now)
        health = sight.snapshot(policies, now).health
    findings = [
        *doctor.examined_facts(health, policies, now=now),
        doctor.examined_lease(gateway, terms_of(settings)),
        *doctor.examined_kinds(gateway, settings.enforce.kinds),
    ]
    for one in findings:
        sys.stdout.write(f"{'ok ' if one.is_good else 'NO '} {one.subject}: {one.words}\n")
    return 0 if all(one.is_good for one in findings) else FAULT_EXIT_CODE


def run_rbac(args: argparse.Namespace, context: Context) -> int:
    """Print account, roles and bindings."""
    own = context.settings.enforce
    found = rbac.manifests(own.kinds, namespace=own.lease_namespace, lease_name=own.lease_name)
    if args.format == "json":
        sys.stdout.write(json.dumps({"apiVersion": "v1", "kind": "List", "items": found}) + "\n")
    else:
        sys.stdout.write(yaml.safe_dump_all(found, sort_keys=False))
    return 0


def _considered(context: Context, *, gateway: Gateway | None = None) -> Considered:
    """See, decide and plan as a round does, without leading or writing."""
    settings = context.settings
    is_live = gateway is None
    inner = connect(settings.kubernetes, lambda: False) if gateway is None else gateway
    counted = CountedGateway(inner, monotonic=time.monotonic)
    with open_store(settings) as store:
        sight = WarehouseSight(
            store, gateway=counted if is_live else None, cluster=settings.cluster
        )
        hands = Hands(
            gateway=counted,
            ledger=_ledger(context, store),
            clock=context.clock,
            channels=(),
            reach=reach_of(settings),
        )
        return consider(sight, hands)


def _ledger(context: Context, store: StateLog) -> Ledger:
    return Ledger(store, cluster=context.settings.cluster, clock=context.clock, actor=person())


def _turn(args: argparse.Namespace, context: Context, *, is_stopped: bool) -> int:
    with open_store(context.settings) as store:
        ledger = _ledger(context, store)
        ledger.turn(is_stopped=is_stopped, reason=args.reason, everywhere=args.everywhere)
        is_frozen = ledger.is_stopped()
    where = "every cluster" if args.everywhere else context.settings.cluster
    state = "nothing acts" if is_frozen else "acts are done again"
    sys.stdout.write(f"{where}: {state}\n")
    return 0


def _chosen(args: argparse.Namespace, hands: Hands) -> Sequence[Entry]:
    entries = hands.ledger.entries()
    found = undoable(entries.all())
    if args.all:
        return found
    if args.workload is not None:
        return [one for one in found if one.workload_uid == args.workload]
    named = entries.named(args.action)
    if named is None:
        raise InputError(f"there is no act {args.action!r}", hint="see `steward enforce list`")
    if named not in found:
        raise InputError(
            f"act {args.action} cannot be taken back: it is {named.outcome}",
            hint="only acts that changed an object, have ended and are not undone yet",
        )
    return [named]


def _taken_back(entry: Entry, hands: Hands) -> tuple[Undone, str]:
    """Take one act back, wait until that has ended, and return how."""
    found = undo(entry, hands)
    if found.undoing_id is None:
        return found, found.result.value
    only = frozenset({found.undoing_id})
    until_s = time.monotonic() + hands.reach.interrupted_after.total_seconds() + LOOK_EVERY_S
    settle(hands, only=only)
    while _is_open(hands, found.undoing_id) and time.monotonic() < until_s:
        time.sleep(LOOK_EVERY_S)
        settle(hands, only=only)
    ended = hands.ledger.entries().named(found.undoing_id)
    return found, Undoing.OPEN.value if ended is None else ended.outcome.value


def _is_open(hands: Hands, action_id: str) -> bool:
    return any(one.action_id == action_id for one in hands.ledger.entries().open())


def _plan_text(considered: Considered) -> str:
    plan = considered.plan
    names = {one.uid: f"{one.namespace}/{one.name}" for one in considered.snapshot.workloads}
    planned = [
        {
            "number": one.number,
            "step": one.step,
            "workload": names.get(one.workload_uid, one.workload_uid),
            "gpus": f"{one.gpu_count:g}",
            "rule": one.decision.rule,
            "reasons": ", ".join(one.decision.reasons),
            "serves": names.get(one.serves_workload_uid or ""),
        }
        for one in plan.actions
    ]
    left_out = [
        {
            "step": one.step,
            "workload": names.get(one.workload_uid, one.workload_uid),
            "reasons": ", ".join(one.reasons),
        }
        for one in plan.deferred
    ]
    head = f"as of {instant_text(plan.planned_at)}, {len(considered.decisions)} workloads\n"
    breakers = f"breakers open: {', '.join(plan.breakers)}\n" if plan.breakers else ""
    text = table(planned, PLANNED) if planned else "nothing would be done\n"
    rest = f"\nleft out:\n{table(left_out, LEFT_OUT)}" if left_out else ""
    return f"{head}{breakers}{text}{rest}"


def _report_text(report: RoundReport) -> str:
    lines = [
        f"{one.action.step} {one.action.workload_uid}: {one.result}"
        + (f" ({one.detail})" if one.detail else "")
        for one in report.applied
    ]
    return _plan_text(report.considered) + "".join(f"{line}\n" for line in lines)


def _shown(entry: Entry) -> dict[str, object]:
    return {
        "id": entry.row_id,
        "action": entry.action_id,
        "step": entry.step,
        "workload": f"{entry.target.kind}/{entry.target.namespace}/{entry.target.name}",
        "gpus": gpus(entry.gpu_milli),
        "outcome": entry.outcome.value,
        "begun": instant_text(entry.begun_at),
        "by": entry.actor,
        "detail": entry.detail,
    }


PARTS: Final[Mapping[str, Callable[[argparse.Namespace, Context], int]]] = {
    "plan": run_plan,
    "run": run_run,
    "explain": run_explain,
    "list": run_list,
    "undo": run_undo,
    "freeze": run_freeze,
    "thaw": run_thaw,
    "doctor": run_doctor,
    "rbac": run_rbac,
}
"""By the word after ``steward enforce``."""
