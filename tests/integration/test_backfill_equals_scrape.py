"""A real Prometheus server and our own loop scrape the same exporters: the rows are the same.

Both scrape once in each slot of time, in phases of their own, so the times of scraping differ and
everything else must not: rows are paired by the slot that the exporters print as free memory.
``STEWARD_SOAK_S`` sets how long they run.
"""

from __future__ import annotations

import os
import signal
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from collector.backfill.prometheus_run import Asked, import_prometheus
from sql.access import open_warehouse
from steward.clock import FixedClock
from steward.command import Context
from steward.settings import Settings
from steward.units import MIB_BYTES
from tests.support.backfill_exporters import (
    DATED,
    MIG,
    PLAIN,
    SLOT_COUNT,
    Slots,
    slot_exporters,
)
from tests.support.collector_process import running_steward
from tests.support.prometheus_server import prometheus_server

pytestmark = pytest.mark.slow

INTERVAL_S = 1.0
DEVICE_COUNT = 8
"""Four plain GPUs, a board with two instances, one dated GPU."""
SOAK_S = float(os.environ.get("STEWARD_SOAK_S", "40"))
SAMPLES = "select * exclude (sampled_at) from device_sample"
DATED_SAMPLES = "select energy_j, sampled_at from device_sample where device_uuid = 'GPU-dated-0'"
DEVICES = """
    select floor(epoch(observed_at))::bigint as second, device_uuid, instance_id, is_present, node,
        model, mig_profile, sm_share_ratio, memory_share_ratio, driver_version, labels_json,
        device_index, vendor, source
    from device
"""
EVENTS = """
    select floor(epoch(occurred_at))::bigint as second, device_uuid, instance_id, kind, code,
        detail, node
    from device_event
    where detail is distinct from 'shown at first sight'
"""
EDGE_SLOTS = 8
"""One scraper runs longer: what it sees at the edges the other may never see."""
GOOD_SCRAPES = "select target, sample_count from scrape where is_ok"
FAILING = "select target from scrape where not is_ok"
"""On a busy machine either scraper may time out once; the exporter that fails does so for both."""
Row = tuple[object, ...]


def rows(folder: Path, statement: str) -> set[Any]:
    """Return the distinct rows."""
    with open_warehouse(Settings(data_dir=folder)) as warehouse:
        table = pa.table(warehouse.sql(statement))
    return {tuple(row.values()) for row in table.to_pylist()}


def by_moment(folder: Path) -> dict[Row, set[Row]]:
    """Return the distinct samples of each slot, device and instance: there should be one."""
    found: dict[Row, set[Row]] = {}
    with open_warehouse(Settings(data_dir=folder)) as warehouse:
        table = pa.table(warehouse.sql(SAMPLES))
    for row in table.to_pylist():
        free_bytes, energy_j = row["memory_free_bytes"], row["energy_j"]
        slot = round(energy_j) if free_bytes is None else free_bytes // MIB_BYTES
        key = (slot, row["device_uuid"], row["instance_id"])
        found.setdefault(key, set()).add(tuple(row.values()))
    return found


def backfill(folder: Path, url: str, *, since: datetime) -> None:
    """Import what the server has, when the hour is over."""
    over_at = datetime.now(UTC) + timedelta(hours=1)
    asked = Asked(
        url=url, from_at=since, until_at=over_at, match="", window_minutes=60, headers_file=None
    )
    context = Context(settings=Settings(data_dir=folder), clock=FixedClock(over_at))
    assert import_prometheus(context, asked) == 0


@pytest.mark.timeout(SOAK_S + 180)
def test_the_backfilled_rows_equal_the_directly_scraped_ones(tmp_path: Path) -> None:
    direct, past = tmp_path / "direct", tmp_path / "past"
    direct.mkdir()
    since = datetime.now(UTC)
    with slot_exporters(Slots(INTERVAL_S)) as exporters:
        targets = [exporters.url(path) for path in (PLAIN, MIG, DATED)]
        flags = ["--scrape", *targets, "--interval-s", "1", "--timeout-s", "1"]
        with (
            prometheus_server(targets, INTERVAL_S) as server,
            running_steward(
                "collect", *flags, "--data-dir", str(direct), cwd=direct, name="c"
            ) as collector,
        ):
            enough = round(SOAK_S / INTERVAL_S)
            server.wait_for(
                f"count_over_time(up[{enough * 2}s]) >= {enough}", patience_s=SOAK_S + 60
            )
            assert collector.stop(signal.SIGTERM) == 0, collector.log
            backfill(past, server.url, since=since)
    seen_directly, seen_by_server = by_moment(direct), by_moment(past)
    both = seen_directly.keys() & seen_by_server.keys()
    assert len(both) >= 0.8 * len(seen_directly)
    assert len(both) >= 0.5 * DEVICE_COUNT * enough
    for moment in both:
        assert seen_directly[moment] == seen_by_server[moment]
    slots = {int(str(slot)) for slot, _, _ in both}
    inner = range(min(slots) + EDGE_SLOTS, max(slots) - EDGE_SLOTS)
    for statement in (EVENTS, DEVICES):
        told, kept = rows(direct, statement), rows(past, statement)
        assert within(told, inner) <= without_seconds(kept)
        assert within(kept, inner) <= without_seconds(told)
    assert rows(direct, GOOD_SCRAPES) == rows(past, GOOD_SCRAPES)
    failing = (targets[0],)
    assert failing in rows(direct, FAILING) & rows(past, FAILING)
    dated, kept_dated = dict(rows(direct, DATED_SAMPLES)), dict(rows(past, DATED_SAMPLES))
    common = dated.keys() & kept_dated.keys()
    assert len(common) >= 0.5 * enough
    assert {slot: dated[slot] for slot in common} == {slot: kept_dated[slot] for slot in common}


def within(timed: set[Row], slots: range) -> set[Row]:
    """Return rows of these slots without their second, which differs between scrapers."""
    return without_seconds({row for row in timed if int(str(row[0])) % SLOT_COUNT in slots})


def without_seconds(timed: set[Row]) -> set[Row]:
    """Return rows without their second."""
    return {row[1:] for row in timed}
