"""The parser of the front door: flags of every command, and faults told like all others."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from steward.command import Command
from steward.errors import UsageError


class Parser(argparse.ArgumentParser):
    """A parser whose faults are StewardErrors, and which knows the flags of every command.

    Parsers of actions (``steward db check``) are of this class too, so that the shared flags may
    stand before or after the action.
    """

    def __init__(self, **options: object) -> None:
        """Prepare a parser without abbreviations, with the shared flags."""
        options.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(**options, allow_abbrev=False)  # type: ignore[arg-type]  # argparse's own
        self._add_shared_flags()

    def error(self, message: str) -> NoReturn:
        """Raise the fault instead of printing usage and exiting."""
        raise UsageError(message, hint=f"see `{self.prog} --help`")

    def _add_shared_flags(self) -> None:
        shared = self.add_argument_group("options of every command")
        absent = argparse.SUPPRESS  # an action's parser must not unset what stood before the action
        shared.add_argument(
            "--data-dir",
            metavar="DIR",
            dest="data_dir",
            default=absent,
            help="folder of the warehouse and all other state",
        )
        shared.add_argument(
            "--config", metavar="FILE", type=Path, default=absent, help="TOML file with settings"
        )
        shared.add_argument(
            "--log-level",
            metavar="LEVEL",
            dest="log.level",
            default=absent,
            help="debug, info, warning or error",
        )
        shared.add_argument(
            "--log-format",
            metavar="FORMAT",
            dest="log.format",
            default=absent,
            help="console or json",
        )


def command_parser(command: Command) -> Parser:
    """Return the command's parser with the flags that every command has."""
    parser = Parser(prog=f"steward {command.name}", description=f"{command.summary}.")
    command.add_arguments(parser)
    return parser


def parse(command: Command, arguments: list[str]) -> argparse.Namespace | None:
    """Return the parsed arguments, or None where ``--help`` was asked for and printed.

    Raises:
        UsageError: the arguments do not fit.
    """
    absent = argparse.Namespace(config=None)
    try:
        return command_parser(command).parse_args(arguments, namespace=absent)
    except SystemExit:
        return None


def actions(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """Return what the parser takes: positionals, flags and the choice of an action."""
    return parser._actions  # noqa: SLF001  # argparse offers no public way to list them


def nested_parsers(parser: argparse.ArgumentParser) -> Mapping[str, argparse.ArgumentParser]:
    """Return the parsers of the actions (``steward db check``) by name; empty where it has none."""
    for action in actions(parser):
        if isinstance(action.choices, dict):
            return action.choices
    return {}


def nested_summaries(parser: argparse.ArgumentParser) -> Mapping[str, str]:
    """Return what ``--help`` says of each action."""
    listed: dict[str, str] = {}
    for action in actions(parser):
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001  # its only name
            listed |= {each.dest: each.help or "" for each in action._choices_actions}  # noqa: SLF001  # no public list
    return listed


def is_shown(action: argparse.Action) -> bool:
    """Tell whether ``--help`` shows it."""
    return action.help != argparse.SUPPRESS
