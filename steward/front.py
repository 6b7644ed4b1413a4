"""The text of ``steward --help``: commands by what a person wants, examples, exit codes."""

from __future__ import annotations

from collections.abc import Mapping

from steward.catalogue import load_command, offers
from steward.errors import MissingPartError
from steward.version import __version__

GROUPS: Mapping[str, tuple[str, ...]] = {
    "See": ("demo", "report", "dashboard"),
    "Ask": ("sql",),
    "Pay": ("price", "budget", "close", "focus", "capability"),
    "Govern": ("policy", "enforce", "quota", "request", "audit"),
    "Run": ("up", "collect", "agent", "warehouse", "ledger", "import"),
    "Administer": ("db", "settings", "completion"),
}
OTHERS = "More"
"""The heading of commands that other distributions bring."""

HEAD = f"""\
steward {__version__}: see what a shared GPU cluster really does, who pays for it and why jobs wait.

usage: steward COMMAND [options]        steward COMMAND --help
"""
FOOT = """\
Examples:
  steward demo                                    a simulated fleet, its health and the screens
  steward up --scrape http://node1:9400/metrics   collect, keep and show a real one
  steward report utilization --last 7d            who used what, in this terminal
  steward report cost --by team --period last-month --zone Asia/Shanghai
  steward policy backtest default                 what taking idle GPUs back would give

Failures print an error and a hint; exit codes are listed in docs/cli.md
(0 done, 2 usage, 3 settings, 4 input, 5 source, 6-9 warehouse, 10 query, 14-18 cluster,
130 interrupted).
"""


def help_text() -> str:
    """Return the whole text; a command whose part is missing is listed as unavailable."""
    return "\n".join([HEAD, *(_section(*group) for group in grouped().items()), FOOT])


def grouped() -> Mapping[str, tuple[str, ...]]:
    """Return the installed commands by heading; every one appears exactly once."""
    listed = {name for names in GROUPS.values() for name in names}
    groups = {head: tuple(n for n in names if n in offers()) for head, names in GROUPS.items()}
    groups[OTHERS] = tuple(name for name in offers() if name not in listed)
    return {heading: names for heading, names in groups.items() if names}


def _section(heading: str, names: tuple[str, ...]) -> str:
    return "".join([f"{heading}:\n", *(f"  {name:<12}{summary(name)}\n" for name in names)])


def summary(name: str) -> str:
    """Return the command's summary, or why it cannot be called."""
    try:
        return load_command(name).summary
    except MissingPartError as error:
        return f"(unavailable: {error.message})"
