"""The reference of every command in Markdown; ``python -m steward.manual > docs/cli.md``.

Written from the parsers and the error tree, so that it cannot fall behind; it does not use
argparse's own layout, which differs between Python versions.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from steward import errors
from steward.catalogue import load_command
from steward.errors import INTERRUPTED_EXIT_CODE, StewardError
from steward.front import grouped
from steward.main import BROKEN_PIPE_EXIT_CODE
from steward.parser import (
    Parser,
    actions,
    command_parser,
    is_shown,
    nested_parsers,
    nested_summaries,
)

HEAD = """\
# Commands

Written by `python -m steward.manual`; do not edit by hand.

`steward COMMAND --help` says the same in the terminal; `steward completion bash|zsh|fish` completes
commands, flags and choices. A failure prints two lines to standard error, `error:` with what is
wrong and `hint:` with the next step, and ends with one of the exit codes below. Results go to
standard output; progress and logs go to standard error.
"""


def markdown() -> str:
    """Return the whole reference."""
    shared = _flag_table(Parser(prog="steward"), hidden=())
    parts = [HEAD, "## Flags of every command\n", shared]
    for heading, names in grouped().items():
        parts.append(f"## {heading}\n")
        parts += [_command_section(name) for name in names]
    return "\n".join([*parts, _exit_codes()])


def _command_section(name: str) -> str:
    command = load_command(name)
    parser = command_parser(command)
    nested, summaries = nested_parsers(parser), nested_summaries(parser)
    lines = [f"### `steward {name}`\n", f"{command.summary}.\n"]
    lines += [] if nested else [_flag_table(parser, hidden=_shared_flags())]
    for action, each in nested.items():
        lines += [f"#### `steward {name} {action}`\n"]
        lines += [f"{text}\n"] if (text := each.description or summaries.get(action)) else []
        lines += [_flag_table(each, hidden=_shared_flags())]
    return "\n".join(lines)


def _shared_flags() -> tuple[str, ...]:
    return tuple(flag for each in actions(Parser(prog="steward")) for flag in each.option_strings)


def _flag_table(parser: argparse.ArgumentParser, *, hidden: tuple[str, ...]) -> str:
    rows = list(_rows(parser, hidden=hidden))
    if not rows:
        return "Takes nothing but the flags of every command.\n"
    return "\n".join(["| argument | meaning |", "| --- | --- |", *rows]) + "\n"


def _rows(parser: argparse.ArgumentParser, *, hidden: tuple[str, ...]) -> Iterator[str]:
    for action in actions(parser):
        if is_shown(action) and not set(action.option_strings) & set(hidden):
            yield f"| `{_words(action)}` | {_meaning(action)} |"


def _words(action: argparse.Action) -> str:
    value = _value_words(action)
    if not action.option_strings:
        return value
    flags = ", ".join(action.option_strings)
    return f"{flags} {value}" if action.nargs != 0 else flags


def _value_words(action: argparse.Action) -> str:
    if isinstance(action.metavar, str):
        word = action.metavar
    elif action.choices is not None:
        word = " or ".join(map(str, action.choices))
    else:
        word = action.dest.rpartition(".")[2].upper()
    return f"{word}..." if action.nargs in {"+", "*"} else word


def _meaning(action: argparse.Action) -> str:
    text = " ".join((action.help or "").split()).replace("|", "\\|")
    return text.replace("%(default)s", str(action.default)).replace("%%", "%")


def _exit_codes() -> str:
    rows = ["## Exit codes\n", "| code | meaning |", "| --- | --- |", "| 0 | done |"]
    rows += [f"| {each.exit_code} | {_first_line(each)} |" for each in error_classes()]
    rows += [
        f"| {INTERRUPTED_EXIT_CODE} | stopped by Ctrl-C (143: by SIGTERM) |",
        f"| {BROKEN_PIPE_EXIT_CODE} | the reader of standard output went away (`… \\| head`) |",
    ]
    return "\n".join(rows) + "\n"


def error_classes() -> list[type[StewardError]]:
    """Return every class of the error tree by exit code; a room's own refinements are not in it."""
    found: list[type[StewardError]] = [StewardError]
    for each in found:
        found += [one for one in each.__subclasses__() if one.__module__ == errors.__name__]
    return sorted(found, key=lambda each: each.exit_code)


def _first_line(error: type[StewardError]) -> str:
    if error is StewardError:
        return "an unexpected failure: a fault in steward"
    return (error.__doc__ or "").splitlines()[0].rstrip(".")


if __name__ == "__main__":
    sys.stdout.write(markdown())
