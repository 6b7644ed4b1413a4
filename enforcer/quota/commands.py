"""What ``steward quota`` does."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import yaml

from enforcer.assembly import Store, connect, open_store, person, person_hands
from enforcer.desk.grants import with_grants
from enforcer.desk.model import Case, RequestKind, is_in_force
from enforcer.desk.office import Desk
from enforcer.enrich import subject_target
from enforcer.facts import Workload
from enforcer.hands import Hands
from enforcer.policies.listing import json_line, table
from enforcer.quota.applying import BY_FILE, carry_out
from enforcer.quota.change import Difference, QuotaChange
from enforcer.quota.comparing import Comparison, compared
from enforcer.quota.guard import manifests
from enforcer.quota.holding import excesses
from enforcer.quota.model import QuotaFile
from enforcer.quota.overuse import overuses
from enforcer.quota.priority import Demotion, demotions
from enforcer.quota.ranking import Ranking, set_priority
from enforcer.quota.reading import file_at, quota_schema
from enforcer.quota.whatif_command import run_what_if
from enforcer.sight import WarehouseSight
from steward.command import Context
from steward.errors import UsageError
from steward.output import visible, write_output

FAULT_EXIT_CODE: Final = 1
DIFFERENCES: Final = ("subject", "team", "model", "field", "live", "wanted")
PEOPLE: Final = ("workload", "team", "owner", "reason", "words")


def run_check(args: argparse.Namespace, context: Context) -> int:
    """Read the file and say that nothing is wrong with it."""
    file = file_from(args.file, context)
    sys.stdout.write(
        f"{visible(str(args.file))}: {len(file.teams)} teams, {len(file.models)} models, in order\n"
    )
    return 0


def run_plan(args: argparse.Namespace, context: Context) -> int:
    """Print what the cluster has otherwise; 1 where something cannot be written."""
    file = file_from(args.file, context)
    with open_store(context.settings) as store:
        wanted = with_grants(file, _cases(store, context), now=context.clock.now())
    gateway = connect(context.settings.kubernetes, lambda: False)
    found = compared(wanted, gateway)
    rows = [_shown(one) for change in found.changes for one in change.differences]
    if args.format == "json":
        troubles = [{"subject": one.subject, "message": one.message} for one in found.troubles]
        sys.stdout.write(json_line({"differences": rows, "troubles": troubles}))
    else:
        sys.stdout.write(table(rows, DIFFERENCES) if rows else "no quota differs\n")
        _tell(found)
    return FAULT_EXIT_CODE if found.troubles else 0


def run_apply(args: argparse.Namespace, context: Context) -> int:
    """Write what differs and demote what ranks too high; 1 where something was not done."""
    file = file_from(args.file, context)
    with open_store(context.settings) as store:
        gateway = connect(context.settings.kubernetes, lambda: True)
        hands = person_hands(context, store, gateway, is_dry_run=args.dry_run)
        facts_at = context.clock.now()
        held = _cases(store, context)
        found = compared(with_grants(file, held, now=facts_at), gateway)
        faults = sum(
            _carried_out(change, hands, _reasons(change, held, hands)) for change in found.changes
        )
        faults += sum(
            _demoted(one, by_uid, hands)
            for by_uid in [{each.uid: each for each in _workloads(store, context)}]
            for one in demotions(file, by_uid.values())
        )
    _tell(found)
    if found.is_in_order and not faults:
        sys.stdout.write("no quota differs\n")
    return FAULT_EXIT_CODE if faults or found.troubles else 0


def run_people(args: argparse.Namespace, context: Context) -> int:
    """Print who ranks too high, holds too much or too long."""
    file = file_from(args.file, context)
    with open_store(context.settings) as store:
        workloads = _workloads(store, context)
    rows = people_rows(file, workloads, context)
    if args.format == "json":
        sys.stdout.write(json_line(rows))
    else:
        sys.stdout.write(table(rows, PEOPLE) if rows else "everybody keeps to the file\n")
    return 0


def run_guard(args: argparse.Namespace, context: Context) -> int:
    """Print the policy and its binding."""
    found = manifests(file_from(args.file, context), is_strict=args.strict)
    sys.stdout.write(yaml.safe_dump_all([dict(one) for one in found], sort_keys=False))
    return 0


def run_schema(args: argparse.Namespace, _context: Context) -> int:
    """Print the JSON Schema."""
    write_output(args.output, json.dumps(quota_schema(), indent=2) + "\n")
    return 0


def file_from(path: Path, context: Context) -> QuotaFile:
    """Return the quota file.

    Raises:
        InputError: it cannot be read, or something is wrong with it.
        UsageError: it is of another cluster.
    """
    file = file_at(path)
    if file.cluster != context.settings.cluster:
        raise UsageError(
            f"{path} is of cluster {file.cluster!r}, the settings of {context.settings.cluster!r}",
            hint="set cluster, or name the file of this cluster",
        )
    return file


def people_rows(
    file: QuotaFile, workloads: Sequence[Workload], context: Context
) -> list[dict[str, object]]:
    """Return one row per workload and reason, then teams beyond their guarantee."""
    ranked = [(one.workload_uid, one.reason, one.sentence) for one in demotions(file, workloads)]
    held = [
        (one.workload_uid, one.reason, one.sentence)
        for one in excesses(file, workloads, now=context.clock.now())
    ]
    by_uid = {one.uid: one for one in workloads}
    rows: list[dict[str, object]] = [
        {
            "workload": f"{by_uid[uid].namespace}/{by_uid[uid].name}",
            "team": by_uid[uid].tenant_id,
            "owner": by_uid[uid].owner,
            "reason": reason,
            "words": words,
        }
        for uid, reason, words in [*ranked, *held]
    ]
    for one in overuses(file, workloads):
        limit = "no limit" if one.limit_gpu_count is None else f"a limit of {one.limit_gpu_count}"
        rows.append(
            {
                "workload": None,
                "team": one.tenant_id,
                "owner": None,
                "reason": "beyond_limit" if one.is_beyond_limit else "borrows",
                "words": f"holds {one.held_gpu_count:g} {one.gpu_model} of a guarantee of "
                f"{one.guaranteed_gpu_count} and {limit}",
            }
        )
    return rows


def _workloads(store: Store, context: Context) -> tuple[Workload, ...]:
    sight = WarehouseSight(store, gateway=None, cluster=context.settings.cluster)
    return sight.snapshot((), context.clock.now()).workloads


def _cases(store: Store, context: Context) -> tuple[Case, ...]:
    return Desk(state=store, clock=context.clock, actor=person()).cases()


def _reasons(change: QuotaChange, held: Sequence[Case], hands: Hands) -> tuple[str, ...]:
    """Return the requests in force that add to the queue's quota, beside the file."""
    now = hands.clock.now()
    teams = {one.tenant_id for one in change.differences}
    numbers = [
        f"request_{one.request.request_id}"
        for one in held
        if one.request.kind is RequestKind.QUOTA
        and one.request.tenant_id in teams
        and is_in_force(one, now)
    ]
    return (BY_FILE, *numbers)


