"""Typed results: what a measure tells a person, before any screen or file format.

For a notebook: ``REPORTS`` by name, ``report`` from frames in hand, ``Question`` and ``Report``.
The catalogue is loaded at the first use, so that a single report's module may be imported alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import polars as pl

from analytics.reports.model import Question, Report
from steward.errors import UsageError

if TYPE_CHECKING:
    from analytics.reports.catalogue import REPORTS

__all__ = ["REPORTS", "Question", "Report", "report"]


def report(name: str, frames: Mapping[str, pl.DataFrame], question: Question) -> Report:
    """Return one report over frames in hand.

    Args:
        name: one of ``REPORTS``.
        frames: the report's inputs by name, in the types that ``analytics.inputs`` declares.
        question: what is asked.

    Raises:
        UsageError: there is no such report, or a frame that it needs is not given.
        InputError: a frame lacks a declared column.
    """
    from analytics.reports.catalogue import REPORTS as known  # noqa: N811, PLC0415  # imports us

    if name not in known:
        raise UsageError(f"there is no report {name!r}", hint=f"the reports are {', '.join(known)}")
    missing = sorted(set(known[name].inputs) - set(frames))
    if missing:
        raise UsageError(
            f"report {name!r} needs the frames {', '.join(missing)}",
            hint="give one for each of its inputs; `analytics.inputs.empty` makes one without rows",
        )
    return known[name].build(frames, question)


def __getattr__(name: str) -> object:
    """Return the catalogue, which imports every report, only where it is asked for."""
    if name != "REPORTS":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from analytics.reports.catalogue import REPORTS as known  # noqa: N811, PLC0415  # imports us

    return known
