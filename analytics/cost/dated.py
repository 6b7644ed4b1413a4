"""Rows that hold for a span of time: of those for one key and instant the last recorded counts."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Final

import polars as pl

from steward.period import Period

FAR: Final = datetime.max.replace(tzinfo=UTC)
"""Stands for an end that was never set."""
FROM, UNTIL = "valid_from_at", "valid_until_at"

Span = tuple[int, datetime, datetime]
"""Identity, start, end; the end does not belong to it."""


def latest(rows: pl.DataFrame, *, key: Sequence[str], identity: str) -> pl.DataFrame:
    """Return the rows cut to the time in which they count.

    Args:
        rows: one row per recorded fact, any order
            key columns any | null, ``identity`` i64, valid_from_at datetime,
            valid_until_at datetime | null (no end), and whatever else
        key: columns that tell facts apart which hold side by side; null is a value of its own.
        identity: a column that grows with each recording.

    Returns:
        the same columns; spans of one key are disjoint; a row that others interrupt comes several
        times, one that others cover wholly not at all; by key (nulls last) and valid_from_at
    """
    order = [*key, FROM]
    if rows.is_empty():
        return rows
    groups = rows.partition_by(key, maintain_order=True) if key else [rows]
    pieces = [
        piece
        for group in groups
        for piece in _pieces(list(_spans(group.select(identity, FROM, UNTIL))))
    ]
    cut = pl.DataFrame(
        [(one, left, None if right == FAR else right) for one, left, right in pieces],
        schema={identity: rows.schema[identity], FROM: rows.schema[FROM], UNTIL: rows.schema[FROM]},
        orient="row",
    )
    joined = rows.drop(FROM, UNTIL).join(cut, on=identity)
    return joined.select(rows.columns).sort(order, nulls_last=True)


def clipped(rows: pl.DataFrame, period: Period) -> pl.DataFrame:
    """Return the rows cut to the period, without those outside it; their ends are never null."""
    ends = pl.col(UNTIL).fill_null(pl.lit(period.until_at))
    return rows.with_columns(
        pl.max_horizontal(pl.col(FROM), pl.lit(period.from_at)).alias(FROM),
        pl.min_horizontal(ends, pl.lit(period.until_at)).alias(UNTIL),
    ).filter(pl.col(FROM) < pl.col(UNTIL))


def instants(rows: pl.DataFrame, period: Period) -> tuple[datetime, ...]:
    """Return the instants inside the period at which a row starts or ends, ascending."""
    ends = pl.concat([rows[FROM], rows[UNTIL].drop_nulls()]).unique().sort().to_list()
    return tuple(at for at in ends if period.from_at < at < period.until_at)


def _spans(rows: pl.DataFrame) -> Iterator[Span]:
    for one, from_at, until_at in rows.iter_rows():
        yield one, from_at, FAR if until_at is None else until_at


def _pieces(spans: list[Span]) -> list[Span]:
    """Return disjoint spans, ascending, each with the highest identity that holds in it."""
    waiting = sorted(spans, key=lambda span: span[1], reverse=True)
    bounds = sorted({end for _, left, right in spans for end in (left, right)})
    holding: list[tuple[int, datetime]] = []
    found: list[Span] = []
    for left, right in pairwise(bounds):
        while waiting and waiting[-1][1] <= left:
            one, _, until_at = waiting.pop()
            heapq.heappush(holding, (-one, until_at))
        while holding and holding[0][1] <= left:
            heapq.heappop(holding)
        if holding:
            _extend(found, (-holding[0][0], left, right))
    return found


def _extend(found: list[Span], piece: Span) -> None:
    """Add the piece; one that goes on from the last of the same identity makes it longer."""
    if found and found[-1][0] == piece[0] and found[-1][2] == piece[1]:
        found[-1] = (piece[0], found[-1][1], piece[2])
    else:
        found.append(piece)
