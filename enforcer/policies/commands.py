"""What ``steward policy`` does: read, check, compare and store policies."""

from __future__ import annotations

import argparse
import getpass
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from difflib import unified_diff
from pathlib import Path
from typing import Final

from enforcer.policies.document import document_from, text_at
from enforcer.policies.family import children, family_faults
from enforcer.policies.leave import TABLE as BACKTEST_TABLE
from enforcer.policies.leave import refusal, shown_by
from enforcer.policies.listing import json_line, table
from enforcer.policies.matching import DEFAULT_NAME
from enforcer.policies.model import Mode, Policy
from enforcer.policies.reading import read_policy
from enforcer.policies.schema import schema_text
from enforcer.policies.shipped import default_policy, default_text
from enforcer.policies.store import (
    RETIRED,
    Change,
    Policies,
    Version,
    chosen,
    in_force,
    put,
    readable,
    versions,
)
from enforcer.policies.writing import document_of, json_text, lines_of, yaml_text
from sql.access import open_warehouse
from steward.clock import Clock
from steward.command import Context
from steward.errors import InputError, UsageError
from steward.output import visible, write_output
from steward.period import instant_from
from steward.ports import StateLog, StateReader

AT: Final = "@"
VERSION: Final = re.compile("[0-9]{1,18}")
COLUMNS: Final = ("policy", "version", "mode", "parent", "rules", "valid_from_at", "author", "note")
SHIPPED: Final = "shipped"
OBSERVE: Final = "observe"


def run_check(args: argparse.Namespace, context: Context) -> int:
    """Tell everything that is wrong with a file, by itself and under its parent."""
    policy, _ = _from_file(args.file, context)
    if policy.parent is not None:
        _hold_against(policy, _others(args, context))
    line = f"{args.file}: policy {policy.name}, {_count(len(policy.rules), 'rule')}, no fault"
    write_output(None, f"{visible(line)}\n")
    return 0


def _others(args: argparse.Namespace, context: Context) -> tuple[Policy, ...]:
    if args.parent is not None:
        return (_from_file(args.parent, context)[0],)
    with open_warehouse(context.settings) as warehouse:
        return Policies(warehouse).current(context.clock.now())


def _hold_against(policy: Policy, others: tuple[Policy, ...]) -> None:
    faults = family_faults(policy, others)
    if faults:
        lines = "".join(f"\n  {visible(str(fault))}" for fault in faults)
        raise InputError(
            f"policy {policy.name} is refused for {_count(len(faults), 'fault')}:{lines}",
            hint="a child may only tighten its parent; see docs/policies.md",
        )


def run_show(args: argparse.Namespace, context: Context) -> int:
    """Print a policy as it was written, or with everything written out."""
    policy, document = named_policy(args.which, context)
    if args.full:
        document = document_of(policy)
    text = yaml_text(document) if args.format == "yaml" else json_line(document)
    is_as_written = args.which == DEFAULT_NAME and policy.version == 0 and args.format == "yaml"
    write_output(None, default_text() if is_as_written and not args.full else text)
    return 0


def run_list(args: argparse.Namespace, context: Context) -> int:
    """Print the policies that hold, or every version."""
    with open_warehouse(context.settings) as warehouse:
        found = versions(warehouse)
    now = context.clock.now()
    shown = [_row(one) for one in (found if args.all else in_force(found, now))]
    if all(row["policy"] != DEFAULT_NAME for row in shown):
        shown.append(_shipped_row())
    shown.sort(key=lambda row: str(row["policy"]))
    write_output(None, json_line(shown) if args.format == "json" else table(shown, COLUMNS))
    return 0


def _row(version: Version) -> dict[str, object]:
    document = document_from(version.body, name=f"policy {version.name}")
    body = document if isinstance(document, Mapping) else {}
    rules = body.get("rules")
    return {
        "policy": version.name,
        "version": version.number,
        "mode": "retired" if version.is_retirement else body.get("mode", OBSERVE),
        "parent": body.get("parent"),
        "rules": len(rules) if isinstance(rules, list) else None,
        "valid_from_at": version.valid_from_at.isoformat(timespec="seconds"),
        "author": version.author,
        "note": version.note,
    }


def _shipped_row() -> dict[str, object]:
    policy = default_policy()
    return {
        "policy": policy.name,
        "version": policy.version,
        "mode": policy.mode.value,
        "parent": None,
        "rules": len(policy.rules),
        "valid_from_at": None,
        "author": SHIPPED,
        "note": "holds until a version of its name is stored",
    }


def run_put(args: argparse.Namespace, context: Context) -> int:
    """Store a file as the next version of its policy."""
    policy, document = _from_file(args.file, context)
    now = context.clock.now()
    from_at = now if args.from_at is None else instant_from(args.from_at, option="--from")
    with open_warehouse(context.settings) as warehouse:
        change = _change(args, context.clock)
        _refuse(warehouse, policy, change)
        dated = replace(change, valid_from_at=from_at)
        number = put(warehouse, policy.name, document=document, change=dated)
    write_output(None, f"policy {policy.name} version {number} stored, mode {policy.mode.value}\n")
    return 0


