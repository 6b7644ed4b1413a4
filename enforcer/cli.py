"""``steward enforce`` and ``steward audit``: flags only; the work is imported late."""

from __future__ import annotations

import argparse
from typing import Final

from steward.command import Command, Context

FORMATS: Final = ("table", "json")
Parts = argparse._SubParsersAction  # noqa: SLF001  # argparse gives its type no other name


def _add_enforce(parser: argparse.ArgumentParser) -> None:
    parts = parser.add_subparsers(dest="part", required=True, metavar="PART")
    plan = parts.add_parser("plan", help="what the next round would do, and what it leaves out")
    plan.add_argument("--format", choices=FORMATS, default="table", help="default: table")
    run = parts.add_parser("run", help="do rounds whenever this replica leads")
    run.add_argument("--once", action="store_true", help="one round; end when its acts have ended")
    run.add_argument(
        "--dry-run", action="store_true", help="one round that the server checks, nothing changes"
    )
    explain = parts.add_parser("explain", help="why one workload is judged so, and what follows")
    explain.add_argument("workload", metavar="WORKLOAD", help="uid, NAMESPACE/NAME or with KIND/")
    explain.add_argument(
        "--at", dest="at", metavar="TIME", help="as it was then (default: now, with live objects)"
    )
    _add_acts(parts)
    _add_switch(parts)
    parts.add_parser("doctor", help="what can be seen and done here, kind by kind")
    rbac = parts.add_parser("rbac", help="print the least permissions for the enabled kinds")
    rbac.add_argument("--format", choices=("yaml", "json"), default="yaml", help="default: yaml")


def _add_acts(parts: Parts[argparse.ArgumentParser]) -> None:
    listed = parts.add_parser("list", help="acts of the ledger, newest first")
    listed.add_argument("--workload", metavar="UID", help="only on this workload")
    listed.add_argument("--limit", type=int, default=50, metavar="N", help="default: 50")
    listed.add_argument("--format", choices=FORMATS, default="table", help="default: table")
    undo = parts.add_parser("undo", help="take acts back")
    which = undo.add_mutually_exclusive_group(required=True)
    which.add_argument("--action", metavar="ID", help="one act, as `steward enforce list` shows")
    which.add_argument("--workload", metavar="UID", help="all that was done to a workload")
    which.add_argument("--all", action="store_true", help="everything that can be taken back")
    undo.add_argument("--dry-run", action="store_true", help="let the server check it only")


def _add_switch(parts: Parts[argparse.ArgumentParser]) -> None:
    freeze = parts.add_parser("freeze", help="stop all acts at once, until thawed")
    thaw = parts.add_parser("thaw", help="let acts be done again")
    for part in (freeze, thaw):
        part.add_argument("--reason", required=True, help="why")
        part.add_argument(
            "--everywhere", action="store_true", help="on every cluster of the warehouse"
        )


def _add_audit(parser: argparse.ArgumentParser) -> None:
    parts = parser.add_subparsers(dest="part", required=True, metavar="PART")
    verify = parts.add_parser("verify", help="check that no row was changed, removed or inserted")
    verify.add_argument(
        "--expect", metavar="SHA256", help="a head that was noted earlier must be in it"
    )
    listed = parts.add_parser("list", help="who did what to whom, newest first")
    listed.add_argument("--subject", metavar="UID", help="only on this subject")
    listed.add_argument("--limit", type=int, default=50, metavar="N", help="default: 50")
    listed.add_argument("--format", choices=FORMATS, default="table", help="default: table")


def _run_enforce(args: argparse.Namespace, context: Context) -> int:
    from enforcer.commands import PARTS  # noqa: PLC0415  # loaded only when it is called

    return PARTS[args.part](args, context)


def _run_audit(args: argparse.Namespace, context: Context) -> int:
    from enforcer.audit_commands import PARTS  # noqa: PLC0415  # loaded only when it is called

    return PARTS[args.part](args, context)


ENFORCE: Final = Command(
    name="enforce",
    summary="Take idle GPUs back by the policies in force, explain it, undo it",
    add_arguments=_add_enforce,
    run=_run_enforce,
)
AUDIT: Final = Command(
    name="audit",
    summary="Read and verify the record of who did what",
    add_arguments=_add_audit,
    run=_run_audit,
)
