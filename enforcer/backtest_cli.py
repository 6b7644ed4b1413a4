"""``steward policy backtest``: flags only; the work is imported late."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

BACKTEST_FORMATS: Final = ("table", "json")
EVERY_MINUTES: Final = 15
DAYS: Final = 14


def add_backtest(parts: argparse._SubParsersAction[argparse.ArgumentParser], *, which: str) -> None:
    """Add the part to ``steward policy``; ``which`` explains how a policy is named."""
    part = parts.add_parser("backtest", help="tell what a policy would have done, and its regret")
    part.add_argument("policy", metavar="WHICH", help=f"{which}; a file's result is not recorded")
    part.add_argument(
        "--from", dest="from_at", metavar="TIME", help=f"(default: {DAYS} days before the end)"
    )
    part.add_argument("--to", dest="until_at", metavar="TIME", help="(default: the newest reading)")
    part.add_argument("--against", metavar="WHICH", help="also the difference to this policy")
    part.add_argument("--cluster", metavar="NAME", help="(default: the only one)")
    part.add_argument(
        "--every",
        type=int,
        default=EVERY_MINUTES,
        metavar="MINUTES",
        help=f"between two looks ({EVERY_MINUTES})",
    )
    part.add_argument("--format", choices=BACKTEST_FORMATS, default="table", help="default: table")
    part.add_argument("--output", type=Path, metavar="FILE", help="default: standard output")
    part.add_argument("--author", help="who (default: who runs the command)")
