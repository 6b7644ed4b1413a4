"""``steward quota`` and ``steward request``: flags only; the work is imported late."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from steward.command import Command, Context

FORMATS: Final = ("table", "json")
STATES: Final = ("pending", "granted", "refused", "withdrawn", "applied", "failed", "expired",
                 "take_back_failed", "lapsed")  # fmt: skip


def _add_quota(parser: argparse.ArgumentParser) -> None:
    parts = parser.add_subparsers(dest="part", required=True, metavar="PART")
    check = parts.add_parser("check", help="tell everything that is wrong with a quota file")
    plan = parts.add_parser("plan", help="what the cluster has otherwise than the file says")
    apply = parts.add_parser("apply", help="write what differs, and what granted requests add")
    people = parts.add_parser("people", help="who ranks too high, holds too much or too long")
    guard = parts.add_parser("guard", help="print the admission guard that the file asks for")
    for part in (check, plan, apply, people, guard):
        part.add_argument("file", type=Path, metavar="FILE", help="see docs/quota.md")
    for part in (plan, people):
        part.add_argument("--format", choices=FORMATS, default="table", help="default: table")
    apply.add_argument("--dry-run", action="store_true", help="let the server check it only")
    guard.add_argument(
        "--strict", action="store_true", help="refuse what the guard itself cannot judge"
    )
    what_if = parts.add_parser("what-if", help="how teams would have waited under other quotas")
    what_if.add_argument("file", type=Path, metavar="FILE", help="the quotas to try")
    what_if.add_argument("--against", type=Path, metavar="FILE", help="the quotas as they are")
    what_if.add_argument("--last", default="14d", metavar="LENGTH", help="(default: 14d)")
    what_if.add_argument("--format", choices=FORMATS, default="table", help="default: table")
    schema = parts.add_parser("schema", help="print the JSON Schema of a quota file")
    schema.add_argument("--output", type=Path, metavar="FILE", help="default: standard output")


def _add_request(parser: argparse.ArgumentParser) -> None:
    parts = parser.add_subparsers(dest="part", required=True, metavar="PART")
    quota = parts.add_parser("quota", help="ask for more guaranteed GPUs for a while")
    quota.add_argument("--team", required=True, help="whose guarantee")
    quota.add_argument("--model", required=True, help="GPU model as the quota file names it")
    quota.add_argument("--gpus", type=int, required=True, metavar="N", help="beyond the file's")
    priority = parts.add_parser("priority", help="ask for another priority class of a workload")
    priority.add_argument("--workload", required=True, metavar="UID")
    priority.add_argument("--priority-class", required=True, metavar="NAME")
    exemption = parts.add_parser("exemption", help="ask that nothing is done to somebody's work")
    scope = exemption.add_mutually_exclusive_group(required=True)
    scope.add_argument("--workload", metavar="UID")
    scope.add_argument("--team")
    scope.add_argument("--namespace")
    keep = parts.add_parser("keep-alive", help="ask that a workload is left alone for hours")
    keep.add_argument("--workload", required=True, metavar="UID")
    for part in (quota, priority, exemption, keep):
        _add_wish(part)
    _add_desk(parts)


def _add_wish(part: argparse.ArgumentParser) -> None:
    part.add_argument("--for", dest="length", required=True, metavar="LENGTH", help="as 4h or 7d")
    part.add_argument("--reason", required=True, help="why; the approver reads it")
    part.add_argument("--from", dest="from_at", metavar="TIME", help="default: now")
    part.add_argument("--cluster", help="default: the cluster of the settings")
    part.add_argument("--requester", help="who asks (default: who runs the command)")


def _add_desk(parts: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    listed = parts.add_parser("list", help="requests, newest first")
    listed.add_argument("--state", choices=STATES, help="only these")
    listed.add_argument("--format", choices=FORMATS, default="table", help="default: table")
    show = parts.add_parser("show", help="all that an approver needs to know of one request")
    show.add_argument("--quota", type=Path, metavar="FILE", help="also what granting would change")
    approve = parts.add_parser("approve", help="agree to a request")
    refuse = parts.add_parser("refuse", help="say no, with a reason")
    withdraw = parts.add_parser("withdraw", help="take your own request back")
    for part in (show, approve, refuse, withdraw):
        part.add_argument("number", type=int, metavar="N", help="as `steward request list` shows")
    approve.add_argument("--reason", help="for the record")
    refuse.add_argument("--reason", required=True, help="the requester reads it")
    withdraw.add_argument("--reason", help="for the record")
    for part in (approve, refuse, withdraw):
        part.add_argument("--as", dest="actor", help="who says so (default: who runs the command)")
    settle = parts.add_parser(
        "settle", help="carry out what is granted, take back what is over; once"
    )
    settle.add_argument("--quota", type=Path, metavar="FILE", help="also quotas, by this file")


def _run_quota(args: argparse.Namespace, context: Context) -> int:
    from enforcer.quota.commands import PARTS  # noqa: PLC0415  # loaded only when it is called

    return PARTS[args.part](args, context)


def _run_request(args: argparse.Namespace, context: Context) -> int:
    from enforcer.desk.commands import PARTS  # noqa: PLC0415  # loaded only when it is called

    return PARTS[args.part](args, context)


QUOTA: Final = Command(
    name="quota",
    summary="Keep a cluster's quotas and priorities to one file",
    add_arguments=_add_quota,
    run=_run_quota,
)
REQUEST: Final = Command(
    name="request",
    summary="Ask for quota, priority or leave; agree, refuse, and take back in time",
    add_arguments=_add_request,
    run=_run_request,
)
