"""``steward settings``: what is in force and where it was said, and the schema of the file."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Mapping
from functools import reduce
from pathlib import Path

from steward.command import Command, Context
from steward.output import write_output
from steward.settings.fields import Setting, all_settings
from steward.settings.load import Resolved, resolve, stated_flags

HIDDEN = "(hidden)"
PASSWORD = re.compile(r"(?<=://)([^/@\s:]*):[^/@\s]*@")
"""The password in ``http://name:password@host``."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add ``show`` and ``schema``."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="show|schema")
    show = actions.add_parser("show", help="print the settings in force and where each was said")
    show.add_argument("--format", choices=["table", "json"], default="table", help="default: table")
    schema = actions.add_parser("schema", help="print the JSON Schema of the settings file")
    schema.add_argument(
        "--format", choices=["json", "markdown"], default="json", help="default: json"
    )
    schema.add_argument("--output", metavar="FILE", type=Path, help="write there instead")


def run(args: argparse.Namespace, _context: Context) -> int:
    """Print what was asked for."""
    if args.action == "schema":
        write_output(args.output, _described(args.format))
        return 0
    resolved = resolve(config=args.config, flags=stated_flags(vars(args)))
    write_output(None, _json(resolved) if args.format == "json" else _table(resolved))
    return 0


def _described(form: str) -> str:
    from steward.settings.schema import markdown_text, schema_text  # noqa: PLC0415  # schema only

    return markdown_text() if form == "markdown" else schema_text()


def _table(resolved: Resolved) -> str:
    rows = [("setting", "value", "from")]
    rows += [
        (each.path, _words(_safe(each, resolved)), resolved.origins[each.path])
        for each in all_settings()
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    file = f"file: {resolved.file}" if resolved.file else "file: none"
    lines = [f"{row[0]:<{widths[0]}}  {row[1]:<{widths[1]}}  {row[2]}" for row in rows]
    return "\n".join([file, "", *lines]) + "\n"


def _json(resolved: Resolved) -> str:
    entries: Mapping[str, object] = {
        each.path: {"value": _safe(each, resolved), "from": resolved.origins[each.path]}
        for each in all_settings()
    }
    file = str(resolved.file) if resolved.file else None
    return json.dumps({"file": file, "settings": entries}, indent=2, ensure_ascii=False) + "\n"


def _safe(setting: Setting, resolved: Resolved) -> object:
    """Return the value as it may be seen: no secret, no password inside an address."""
    value: object = reduce(getattr, setting.path.split("."), resolved.settings)
    if isinstance(value, tuple):
        return [_masked(setting, item) for item in value]
    return value if value is None else _masked(setting, value)


def _masked(setting: Setting, value: object) -> object:
    if setting.shape.is_secret:
        return HIDDEN
    if isinstance(value, int | float):
        return value
    return PASSWORD.sub(r"\1:***@", str(value))


def _words(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(str(item) for item in value) or "(none)"
    return "(unset)" if value is None else str(value)


SETTINGS = Command(
    name="settings",
    summary="Show the settings in force and where each was said, or the schema of the file",
    add_arguments=add_arguments,
    run=run,
    needs_settings=False,
)
