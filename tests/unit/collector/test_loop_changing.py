"""A set of targets that changes while the loop runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest

from collector.discovery import ScrapeTarget
from collector.loop import LoopPlan, ScrapeLoop, on_tick_s
from collector.reading import Reading
from collector.scrape import FetchLimits
from steward.clock import FixedClock
from steward.ids import ClusterName
from tests.support.exporter_server import (
    Answer,
    ExporterServer,
    exporter_server,
    exposition,
    gpu_text,
)

INTERVAL_S = 0.05


@pytest.fixture
def server() -> Iterator[ExporterServer]:
    answers = {f"/{name}": exposition(gpu_text(host=name)) for name in ("n1", "n2", "n3")}
    with exporter_server(answers) as running:
        yield running


class Watched:
    """A loop without targets, and what it saw."""

    def __init__(self) -> None:
        """Start with nothing to scrape."""
        plan = LoopPlan(
            urls=(),
            cluster=ClusterName("c1"),
            interval_s=INTERVAL_S,
            limits=FetchLimits(timeout_s=20),
        )
        self.readings: list[Reading] = []
        self.rows: list[str] = []
        self.loop = ScrapeLoop(
            plan,
            offer=lambda rows: self.rows.extend(name for name, _ in rows),
            clock=FixedClock(datetime(2026, 5, 1, 12, tzinfo=UTC)),
            observe=self.readings.append,
        )

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait for the condition."""
        async with asyncio.timeout(30):
            while not condition():  # noqa: ASYNC110 - the condition is the loop's, not an event
                await asyncio.sleep(0.001)

    def count(self, url: str) -> int:
        """Return how often a target was read."""
        return sum(reading.url == url for reading in self.readings)

    def run(self, steps: Callable[[], asyncio.Future[None] | object]) -> None:
        """Run the loop while the steps run in it."""

        async def both() -> None:
            stop = asyncio.Event()
            running = asyncio.create_task(self.loop.run(stop, flush=lambda: None))
            await asyncio.sleep(0)
            await steps()  # type: ignore[misc] # an async function without arguments
            stop.set()
            await asyncio.wait_for(running, 30)

        asyncio.run(both())


def test_targets_come_and_go_while_others_go_on(server: ExporterServer) -> None:
    watched = Watched()
    one, two = (ScrapeTarget(url=server.url(path)) for path in ("/n1", "/n2"))

    async def steps() -> None:
        watched.loop.set_targets([one])
        await watched.until(lambda: watched.count(one.url) >= 2)
        before = watched.loop.targets[0]
        watched.loop.set_targets([one, two])
        await watched.until(lambda: watched.count(two.url) >= 2)
        assert watched.loop.targets[0] is before
        watched.loop.set_targets([two])
        left = watched.count(one.url)
        await watched.until(lambda: watched.count(two.url) >= 6)
        assert watched.count(one.url) == left
        watched.loop.set_targets([one, two])
        await watched.until(lambda: watched.count(one.url) > left)
        assert watched.loop.targets[-1] is not before

    watched.run(steps)
    assert [target.url for target in watched.loop.targets] == [two.url, one.url]
    assert watched.rows.count("scrape") > 1


def test_what_a_target_stands_on_is_taken_from_discovery(server: ExporterServer) -> None:
    watched = Watched()
    url = server.url("/n1")

    async def steps() -> None:
        for node in (None, "worker-1", "worker-2"):
            watched.readings.clear()
            watched.loop.set_targets([ScrapeTarget(url=url, node=node)])
            await watched.until(lambda: len(watched.readings) >= 1)
            (reading,) = watched.readings[:1]
            assert (reading.node, reading.nodes) == (node, frozenset({node or "n1"}))

    watched.run(steps)


def test_a_target_that_hangs_is_given_up_when_it_goes(server: ExporterServer) -> None:
    server.answers["/hang"] = Answer(is_silent=True)
    watched = Watched()

    async def steps() -> None:
        watched.loop.set_targets([ScrapeTarget(url=server.url("/hang"))])
        await watched.until(lambda: server.requests["/hang"] == 1)
        watched.loop.set_targets([])
        assert watched.loop.targets == []

    watched.run(steps)
    assert watched.readings == []


def test_a_failing_target_that_goes_is_no_longer_told_as_failing(server: ExporterServer) -> None:
    watched = Watched()
    good, bad = server.url("/n1"), server.url("/nothing")

    async def steps() -> None:
        watched.loop.set_targets([ScrapeTarget(url=url) for url in (good, bad)])
        await watched.until(lambda: bad in watched.loop.tally.failing)
        watched.loop.set_targets([ScrapeTarget(url=good)])
        assert watched.loop.tally.failing == {}

    watched.run(steps)


def test_a_device_passes_to_the_target_that_is_left(server: ExporterServer) -> None:
    server.answers["/again"] = server.answers["/n1"]
    watched = Watched()
    one, two = server.url("/again"), server.url("/n1")

    async def steps() -> None:
        watched.loop.set_targets([ScrapeTarget(url=one)])
        await watched.until(lambda: watched.count(one) >= 1)
        watched.loop.set_targets([ScrapeTarget(url=url) for url in (one, two)])
        await watched.until(lambda: watched.count(two) >= 3)
        assert watched.loop.rivals == {(one, two): 2}
        assert {len(r.nodes) for r in watched.readings if r.url == two} == {0}
        watched.loop.set_targets([ScrapeTarget(url=two)])
        seen = watched.count(two)
        await watched.until(lambda: watched.count(two) >= seen + 2)
        assert watched.loop.rivals == {}
        assert watched.readings[-1].nodes == {"n1"}

    watched.run(steps)


def test_only_the_first_text_is_read_in_full_while_nothing_but_numbers_changes(
    server: ExporterServer,
) -> None:
    server.answers["/busy"] = exposition(
        gpu_text(host="n1", busy_percent=50).replace(" 50", " @N@")
    )
    watched = Watched()
    url = server.url("/busy")

    async def steps() -> None:
        watched.loop.set_targets([ScrapeTarget(url=url)])
        await watched.until(lambda: watched.count(url) >= 10)

    watched.run(steps)
    assert [reading.is_full for reading in watched.readings[:10]] == [True, *[False] * 9]
    assert watched.loop.tally.full_reads == 1
    assert watched.readings[1].holdings is watched.readings[9].holdings


@pytest.mark.parametrize(
    ("slot_s", "tick_s"), [(99.9, 100.0), (100.0, 100.0), (100.1, 100.25), (100.25, 100.25)]
)
def test_slots_are_on_ticks(slot_s: float, tick_s: float) -> None:
    assert on_tick_s(slot_s, interval_s=15) == tick_s
