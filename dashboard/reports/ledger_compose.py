"""The inputs ``ledger``, ``rest`` and ``ledger_caveat``, composed of what is built and of readings.

Whole built days come from the ledger of days, whole built hours from that of hours; what is ragged
or not built yet is made of readings on the spot, chunk by chunk.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from types import MappingProxyType
from typing import Final

import polars as pl

from analytics.inputs import conform, empty
from analytics.schemas.columns import INSTANT
from analytics.schemas.usage import ASKED
from analytics.usage import totals
from dashboard.reports.arrow import frame
from dashboard.reports.hours import DAY, HOUR, ceil_hour, floor_day, hours_in, hours_of, runs
from dashboard.reports.ledger_days import day_build_id, newest_builds
from dashboard.reports.ledger_readings import Keep, chunks, ends, reading_counts
from dashboard.reports.ledger_sums import by_span, keys_of, narrowed
from steward.period import Period
from steward.ports import Parameter, Reader

LEDGER: Final = "ledger"
REST: Final = "rest"
CAVEAT: Final = "ledger_caveat"
Views = Mapping[str, Sequence[str]]
"""Keys and overlays by the name of a view of the ledger, as in ``ReportDefinition.asks``."""
EVERYTHING: Final[Views] = MappingProxyType({LEDGER: ASKED})
Piece = tuple[Period, Period]
"""Whole hours or days, and the span that they belong to."""
MONTH: Final = timedelta(days=31)
"""Hours asked for at once: six million rows of a fleet of 8,000 GPUs, summed in some seconds."""
YEAR: Final = timedelta(days=366)
"""Days asked for at once where they are summed: so few rows that one answer is best."""
QUARTER: Final = timedelta(days=93)
"""Days asked for at once where they stay apart: 750,000 rows of a fleet of 8,000 GPUs, a third of
what one answer may have in bytes."""
REST_ORDER: Final = (
    "cluster",
    "device_uuid",
    "instance_id",
    "started_at",
    "workload_uid",
    "pod",
    "tenant_id",
    "gpu_share_ratio",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One span of the ledger, and where its parts come from: disjoint periods, ascending."""

    period: Period
    days: tuple[Period, ...]
    hours: tuple[Period, ...]
    readings: tuple[Period, ...]


def spans(period: Period, cuts: Iterable[datetime]) -> tuple[Period, ...]:
    """Return the period divided at the instants that lie inside it."""
    inside = sorted({at.astimezone(UTC) for at in cuts if period.from_at < at < period.until_at})
    ends = (period.from_at, *inside, period.until_at)
    return tuple(Period(start, end) for start, end in pairwise(ends))


def compose(
    reader: Reader,
    names: Collection[str],
    *,
    divided: Sequence[Period],
    keep: Keep,
    cluster: str | None = None,
    views: Views = EVERYTHING,
) -> dict[str, pl.DataFrame]:
    """Return those of the three inputs that are asked for, in their declared types.

    Args:
        reader: the warehouse.
        names: any of ``ledger``, ``rest``, ``ledger_caveat``.
        divided: the spans of the ledger, disjoint and ascending.
        keep: how the ledger is made of readings, of the cluster alone where one is given.
        cluster: keep this one only; None keeps all. Caveats of built hours are of all clusters.
        views: which keys and overlays the ledger is wanted with, once or in several views.

    Raises:
        WarehouseError: the warehouse cannot serve.
    """
    planned = plan(reader, divided)
    told = views if LEDGER in names else {}
    work = _Work(reader=reader, names=names, cluster=cluster, views=told, keep=keep)
    nothing = {name: empty(name) for name in names if name != LEDGER}
    nothing |= {view: without(empty(LEDGER), columns) for view, columns in told.items()}
    found: dict[str, list[pl.DataFrame]] = {name: [] for name in nothing}
    for name, rows in (*work.stored(planned), *work.kept(planned)):
        found[name].append(conform(LEDGER if name in told else name, rows))
    return {name: _joined(name, parts or [nothing[name]]) for name, parts in found.items()}


def plan(reader: Reader, divided: Sequence[Period]) -> tuple[Span, ...]:
    """Return where each part of each span comes from."""
    whole = Period(floor_day(divided[0].from_at), ceil_hour(divided[-1].until_at))
    hours = newest_builds(reader, whole, "hour")
    days = {
        at
        for at, build in newest_builds(reader, whole, "day").items()
        if build.build_id == day_build_id(at, hours)
    }
    return tuple(_sourced(span, days, hours) for span in divided)


def _sourced(span: Period, days: Collection[datetime], hours: Collection[datetime]) -> Span:
    whole_days = [at for at in days if span.from_at <= at and at + DAY <= span.until_at]
    of_days = {hour for day in whole_days for hour in hours_of(day)}
    whole_hours = [
        at
        for at in hours
        if span.from_at <= at and at + HOUR <= span.until_at and at not in of_days
    ]
    day_runs, hour_runs = runs(whole_days, DAY), runs(whole_hours)
    return Span(
        period=span,
        days=tuple(day_runs),
        hours=tuple(hour_runs),
        readings=tuple(_gaps(span, sorted([*day_runs, *hour_runs]))),
    )


