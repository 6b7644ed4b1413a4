"""The front door ``steward``: finds the command, reads the settings, tells failures to a person.

Nothing heavy is imported here, and only the module of the command that is called.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence

from steward import logs
from steward.catalogue import load_command, missing_part
from steward.clock import SystemClock
from steward.command import Command, Context
from steward.errors import INTERRUPTED_EXIT_CODE, StewardError, UsageError
from steward.front import help_text
from steward.output import abandon_stdout, visible
from steward.parser import parse
from steward.settings import Settings, load, stated_flags
from steward.version import __version__

BROKEN_PIPE_EXIT_CODE = 141
"""What a shell reports for a process that SIGPIPE ended: 128 + 13."""
logger = logging.getLogger(__name__)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; nothing escapes as a traceback."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        code = _dispatch(arguments)
        sys.stdout.flush()
    except StewardError as error:
        return tell(error)
    except KeyboardInterrupt:
        return INTERRUPTED_EXIT_CODE
    except BrokenPipeError:
        abandon_stdout()
        return BROKEN_PIPE_EXIT_CODE
    except Exception as error:  # noqa: BLE001  # the last door: a person gets a sentence, not a traceback
        return _tell_unexpected(error)
    return code


def _dispatch(arguments: list[str]) -> int:
    match arguments:
        case [] | ["-h" | "--help" | "help"]:
            sys.stdout.write(help_text())
            return 0
        case ["-V" | "--version", *_]:
            sys.stdout.write(f"steward {__version__}\n")
            return 0
        case ["help", name, *_]:
            return _run(load_command(name), ["--help"])
        case [option, *_] if option.startswith("-"):
            raise UsageError(
                f"{option} stands before the command",
                hint="name the command first: `steward COMMAND [options]`; see `steward --help`",
            )
        case _:
            return _run(load_command(arguments[0]), arguments[1:])


def _run(command: Command, arguments: list[str]) -> int:
    args = parse(command, arguments)
    if args is None:
        return 0
    if command.needs_settings:
        settings = load(config=args.config, flags=stated_flags(vars(args)))
    else:
        settings = Settings()
    logs.configure(settings.log.level, settings.log.format)
    try:
        return command.run(args, Context(settings=settings, clock=SystemClock()))
    except ModuleNotFoundError as error:
        raise missing_part(error) from error


def tell(error: StewardError) -> int:
    """Print message and next step to standard error; return the exit code."""
    logger.debug("failed", exc_info=error)
    lines = f"error: {error.message}\nhint: {error.hint}".split("\n")
    sys.stderr.write("".join(f"{visible(line)}\n" for line in lines))
    return error.exit_code


def _tell_unexpected(error: Exception) -> int:
    logger.debug("unexpected failure", exc_info=error)
    sys.stderr.write(
        f"error: unexpected {type(error).__name__}: {error}\n"
        "hint: this is a fault in steward; repeat with --log-level debug to see where\n"
    )
    return 1
