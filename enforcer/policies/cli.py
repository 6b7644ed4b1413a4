"""``steward policy``: flags only; the work is imported late."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from enforcer.backtest_cli import add_backtest
from steward.command import Command, Context

MODES: Final = ("observe", "warn", "enforce")
FORMATS: Final = ("yaml", "json")
LIST_FORMATS: Final = ("table", "json")
BACKTEST: Final = "backtest"
WHICH: Final = "NAME, NAME@VERSION or a file"


def _add(parser: argparse.ArgumentParser) -> None:
    parts = parser.add_subparsers(dest="part", required=True, metavar="PART")
    check = parts.add_parser("check", help="tell everything that is wrong with a file")
    check.add_argument("file", type=Path, metavar="FILE")
    check.add_argument("--parent", type=Path, metavar="FILE", help="its parent (default: stored)")
    show = parts.add_parser("show", help="print a policy")
    show.add_argument("which", metavar="WHICH", help=WHICH)
    show.add_argument("--full", action="store_true", help="with every default written out")
    show.add_argument("--format", choices=FORMATS, default="yaml", help="default: yaml")
    listed = parts.add_parser("list", help="policies that hold, or every version")
    listed.add_argument("--all", action="store_true", help="every version that was ever stored")
    listed.add_argument("--format", choices=LIST_FORMATS, default="table", help="default: table")
    add_backtest(parts, which=WHICH)
    _add_writing(parts)
    schema = parts.add_parser("schema", help="print the JSON Schema of a policy file")
    schema.add_argument("--output", type=Path, metavar="FILE", help="default: standard output")
    diff = parts.add_parser("diff", help="tell what differs between two policies")
    diff.add_argument("old", metavar="OLD", help=WHICH)
    diff.add_argument("new", metavar="NEW", help=WHICH)


def _add_writing(parts: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    put = parts.add_parser("put", help="store a file as the next version")
    put.add_argument("file", type=Path, metavar="FILE")
    put.add_argument("--from", dest="from_at", metavar="TIME", help="when it holds (default: now)")
    mode = parts.add_parser("mode", help="give a policy leave to warn or act, or take it back")
    mode.add_argument("name", metavar="NAME")
    mode.add_argument("mode", choices=MODES)
    retire = parts.add_parser("retire", help="end a policy; its versions are kept")
    retire.add_argument("name", metavar="NAME")
    for part in (put, mode, retire):
        part.add_argument("--note", required=True, help="why")
        part.add_argument("--author", help="who (default: who runs the command)")


def _run(args: argparse.Namespace, context: Context) -> int:
    if args.part == BACKTEST:
        from enforcer.backtest_command import run_backtest  # noqa: PLC0415  # heavy, and only here

        return run_backtest(args, context)
    from enforcer.policies.commands import PARTS  # noqa: PLC0415  # loaded only when it is called

    return PARTS[args.part](args, context)


POLICY: Final = Command(
    name="policy",
    summary="Check, store and compare the rules by which idle GPUs are taken back",
    add_arguments=_add,
    run=_run,
)
