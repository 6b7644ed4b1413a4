"""Runs the commands of money on a data folder, as the front door would."""

from __future__ import annotations

from pathlib import Path

from dashboard.prices.cli import BUDGET, CLOSE, PRICE
from steward.clock import SystemClock
from steward.command import Context
from steward.errors import StewardError
from steward.main import tell
from steward.parser import parse
from steward.settings import Settings

COMMANDS = {one.name: one for one in (PRICE, BUDGET, CLOSE)}


def steward(folder: Path, *arguments: str) -> int:
    """Run ``steward ARGUMENTS`` on the folder and return the exit code."""
    command = COMMANDS[arguments[0]]
    try:
        args = parse(command, list(arguments[1:]))
        if args is None:
            return 0
        return command.run(args, Context(settings=Settings(data_dir=folder), clock=SystemClock()))
    except StewardError as error:
        return tell(error)
