"""Saved texts of exporters as batches: each file is one scrape."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from collector.batches import Batch, derived_batch_id
from collector.normalize import NormalizeState, normalize
from collector.sources.exposition import ExpositionParser
from collector.sources.files import modified_at, read_contents
from steward.errors import InputError


def read_saved_texts(
    files: Sequence[Path], *, at: datetime | None, target: str | None, cluster: str
) -> list[Batch]:
    """Return the batches of all files, in their order.

    Args:
        files: one scrape each, plain or .gz.
        at: when they were scraped; None: when each file was last changed.
        target: the exporter all of them come from, oldest first; None: each file its own.
        cluster: stored with every row.

    Raises:
        InputError: a file cannot be read or is no exposition.
    """
    of_target = NormalizeState()
    batches: list[Batch] = []
    for path in files:
        state = NormalizeState() if target is None else of_target
        name = path.name if target is None else target
        batches.extend(_scrape(path, at=at, target=name, cluster=cluster, state=state))
    return batches


def _scrape(
    path: Path, *, at: datetime | None, target: str, cluster: str, state: NormalizeState
) -> list[Batch]:
    text = read_contents(path, "exporter text")
    if not text.strip():
        raise InputError(f"{path} is empty", hint="give a saved exporter text; nothing was stored")
    scraped_at = (at or modified_at(path)).astimezone(UTC)
    exposition = ExpositionParser().parse(text, target=str(path))
    scrape = normalize(
        exposition, target=target, cluster=cluster, scraped_at=scraped_at, state=state
    )
    identity = (sha256(text).hexdigest(), scraped_at.isoformat(), target, cluster)
    tables = [
        *scrape.batches(),
        ("scrape", scrape.scrape_table(duration_s=0.0, body_bytes=len(text))),
    ]
    return [
        Batch(table=table, rows=rows, batch_id=derived_batch_id("exposition", *identity, table))
        for table, rows in tables
    ]