def _gaps(span: Period, stored: Sequence[Period]) -> Iterable[Period]:
    """Yield the parts of the span that nothing stored covers."""
    starts = [span.from_at, *(each.until_at for each in stored)]
    ends = [*(each.from_at for each in stored), span.until_at]
    return (Period(start, end) for start, end in zip(starts, ends, strict=True) if start < end)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    """What is read, and of whom."""

    reader: Reader
    names: Collection[str]
    cluster: str | None
    views: Views
    keep: Keep

    def stored(self, planned: Sequence[Span]) -> Iterator[tuple[str, pl.DataFrame]]:
        """Yield what is built, by input."""
        days = [(piece, span.period) for span in planned for piece in span.days]
        hours = [(piece, span.period) for span in planned for piece in span.hours]
        if LEDGER in self.names:
            is_divided = len({span for _piece, span in days}) > 1
            yield from self.sums("ledger_days", days, most=QUARTER if is_divided else YEAR)
            yield from self.sums("ledger_hours", hours, most=MONTH)
        for piece in runs([at for part, _span in (*days, *hours) for at in hours_in(part)]):
            if REST in self.names:
                narrowed = {**ends(piece), "cluster": self.cluster}
                yield REST, frame(self.reader.query("rest_hours", narrowed))
            if CAVEAT in self.names:
                yield CAVEAT, frame(self.reader.query("ledger_caveats", ends(piece)))

    def sums(
        self, query: str, pieces: Sequence[Piece], *, most: timedelta
    ) -> Iterator[tuple[str, pl.DataFrame]]:
        """Yield what one query tells of the pieces, asked about so much time at once."""
        for some in portions(pieces, most):
            for view, columns in self.views.items():
                sums = ledger_sums(self.reader, query, some, cluster=self.cluster, columns=columns)
                yield view, narrowed(sums)

    def kept(self, planned: Sequence[Span]) -> Iterator[tuple[str, pl.DataFrame]]:
        """Yield what is made of readings, chunk by chunk, summed at once."""
        pieces = [piece for span in planned for piece in span.readings]
        if not pieces:
            return
        counts = reading_counts(self.reader, Period(pieces[0].from_at, pieces[-1].until_at))
        for span in planned:
            for chunk in chunks(span.readings, counts):
                made = self.keep(chunk).books
                for view, columns in self.views.items():
                    yield view, _summed(without(made.rows, columns), span.period)
                if REST in self.names:
                    yield REST, made.rest
                if CAVEAT in self.names:
                    yield CAVEAT, made.caveats


def portions(pieces: Iterable[Piece], most: timedelta) -> Iterator[list[Piece]]:
    """Yield the pieces in portions of so much time each, longer ones divided at UTC midnights."""
    portion: list[Piece] = []
    length = timedelta()
    for piece, span in pieces:
        start = piece.from_at
        while start < piece.until_at:
            end = min(piece.until_at, floor_day(start) + most)
            if portion and length + (end - start) > most:
                yield portion
                portion, length = [], timedelta()
            portion.append((Period(start, end), span))
            length += end - start
            start = end
    if portion:
        yield portion


def ledger_sums(
    reader: Reader,
    query: str,
    pieces: Sequence[Piece],
    *,
    cluster: str | None = None,
    columns: Sequence[str] = ASKED,
) -> pl.DataFrame:
    """Return built hours or days summed by span and keys; ticks as whole decimals.

    Args:
        reader: the warehouse.
        query: ``ledger_hours`` or ``ledger_days``.
        pieces: which hours or days, each piece with the span that it belongs to.
        cluster: keep this one only; None keeps all.
        columns: the keys to sum by, and the overlays to sum; the frame has no others.
    """
    told = ",".join(
        "/".join(
            at.isoformat() for at in (piece.from_at, piece.until_at, span.from_at, span.until_at)
        )
        for piece, span in pieces
    )
    parameters: dict[str, Parameter] = {
        "from_at": min(piece.from_at for piece, _span in pieces),
        "until_at": max(piece.until_at for piece, _span in pieces),
        "cluster": cluster,
        "pieces": told,
        "columns": ",".join(columns),
    }
    return without(frame(reader.query(query, parameters)), columns)


def without(rows: pl.DataFrame, columns: Collection[str]) -> pl.DataFrame:
    """Return rows without the keys and overlays of the ledger that are not among the columns."""
    return rows.drop(set(ASKED) - set(columns), strict=False)


def _summed(rows: pl.DataFrame, span: Period) -> pl.DataFrame:
    """Return a chunk's rows as sums of the span that it belongs to."""
    return by_span(
        totals(rows, *keys_of(rows)).with_columns(
            started_at=pl.lit(span.from_at, dtype=INSTANT),
            ended_at=pl.lit(span.until_at, dtype=INSTANT),
        )
    )


def _joined(name: str, parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Return the parts as one frame in a defined order."""
    if name not in {REST, CAVEAT}:
        told = [part for part in parts if part.height] or parts[:1]
        return told[0] if len(told) == 1 else by_span(pl.concat(told))
    order = ("starts_at",) if name == CAVEAT else REST_ORDER
    return pl.concat(parts).sort(order, nulls_last=True, maintain_order=True)
