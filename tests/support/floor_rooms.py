"""A room of commands for tests: a real distribution on ``sys.path``, found by entry point."""

from __future__ import annotations

from pathlib import Path

ROOM = """\
import errno
import os
import sys
from steward.command import Command
from steward.errors import SourceError


def add_arguments(parser):
    parser.add_argument("how", choices=["well", "clear", "unforeseen", "ctrl-c", "part", "own"])
    parser.add_argument("--colour", choices=["red", "green"])
    parser.add_argument("--port", dest="warehouse.port")


def run(args, context):
    match args.how:
        case "clear":
            raise SourceError("target a:9400 is down", hint="start it")
        case "unforeseen":
            raise ZeroDivisionError("division by zero")
        case "ctrl-c":
            raise KeyboardInterrupt
        case "part":
            import streamlit_that_is_not_there
        case "own":
            return 42
    print("well at", context.settings.warehouse.port, context.clock.now().tzinfo)
    return 0


TRY = Command(name="try", summary="Try something", add_arguments=add_arguments, run=run)
NOT_A_COMMAND = 7
"""
ENTRY_POINTS = """\
[steward.commands]
try = steward_test_room:TRY
odd = steward_test_room:NOT_A_COMMAND
absent = steward_test_room_without_module:X
"""


def write_room(folder: Path) -> Path:
    """Write a distribution that offers ``try`` and two broken commands; return its folder."""
    (folder / "steward_test_room.py").write_text(ROOM, encoding="utf-8")
    facts = folder / "steward_test_room-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: steward-test-room\nVersion: 1.0\n", encoding="utf-8"
    )
    (facts / "entry_points.txt").write_text(ENTRY_POINTS, encoding="utf-8")
    return folder