def _carried_out(change: QuotaChange, hands: Hands, reasons: tuple[str, ...]) -> bool:
    """Write one change and say so; return whether it failed."""
    done = carry_out(change, hands, reasons=reasons, facts_at=hands.clock.now())
    for one in change.differences:
        said = "done" if done.is_done else "NOT done"
        detail = f" ({done.detail})" if done.detail else ""
        line = f"{one.subject}: {one.field} {one.live or 'unset'} -> {one.wanted or 'unset'}"
        sys.stdout.write(f"{visible(f'{line}: {said}{detail}')}\n")
    return not done.is_done


def _demoted(one: Demotion, by_uid: Mapping[str, Workload], hands: Hands) -> bool:
    """Demote one workload and say so; return whether it failed."""
    workload = by_uid[one.workload_uid]
    fault = set_priority(
        Ranking(
            plan_id=f"demotion-{one.workload_uid}-{int(hands.clock.now().timestamp())}",
            workload_uid=one.workload_uid,
            tenant_id=one.tenant_id,
            target=subject_target(workload),
            priority_class=one.wanted,
            reasons=(one.reason,),
            evidence={"sentence": one.sentence, "live": one.live, "wanted": one.wanted},
            undo_at=None,
        ),
        hands,
    )
    name = f"{workload.kind} {workload.namespace}/{workload.name}"
    line = f"{name}: {one.sentence}" + (f": NOT done ({fault})" if fault else "")
    sys.stdout.write(f"{visible(line)}\n")
    return fault is not None


def _tell(found: Comparison) -> None:
    for one in found.troubles:
        sys.stdout.write(f"{visible(f'NO {one.message}: {one.hint}')}\n")


def _shown(one: Difference) -> dict[str, object]:
    return {
        "subject": one.subject,
        "team": one.tenant_id,
        "model": one.gpu_model,
        "field": one.field,
        "live": one.live,
        "wanted": one.wanted,
    }


PARTS: Final[Mapping[str, Callable[[argparse.Namespace, Context], int]]] = {
    "check": run_check,
    "plan": run_plan,
    "apply": run_apply,
    "people": run_people,
    "guard": run_guard,
    "schema": run_schema,
    "what-if": run_what_if,
}
"""By the word after ``steward quota``."""
