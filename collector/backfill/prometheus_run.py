"""The work of ``steward import prometheus``, told to a person."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from collector.backfill.addresses import headers_from, server_url
from collector.backfill.api import PrometheusApi
from collector.backfill.checkpoint import Checkpoint, checkpoint_path, read_checkpoint
from collector.backfill.flags import LONGEST_WINDOW_MINUTES
from collector.backfill.hour_batches import first_batch_id
from collector.backfill.prometheus import (
    PrometheusPast,
    Question,
    hours_missing,
    refuse_without_devices,
)
from collector.backfill.selectors import matchers_from
from collector.backfill.windows import SpanLength, hour_count, whole_hours
from collector.import_progress import progress, summary
from collector.imports import ImportTally, store, stored_rows
from collector.lifecycle.ownership_rules import OwnershipRules, ownership_rules
from sql.access import open_warehouse
from steward.command import Context
from steward.errors import UsageError
from steward.ids import ClusterName
from steward.output import write_output
from steward.period import Period
from steward.ports import Reader, Warehouse


@dataclass(frozen=True, slots=True, kw_only=True)
class Errand:
    """What is to be imported, and what it needs beside the server and the warehouse."""

    question: Question
    rules: OwnershipRules
    longest: timedelta
    """Of what is asked for at once."""
    checkpoint_path: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the command line asks for."""

    url: str
    from_at: datetime
    until_at: datetime | None
    match: str
    window_minutes: int
    headers_file: Path | None


def import_prometheus(context: Context, asked: Asked) -> int:
    """Store the past of a Prometheus server.

    Raises:
        UsageError: the command line asks for what cannot be.
        InputError: the file of headers cannot be read, or the data folder not be written.
        SourceError: the server fails, refuses, is another kind of server, or holds no GPU metrics.
        WarehouseError: the warehouse cannot serve.
    """
    headers = {} if asked.headers_file is None else headers_from(asked.headers_file)
    errand = errand_of(context, asked)
    question = errand.question
    with PrometheusApi(url=question.url, headers=headers) as api:
        api.check()
        refuse_without_devices(api.names(question.period), question=question)
        with open_warehouse(context.settings) as warehouse:
            import_into(warehouse, errand, api=api)
    return 0


def import_into(warehouse: Warehouse, errand: Errand, *, api: PrometheusApi) -> None:
    """Store what is not stored yet, and tell a person of it.

    Raises:
        SourceError: the server fails for good.
        WarehouseError: the warehouse cannot serve.
    """
    question = errand.question
    checkpoint = _believed(
        read_checkpoint(errand.checkpoint_path), question=question, reader=warehouse
    )
    title = f"{question.url} {question.period}"
    left = _left(checkpoint, question)
    if left is None:
        write_output(None, f"already imported: {title} (all hours were stored before)\n")
        return
    past = PrometheusPast(
        question=question,
        api=api,
        checkpoint_path=errand.checkpoint_path,
        span=SpanLength(longest=errand.longest),
        rules=errand.rules,
        known=checkpoint or _nothing(question),
    )
    if checkpoint is None:
        _warn_of_other_scrapes(warehouse, question)
    going_on = "" if left == question.period else f", going on at {_iso(left.from_at)}"
    with progress(title + going_on, step_count=hour_count(left), unit="hours") as advance:
        batches = past.batches(left, on_hour=advance)
        tally = store(warehouse, batches, on_batch=lambda _: None)
    write_output(None, _told(title, tally, past))


def errand_of(context: Context, asked: Asked) -> Errand:
    """Return what a command line asks for, checked.

    Raises:
        UsageError: it asks for what cannot be.
        SettingsError: the rules of ownership are wrong.
    """
    now = context.clock.now()
    if not 1 <= asked.window_minutes <= LONGEST_WINDOW_MINUTES:
        raise UsageError(
            f"--window {asked.window_minutes} is outside 1..{LONGEST_WINDOW_MINUTES}",
            hint="give minutes, or leave it out: it is halved by itself where it is too much",
        )
    question = Question(
        url=server_url(asked.url),
        cluster=ClusterName(context.settings.cluster),
        matchers=matchers_from(asked.match),
        period=whole_hours(asked.from_at, asked.until_at or now, now=now),
    )
    return Errand(
        question=question,
        rules=ownership_rules(context.settings.ownership),
        longest=timedelta(minutes=asked.window_minutes),
        checkpoint_path=checkpoint_path(
            context.settings.data_dir,
            identity=question.identity(),
            from_at=question.period.from_at,
        ),
    )


def _believed(
    checkpoint: Checkpoint | None, *, question: Question, reader: Reader
) -> Checkpoint | None:
    """Return the checkpoint where the warehouse still holds what it says was stored."""
    if checkpoint is None or checkpoint.identity != question.identity():
        return None
    if checkpoint.last_batch_id is None:
        return None
    return checkpoint if _is_stored(reader, checkpoint.last_batch_id) else None


def _is_stored(reader: Reader, batch_id: str) -> bool:
    return bool(stored_rows(reader, "stored_batch", batch_id=batch_id))


def _warn_of_other_scrapes(reader: Reader, question: Question) -> None:
    """Say so where somebody else already told of the period: both would be kept."""
    period = question.period
    (found,) = stored_rows(
        reader,
        "first_scrape",
        cluster=question.cluster,
        from_at=period.from_at,
        until_at=period.until_at,
    )
    first_at = found["first_at"]
    if first_at is None:
        return
    hour = Period(first_at.replace(minute=0, second=0, microsecond=0), first_at)
    own = first_batch_id(question.identity(), hour, "scrape")
    if not _is_stored(reader, own):
        sys.stderr.write(
            f"the warehouse already holds scrapes of cluster {question.cluster!r} in this period, "
            f"from {_iso(first_at)} on: rows of both are kept\n"
        )


def _nothing(question: Question) -> Checkpoint:
    """Return what is known before the first hour."""
    start = question.period.from_at
    return Checkpoint(identity=question.identity(), from_at=start, next_at=start)


def _left(checkpoint: Checkpoint | None, question: Question) -> Period | None:
    """Return what is still to be read; None where all of it is stored."""
    period = question.period
    if checkpoint is None or checkpoint.next_at <= period.from_at:
        return period
    if checkpoint.next_at >= period.until_at:
        return None
    return Period(checkpoint.next_at, period.until_at)


def _told(title: str, tally: ImportTally, past: PrometheusPast) -> str:
    """Return the lines that end the import."""
    lines = summary(title, tally)
    first_at = past.reader.first_samples_at
    missing = hours_missing(first_at, past.question.period)
    if missing and first_at is not None:
        lines += (
            f"  the server holds no GPU metrics of the first {missing:,} hours asked for: they "
            f"begin at {_iso(first_at)}, so its retention is shorter or scraping began then\n"
        )
    if past.api.retry_count:
        lines += f"  {past.api.retry_count:,} questions were asked again\n"
    return lines


def _iso(at: datetime) -> str:
    return at.isoformat(timespec="seconds").replace("+00:00", "Z")