def run_mode(args: argparse.Namespace, context: Context) -> int:
    """Store a version that differs in its mode alone; leave can be taken back in any case."""
    with open_warehouse(context.settings) as warehouse:
        _, document = _stored(warehouse, args.name, None, context=context)
        changed = {**document, "mode": args.mode}
        change = _change(args, context.clock)
        if args.mode != OBSERVE:
            policy = _policy(json_text(changed), name=f"policy {args.name}", context=context)
            _refuse(warehouse, policy, change)
        number = put(warehouse, args.name, document=changed, change=change)
    write_output(None, f"policy {args.name} version {number}: mode {args.mode}\n")
    return 0


def run_retire(args: argparse.Namespace, context: Context) -> int:
    """End a policy; what was granted leave is taken back with it."""
    now = context.clock.now()
    with open_warehouse(context.settings) as warehouse:
        _stored(warehouse, args.name, None, context=context)
        below = children(args.name, Policies(warehouse).current(now))
        if below:
            raise InputError(
                f"policy {args.name} is the parent of {', '.join(one.name for one in below)}",
                hint="retire those first, or give them another parent",
            )
        document = {"policy": args.name, RETIRED: True}
        change = _change(args, context.clock)
        number = put(warehouse, args.name, document=document, change=change)
    write_output(None, f"policy {args.name} is retired by version {number}\n")
    return 0


def run_schema(args: argparse.Namespace, _context: Context) -> int:
    """Print the JSON Schema of a policy file."""
    write_output(args.output, schema_text())
    return 0


def run_diff(args: argparse.Namespace, context: Context) -> int:
    """Print every value that differs, with all defaults written out."""
    old, new = (
        list(lines_of(document_of(named_policy(which, context)[0])))
        for which in (args.old, args.new)
    )
    changed = [
        line
        for line in unified_diff(old, new, n=0, lineterm="")
        if not line.startswith(("---", "+++", "@@"))
    ]
    write_output(None, "".join(f"{visible(line)}\n" for line in changed) or "no difference\n")
    return 0


def _refuse(warehouse: StateLog, policy: Policy, change: Change) -> None:
    """Refuse what is not ready to hold: its family first, then its leave."""
    _hold_against(policy, Policies(warehouse).current(change.now))
    if policy.mode is not Mode.OBSERVE:
        _refuse_leave(warehouse, policy)


def _refuse_leave(warehouse: StateReader, policy: Policy) -> None:
    shown = shown_by(warehouse.state_rows(BACKTEST_TABLE))
    reason = refusal(policy, known=readable(versions(warehouse)), shown=shown)
    if reason is not None:
        raise InputError(
            f"policy {policy.name} may not leave observe: {reason}",
            hint=f"store it with mode observe, run `steward policy backtest {policy.name}`, "
            f"then `steward policy mode {policy.name} {policy.mode.value}`",
        )


def named_policy(text: str, context: Context) -> tuple[Policy, Mapping[str, object]]:
    """Return the policy that a word of the command line means."""
    if is_file(text):
        return _from_file(Path(text), context)
    name, _, number = text.partition(AT)
    if number and not VERSION.fullmatch(number):
        raise InputError(f"{text} names no version", hint="write NAME@3")
    with open_warehouse(context.settings) as warehouse:
        return _stored(warehouse, name, int(number) if number else None, context=context)


def is_file(text: str) -> bool:
    """Tell whether a word of the command line means a file, not a stored policy."""
    return Path(text).suffix in {".yaml", ".yml", ".json"}


def _stored(
    state: StateReader, name: str, number: int | None, *, context: Context
) -> tuple[Policy, Mapping[str, object]]:
    found = versions(state)
    is_shipped = number == 0 or all(one.name != name for one in found)
    if name == DEFAULT_NAME and is_shipped and not number:
        return default_policy(), _mapping(document_from(default_text(), name=name))
    version = chosen(found, name, number, now=context.clock.now())
    return version.policy(), _mapping(document_from(version.body, name=name))


def _from_file(path: Path, context: Context) -> tuple[Policy, Mapping[str, object]]:
    text = text_at(path)
    policy = _policy(text, name=str(path), context=context)
    return policy, _mapping(document_from(text, name=str(path)))


def _policy(text: str, *, name: str, context: Context) -> Policy:
    return read_policy(text, name=name, scrape_interval=_scrapes(context))


def _mapping(document: object) -> Mapping[str, object]:
    return (
        {str(key): value for key, value in document.items()}
        if isinstance(document, Mapping)
        else {}
    )


def _scrapes(context: Context) -> timedelta:
    return timedelta(seconds=context.settings.collect.interval_s)


def _change(args: argparse.Namespace, clock: Clock) -> Change:
    """Return who changes a policy and why: both are words, as the audit keeps them.

    Raises:
        UsageError: one of them says nothing, or holds half a character.
    """
    now, author = clock.now(), person() if args.author is None else args.author
    for option, text in (("--note", args.note), ("--author", author)):
        if not text.strip() or text.encode(errors="ignore").decode() != text:
            raise UsageError(f"{option} {text!r} says nothing", hint=f"write {option} in words")
    return Change(author=author.strip(), note=args.note.strip(), valid_from_at=now, now=now)


def person() -> str:
    """Return who runs the command."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


PARTS: Final[Mapping[str, Callable[[argparse.Namespace, Context], int]]] = {
    "check": run_check,
    "show": run_show,
    "list": run_list,
    "put": run_put,
    "mode": run_mode,
    "retire": run_retire,
    "schema": run_schema,
    "diff": run_diff,
}
"""By the word after ``steward policy``."""
