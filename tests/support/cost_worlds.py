"""Random fleets whose device-time is known leaf by leaf, and ledgers of them cut anywhere.

A device is a row of pieces without gaps. Each piece says which parts of a GPU (of 5040) are in
which leaf, so a ledger of it cut at any microsecond is exact.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Final

import polars as pl
from hypothesis import settings
from hypothesis import strategies as st

from analytics.cost.charge import PRICES
from analytics.inputs import SCHEMAS
from analytics.schemas.usage import KEYS, LEAVES, OVERLAYS
from steward.units import TICKS_PER_MICROSECOND
from tests.support.analytics_frames import HOUR, MINUTE, NOON

LENGTH_MINUTES: Final = 240
"""The window of a random fleet: four hours from noon."""
END: Final = NOON + LENGTH_MINUTES * MINUTE
HELD_LEAVES: Final = LEAVES[:5]
FREE_LEAVES: Final = LEAVES[5:]
TEAMS: Final = ("a", "b", None)
_MICRO: Final = timedelta(microseconds=1)
IN_CI: Final = settings(max_examples=200 if os.environ.get("CI") else 20)
"""For laws whose examples take a tenth of a second: all examples are for CI."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A stretch of one device in which nothing changes."""

    from_at: datetime
    until_at: datetime
    keys: Mapping[str, object]
    parts: Mapping[str, int]
    """Of 5040, by leaf column; they sum to 5040."""


def ledger_of(pieces: Iterable[Piece], cuts: Sequence[datetime]) -> pl.DataFrame:
    """Return the ledger of the pieces, cut at the instants: its spans lie between them."""
    ends = sorted(set(cuts))
    rows = []
    for piece in pieces:
        for start, end in itertools.pairwise(ends):
            length = min(end, piece.until_at) - max(start, piece.from_at)
            if length > timedelta():
                rows.append(_row(piece, start, end, length // _MICRO))
    schema = SCHEMAS["ledger"]
    columns = {name: [row.get(name) for row in rows] for name in schema}
    return pl.DataFrame(columns, schema=schema)


def _row(piece: Piece, start: datetime, end: datetime, micros: int) -> dict[str, object]:
    ticks = {name: micros * piece.parts.get(name, 0) for name in LEAVES}
    return {
        **dict.fromkeys(KEYS),
        **dict.fromkeys(OVERLAYS, 0.0),
        "started_at": start,
        "ended_at": end,
        **piece.keys,
        "wall_ticks": micros * TICKS_PER_MICROSECOND,
        **ticks,
    }


@st.composite
def _parts(draw: st.DrawFn, leaves: Sequence[str]) -> dict[str, int]:
    chosen = draw(st.lists(st.sampled_from(leaves), min_size=1, max_size=3, unique=True))
    ends = sorted(draw(st.integers(0, TICKS_PER_MICROSECOND)) for _ in chosen[1:])
    borders = [0, *ends, TICKS_PER_MICROSECOND]
    sizes = [last - first for first, last in itertools.pairwise(borders)]
    return dict(zip(chosen, sizes, strict=True))


@st.composite
def _device(draw: st.DrawFn, number: int) -> list[Piece]:
    place = {
        "cluster": draw(st.sampled_from(["c1", "c2"])),
        "node": f"n{number % 2}",
        "model": draw(st.sampled_from(["H100", "T4"])),
    }
    seconds = st.integers(0, LENGTH_MINUTES * 60)
    ends = sorted(draw(st.sets(seconds, min_size=2, max_size=5)))
    pieces = []
    for first, last in itertools.pairwise(ends):
        is_held = draw(st.booleans())
        holder = {"tenant_id": draw(st.sampled_from(TEAMS)), "queue": draw(st.sampled_from("pq"))}
        pieces.append(
            Piece(
                from_at=NOON + timedelta(seconds=first),
                until_at=NOON + timedelta(seconds=last),
                keys={**place, "is_held": is_held, **(holder if is_held else {})},
                parts=draw(_parts(HELD_LEAVES if is_held else FREE_LEAVES)),
            )
        )
    return pieces


@st.composite
def fleets(draw: st.DrawFn) -> list[Piece]:
    """Draw the pieces of one to three devices, each with a life of its own."""
    count = draw(st.integers(1, 3))
    return [piece for number in range(count) for piece in draw(_device(number))]


@st.composite
def books(draw: st.DrawFn, *, complete: bool = True) -> pl.DataFrame:
    """Draw prices that change at whole minutes; a complete book always has one for each model."""
    rows = []
    for model in ("H100", "T4"):
        if not complete and draw(st.booleans()):
            continue
        minutes = sorted(draw(st.sets(st.integers(1, LENGTH_MINUTES - 1), max_size=3)))
        starts = [NOON - HOUR, *(NOON + minute * MINUTE for minute in minutes)]
        for start, end in zip(starts, [*starts[1:], None], strict=True):
            rate = draw(st.integers(0, 9_999_999))
            rows.append((model, None, "on_demand", "USD", rate, start, end, len(rows), "v"))
    return pl.DataFrame(rows, schema=PRICES, orient="row")


def cuts_of(book: pl.DataFrame, *more: datetime) -> list[datetime]:
    """Return the ends of the window, the changes of price inside it, and any other instants."""
    changes = [*book["valid_from_at"], *book["valid_until_at"].drop_nulls()]
    return [NOON, END, *(at for at in (*changes, *more) if NOON < at < END)]


def plain_cost(pieces: Iterable[Piece], book: pl.DataFrame, leaf: str | None = None) -> Fraction:
    """Return the cost in currency units by the definition: piece by piece, price by price."""
    total = Fraction(0)
    prices = list(book.iter_rows(named=True))
    for piece in pieces:
        share = Fraction(piece.parts.get(leaf, 0), TICKS_PER_MICROSECOND) if leaf else Fraction(1)
        for price in prices:
            if price["gpu_model"] != piece.keys["model"]:
                continue
            start = max(piece.from_at, price["valid_from_at"])
            end = min(piece.until_at, price["valid_until_at"] or END)
            micros = max((end - start) // _MICRO, 0)
            hours = Fraction(micros, 3_600_000_000)
            total += hours * share * Fraction(price["rate_micros"], 1_000_000)
    return total
