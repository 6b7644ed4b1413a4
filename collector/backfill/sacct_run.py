"""The work of ``steward import sacct``, told to a person."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import tzinfo
from pathlib import Path

from collector.backfill.sacct.jobs import Jobs, jobs_of
from collector.backfill.sacct.lines import SacctText, read_sacct
from collector.backfill.sacct.news import TABLES, new_batches
from collector.backfill.sacct.values import zone_named
from collector.batches import Batch
from collector.import_progress import progress, summary
from collector.imports import ImportTally, store
from sql.access import open_warehouse
from steward.command import Context
from steward.errors import InputError
from steward.output import write_output
from steward.ports import Warehouse


def import_sacct(context: Context, *, file: Path, time_zone: str | None) -> int:
    """Store the jobs of an accounting text.

    Raises:
        UsageError: there is no such time zone.
        InputError: the text is not what sacct prints, or a line of it is wrong.
        WarehouseError: the warehouse cannot serve.
    """
    zone = zone_named(time_zone)
    text = read_sacct(file)
    if time_zone is None:
        sys.stderr.write("times are read as UTC; name the zone of the machine with --time-zone\n")
    jobs = _checked(text, zone)
    cluster = context.settings.cluster
    title = f"{text.source}: {len(jobs.jobs):,} jobs"
    with open_warehouse(context.settings) as warehouse:
        tally = _store(jobs, warehouse=warehouse, cluster=cluster, title=title)
    write_output(None, summary(title, tally) + _left_out(jobs))
    return 0


def _checked(text: SacctText, zone: tzinfo) -> Jobs:
    jobs = jobs_of(text, zone=zone)
    if not jobs.jobs:
        raise InputError(
            f"{text.source} has a header and no jobs",
            hint="widen the period with sacct --starttime and --endtime",
        )
    if len(jobs.clusters) > 1:
        names = ", ".join(sorted(jobs.clusters)[:8])
        raise InputError(
            f"{text.source} holds jobs of {len(jobs.clusters)} clusters ({names}), whose numbers "
            "may be the same",
            hint="write one text for each with sacct --clusters=NAME; nothing was stored",
        )
    return jobs


def _store(jobs: Jobs, *, warehouse: Warehouse, cluster: str, title: str) -> ImportTally:
    """Store what is not stored yet; rows that are count as repeated."""
    before = ImportTally()
    with progress(title, step_count=len(TABLES), unit="tables") as advance:

        def batches() -> Iterator[Batch]:
            for about in TABLES:
                told = new_batches(jobs.jobs.values(), about, reader=warehouse, cluster=cluster)
                for news in told:
                    if isinstance(news, Batch):
                        yield news
                    elif news:
                        before.repeated_rows[about.table] += news
                advance()

        tally = store(warehouse, batches(), on_batch=lambda _: None)
    tally.repeated_rows += before.repeated_rows
    return tally


def _left_out(jobs: Jobs) -> str:
    lines = ""
    if jobs.step_count:
        lines += f"  {jobs.step_count:,} steps belong to their jobs and were left out\n"
    if jobs.cut_array_count:
        lines += (
            f"  {jobs.cut_array_count:,} waiting arrays have a list of tasks that was cut short "
            "and count as one job each: set SLURM_BITSTR_LEN=0 for sacct\n"
        )
    return lines
