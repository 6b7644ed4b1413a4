"""What ``steward audit`` does."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Final

from enforcer.assembly import open_store
from enforcer.audit import verify
from enforcer.pages import pages
from enforcer.policies.listing import json_line, table
from sql.auditchain import AUDIT
from steward.command import Context
from steward.errors import UsageError

FAULT_EXIT_CODE: Final = 1
HEAD: Final = re.compile(r"[0-9a-f]{64}")
COLUMNS: Final = ("audit_id", "occurred_at", "actor", "action", "subject_kind", "subject_uid")


def run_verify(args: argparse.Namespace, context: Context) -> int:
    """Check the chain; 1 where it is broken, or lacks the head that was named."""
    if args.expect is not None and not HEAD.fullmatch(args.expect):
        raise UsageError(
            f"--expect {args.expect!r} is no head of an audit",
            hint="write the 64 hex digits that an earlier `steward audit verify` printed",
        )
    with open_store(context.settings) as store:
        found = verify(store, expected=args.expect)
    fault = found.state.fault
    if fault is not None:
        sys.stdout.write(
            f"broken at audit {fault.audit_id}: {fault.words}\n"
            f"{found.state.row_count} rows before it are whole\n"
        )
        return FAULT_EXIT_CODE
    sys.stdout.write(f"{found.state.row_count} rows, whole; head {found.state.head}\n")
    if found.holds_expected is False:
        sys.stdout.write(f"{args.expect} is not in it: rows at its end were removed\n")
        return FAULT_EXIT_CODE
    return 0


def run_list(args: argparse.Namespace, context: Context) -> int:
    """Print rows of the audit, newest first."""
    if args.limit < 0:
        raise UsageError(f"--limit {args.limit} is no number of rows", hint="0 or more")
    with open_store(context.settings) as store:
        rows = [row for page in pages(store, AUDIT) for row in page]
    kept = [row for row in reversed(rows) if args.subject in {None, row["subject_uid"]}]
    shown = list(islice(kept, args.limit))
    if args.format == "json":
        sys.stdout.write(json_line(shown))
    else:
        sys.stdout.write(table(shown, COLUMNS) if shown else "nothing is recorded\n")
    return 0


PARTS: Final[Mapping[str, Callable[[argparse.Namespace, Context], int]]] = {
    "verify": run_verify,
    "list": run_list,
}
"""By the word after ``steward audit``."""
