"""Many targets in one loop: each one's failure is its own row and one line in the log."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from collector.loop import LoopPlan, ScrapeLoop
from collector.reading import (
    FORGET_AFTER_FAILURES,
    LONG_BODY_BYTES,
    Reading,
    Target,
    reading_of,
)
from collector.scrape import FetchLimits, Page, Reason, Refusal
from steward.clock import FixedClock
from steward.errors import WarehouseError
from steward.ids import ClusterName
from steward.ports import ArrowTable
from tests.support.exporter_server import (
    Answer,
    ExporterServer,
    closed_port,
    exporter_server,
    exposition,
    gpu_text,
    gzipped,
    redirect,
)

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
INTERVAL_S = 0.05


class Kept:
    """Takes what the loop offers."""

    def __init__(self) -> None:
        """Start empty."""
        self.tables: defaultdict[str, list[pa.Table]] = defaultdict(list)

    def offer(self, rows: Iterable[tuple[str, ArrowTable]]) -> None:
        for name, table in rows:
            self.tables[name].append(pa.table(table))

    def rows(self, name: str) -> list[dict[str, object]]:
        return [row for table in self.tables[name] for row in table.to_pylist()]


@pytest.fixture
def server() -> Iterator[ExporterServer]:
    with exporter_server({"/metrics": exposition(gpu_text(host="n1"))}) as running:
        yield running


def loop_of(
    kept: Kept, *urls: str, timeout_s: float = 5, body_limit_bytes: int = 10_000_000
) -> ScrapeLoop:
    plan = LoopPlan(
        urls=urls,
        cluster=ClusterName("c1"),
        interval_s=INTERVAL_S,
        limits=FetchLimits(timeout_s=timeout_s, body_limit_bytes=body_limit_bytes),
    )
    return ScrapeLoop(plan, offer=kept.offer, clock=FixedClock(NOON))


def once(kept: Kept, *urls: str, timeout_s: float = 5) -> list[Reading]:
    return asyncio.run(loop_of(kept, *urls, timeout_s=timeout_s).once())


def test_a_scrape_gives_samples_devices_and_its_own_row(server: ExporterServer) -> None:
    kept = Kept()
    (reading,) = once(kept, server.url())
    (row,) = kept.rows("scrape")
    assert reading.refusal is None
    assert row | {"duration_s": None} == {
        "scraped_at": NOON,
        "cluster": "c1",
        "target": server.url(),
        "is_ok": True,
        "reason": None,
        "duration_s": None,
        "body_bytes": len(gpu_text(host="n1")),
        "sample_count": 4,
        "dropped_line_count": 0,
        "duplicate_count": 0,
        "unknown_metric_count": 0,
    }
    samples = kept.rows("device_sample")
    assert [(r["device_uuid"], r["busy_ratio"], r["power_w"]) for r in samples] == [
        ("GPU-n1-0", 0.5, 116.5),
        ("GPU-n1-1", 0.5, 116.5),
    ]
    assert {r["sampled_at"] for r in samples} == {NOON}
    assert len(kept.rows("device")) == 2


def test_every_bad_target_has_its_reason_and_spoils_no_other(server: ExporterServer) -> None:
    server.answers |= {
        "/gzip": gzipped(gpu_text(host="n2")),
        "/slow": Answer(body=b"a 1\n", drip_s=0.05),
        "/moved": redirect("/metrics"),
        "/html": Answer(body=b"<html></html>"),
        "/prose": exposition("This is not what you look for.\nNor is this.\n"),
        "/empty": exposition(""),
        "/comments": exposition("# HELP a b\n"),
        "/gone": Answer(status="503 Service Unavailable"),
        "/endless": Answer(is_endless=True),
    }
    kept = Kept()
    with closed_port() as port:
        down = f"http://127.0.0.1:{port}/metrics"
        urls = (server.url(), *(server.url(path) for path in server.answers), down)
        asyncio.run(loop_of(kept, *dict.fromkeys(urls), timeout_s=1).once())
    reasons = {row["target"]: (row["is_ok"], row["reason"]) for row in kept.rows("scrape")}
    assert reasons == {
        server.url(): (True, None),
        server.url("/gzip"): (True, None),
        server.url("/slow"): (False, "timeout"),
        server.url("/moved"): (False, "redirect"),
        server.url("/html"): (False, "not_exposition"),
        server.url("/prose"): (False, "not_exposition"),
        server.url("/empty"): (False, "empty"),
        server.url("/comments"): (False, "empty"),
        server.url("/gone"): (False, "http_status"),
        server.url("/endless"): (False, "too_large"),
        down: (False, "connection_refused"),
    }
    assert {row["node"] for row in kept.rows("device_sample")} == {"n1", "n2"}
    for row in kept.rows("scrape"):
        if not row["is_ok"]:
            assert (row["sample_count"], row["dropped_line_count"]) == (0, 0)


def test_a_bad_line_costs_one_line(server: ExporterServer) -> None:
    text = gpu_text(host="n1") + "DCGM_FI_DEV_GPU_TEMP{ broken\n"
    server.answers["/metrics"] = exposition(text)
    kept = Kept()
    (reading,) = once(kept, server.url())
    read = reading.outcome
    assert (read.reason, read.sample_count, read.dropped_line_count) == (None, 4, 1)
    assert [row["dropped_line_count"] for row in kept.rows("scrape")] == [1]


def test_a_long_text_is_read_like_a_short_one(server: ExporterServer) -> None:
    text = "".join(gpu_text(host=f"n{n}", gpu_count=8) for n in range(700))
    assert len(text) > LONG_BODY_BYTES
    server.answers["/metrics"] = gzipped(text)
    kept = Kept()
    (reading,) = once(kept, server.url())
    assert reading.refusal is None
    assert len(kept.rows("device_sample")) == 700 * 8


def follow(loop: ScrapeLoop, until: Iterable[object], *, server: ExporterServer) -> None:
    """Run the loop, one step of ``until`` per three scrapes, to its end."""
    steps, stop = iter(until), asyncio.Event()
    seen = 0

    def flush() -> None:
        nonlocal seen
        if sum(loop.tally.scrapes.values()) < seen + 3:
            return
        seen = sum(loop.tally.scrapes.values())
        if next(steps, stop) is stop:
            stop.set()

    asyncio.run(asyncio.wait_for(loop.run(stop, flush=flush), timeout=30))
    assert server.requests["/metrics"] > 0


def test_one_line_in_the_log_per_change_not_per_scrape(
    server: ExporterServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    kept = Kept()
    loop = loop_of(kept, server.url())
    good = server.answers["/metrics"]

    def changes() -> Iterator[None]:
        yield None
        for answer in (Answer(status="500 Oops"), redirect("/x"), good):
            server.answers["/metrics"] = answer
            yield None
            yield None

    follow(loop, changes(), server=server)
    said = [
        (r.levelname, r.message.split(" (")[0])
        for r in caplog.records
        if r.name == "collector.loop"
    ]
    assert said == [
        ("WARNING", f"{server.url()} answered HTTP 500 Oops"),
        ("WARNING", f"{server.url()} redirects to {server.url('/x')}"),
        ("INFO", f"{server.url()} answers again"),
    ]
    assert loop.tally.scrapes["http_status"] >= 3
    assert loop.tally.failing == {}
    assert len(kept.rows("scrape")) == sum(loop.tally.scrapes.values())


def test_a_hanging_target_does_not_slow_the_others(server: ExporterServer) -> None:
    server.answers["/hang"] = Answer(is_silent=True)
    kept = Kept()
    loop = loop_of(kept, server.url(), server.url("/hang"), timeout_s=20)
    follow(loop, [None, None, None], server=server)
    assert loop.tally.scrapes["ok"] >= 9
    assert loop.tally.scrapes[Reason.TIMEOUT] == 0
    assert server.requests["/hang"] == 1


def test_a_failing_flush_ends_the_loop(server: ExporterServer) -> None:
    def flush() -> None:
        raise WarehouseError("delivery has ended", hint="restart")

    loop = loop_of(Kept(), server.url())
    with pytest.raises(WarehouseError, match="delivery has ended"):
        asyncio.run(loop.run(asyncio.Event(), flush=flush))


def test_a_target_that_stays_away_is_forgotten_and_starts_anew() -> None:
    target = Target(url="http://n1:9400/metrics", cluster=ClusterName("c1"))
    page = Page(body=gpu_text(host="n1").encode())
    refusal = Refusal(reason=Reason.TIMEOUT, message="too slow", hint="look why")
    known = [
        reading_of(target, answer, scraped_at=NOON, duration_s=0.1) and remembered(target)
        for answer in (page, *[refusal] * FORGET_AFTER_FAILURES, page)
    ]
    assert known == [2, *[2] * (FORGET_AFTER_FAILURES - 1), 0, 2]
    assert target.failures_in_a_row == 0


def remembered(target: Target) -> int:
    return target.parser.remembered_block_count
