"""Scrapes every target at its interval, each on its own, and hands the rows on.

A target that is down, slow or strange costs its own row in ``scrape`` and one line in the log; the
others go on. The schedule is spread over the interval by each target's name, so that a thousand
targets are a steady trickle and the same after every restart.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from collector.discovery import ScrapeTarget
from collector.exporter_client import ExporterClient
from collector.harvest import Harvest
from collector.normalize import NormalizeState
from collector.normalize.claims import DeviceClaims
from collector.reading import Reading, Target, read_target
from collector.scrape import FetchLimits, Reason, open_client
from steward.clock import Clock
from steward.ids import ClusterName
from steward.ports import ArrowTable

log = logging.getLogger(__name__)

FLUSH_S: Final = 5.0
"""Rows leave for the warehouse this often, or once per interval where that is shorter."""
SPREAD_PER_TARGET_S: Final = 0.02
"""A few targets start almost at once; from 750 on they fill the default interval."""

TICKS_PER_INTERVAL: Final = 60
"""So many times in an interval targets are scraped, each time those whose turn it is."""

Offer = Callable[[Iterable[tuple[str, ArrowTable]]], None]
Observe = Callable[[Reading], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopPlan:
    """What to scrape, how often and for whom."""

    urls: Sequence[str]
    cluster: ClusterName
    interval_s: float
    limits: FetchLimits


@dataclass(slots=True)
class LoopTally:
    """What became of the scrapes so far."""

    scrapes: Counter[str] = field(default_factory=Counter)
    """By outcome: ``ok`` or a ``Reason``."""
    full_reads: int = 0
    """Good scrapes whose text had to be read in full, since more than numbers had changed."""
    skipped_slots: int = 0
    """Slots that passed while a target's scrape before was not done."""
    failing: dict[str, Reason] = field(default_factory=dict)
    """Targets whose last scrape failed, and why."""


def first_delay_s(url: str, *, interval_s: float, target_count: int) -> float:
    """Return when to scrape a target first: the same for the same target, spread over all."""
    digest = hashlib.sha256(url.encode()).digest()
    place_ratio = int.from_bytes(digest[:8], "big") / 2**64
    return place_ratio * min(interval_s, target_count * SPREAD_PER_TARGET_S)


def on_tick_s(slot_s: float, *, interval_s: float) -> float:
    """Return the first tick from this time on: targets near each other are scraped together.

    Scraped one by one with pauses between, each costs twice the CPU time: by then the processor's
    caches hold something else.
    """
    tick_s = interval_s / TICKS_PER_INTERVAL
    return math.ceil(slot_s / tick_s) * tick_s


def next_slot_s(slot_s: float, *, now_s: float, interval_s: float) -> float:
    """Return the first slot of the target's rhythm after this one that is not yet past."""
    late_s = max(0.0, now_s - slot_s)
    return slot_s + max(1, math.ceil(late_s / interval_s)) * interval_s


class ScrapeLoop:
    """All targets, scraped until told to stop.

    Args:
        plan: targets to begin with, interval and limits; no deadline should be longer than the
            interval.
        offer: takes the rows of all scrapes, every few seconds.
        clock: dates the scrapes.
        observe: is told of each scrape's outcome, good or bad, as soon as it is known.
    """

    def __init__(
        self,
        plan: LoopPlan,
        *,
        offer: Offer,
        clock: Clock,
        observe: Observe | None = None,
    ) -> None:
        """Prepare one state per target; nothing is scraped yet."""
        self._plan = plan
        self._offer = offer
        self._clock = clock
        self._observe = observe
        self._harvest = Harvest()
        self._claims = DeviceClaims()
        self._targets: dict[str, Target] = {}
        self._running: _Running | None = None
        self.tally = LoopTally()
        self.set_targets([ScrapeTarget(url=url) for url in plan.urls])

    @property
    def targets(self) -> Sequence[Target]:
        """Return what is scraped now."""
        return list(self._targets.values())

    @property
    def rivals(self) -> Mapping[tuple[str, str], int]:
        """Return pairs of targets (owner, other) that show the same devices, with how many."""
        return self._claims.rivals()

    def set_targets(self, targets: Sequence[ScrapeTarget]) -> None:
        """Scrape these from now on: new ones in their own rhythm, others as before.

        What is remembered of a target that is not among them, or is on another node now, goes.
        Call it in the loop's own thread.
        """
        wanted = {one.url: one for one in targets}
        for url, target in list(self._targets.items()):
            if url not in wanted or not _is_same(target, wanted[url]):
                self._drop(url)
        for url, one in wanted.items():
            if url not in self._targets:
                self._targets[url] = self._target(one)
                self._start(url)

    async def run(self, stop: asyncio.Event, *, flush: Callable[[], None]) -> None:
        """Scrape at the interval until ``stop`` is set; scrapes under way are then given up.

        Args:
            stop: ends the loop.
            flush: called every few seconds, and not after the end; its failure ends the loop.
        """
        async with open_client() as client:
            self._running = _Running(client)
            for url in self._targets:
                self._start(url)
            watched: list[asyncio.Future[Any]] = [
                asyncio.create_task(self._flush_often(flush)),
                asyncio.create_task(stop.wait()),
                self._running.failed,
            ]
            ended, _ = await asyncio.wait(watched, return_when=asyncio.FIRST_COMPLETED)
            await _cancel([*watched, *self._running.tasks.values()])
            self._running = None
        self._offer(self._harvest.take())
        for task in ended:
            task.result()

    async def once(self) -> list[Reading]:
        """Scrape every target one time, all together; return what each gave, in order.

        Nothing is logged: the caller tells what failed.
        """
        async with open_client() as client:
            scrapes = (self._scrape(client, target) for target in self._targets.values())
            readings = list(await asyncio.gather(*scrapes))
        self._offer(self._harvest.take())
        return readings

    def _target(self, one: ScrapeTarget) -> Target:
        state = NormalizeState(node=one.node, own_pod=one.pod, claims=self._claims)
        return Target(url=one.url, cluster=self._plan.cluster, state=state)

    def _start(self, url: str) -> None:
        """Begin to follow a target, if the loop runs."""
        if self._running is not None:
            following = self._follow(self._running.client, self._targets[url])
            self._running.watch(url, asyncio.create_task(following))

    def _drop(self, url: str) -> None:
        """Stop following a target and forget all of it."""
        del self._targets[url]
        self._claims.release(url)
        self.tally.failing.pop(url, None)
        if self._running is not None:
            self._running.drop(url)

    async def _follow(self, client: ExporterClient, target: Target) -> None:
        """Scrape one target for ever, in its own rhythm."""
        loop, interval_s = asyncio.get_running_loop(), self._plan.interval_s
        delay_s = first_delay_s(target.url, interval_s=interval_s, target_count=len(self._targets))
        slot_s = on_tick_s(loop.time() + delay_s, interval_s=interval_s)
        while True:
            await asyncio.sleep(max(0.0, slot_s - loop.time()))
            self._note(await self._scrape(client, target))
            following_s = next_slot_s(slot_s, now_s=loop.time(), interval_s=interval_s)
            self.tally.skipped_slots += round((following_s - slot_s) / interval_s) - 1
            slot_s = following_s

    async def _scrape(self, client: ExporterClient, target: Target) -> Reading:
        reading = await read_target(client, target, limits=self._plan.limits, clock=self._clock)
        self._harvest.add(reading)
        if self._observe is not None:
            self._observe(reading)
        return reading

    def _note(self, reading: Reading) -> None:
        """Count the outcome, and log it where it differs from the target's last one."""
        url, refusal = reading.url, reading.refusal
        before = self.tally.failing.pop(url, None)
        self.tally.scrapes["ok" if refusal is None else refusal.reason] += 1
        self.tally.full_reads += reading.is_full and refusal is None
        if refusal is not None:
            self.tally.failing[url] = refusal.reason
            if refusal.reason != before:
                log.warning("%s (%s; %s)", refusal.message, refusal.reason, refusal.hint)
        elif before is not None:
            log.info("%s answers again (was %s)", url, before)

    async def _flush_often(self, flush: Callable[[], None]) -> None:
        while True:
            await asyncio.sleep(min(FLUSH_S, self._plan.interval_s))
            self._offer(self._harvest.take())
            flush()


class _Running:
    """What exists only while the loop runs."""

    def __init__(self, client: ExporterClient) -> None:
        self.client = client
        self.tasks: dict[str, asyncio.Task[None]] = {}
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Holds the failure of a target's task that nobody foresaw."""

    def watch(self, url: str, task: asyncio.Task[None]) -> None:
        """Keep the task; its failure is the loop's."""
        self.tasks[url] = task
        task.add_done_callback(self._note_end)

    def drop(self, url: str) -> None:
        """End a target's task and hang up."""
        self.tasks.pop(url).cancel()
        self.client.forget(url)

    def _note_end(self, task: asyncio.Task[None]) -> None:
        failure = None if task.cancelled() else task.exception()
        if failure is not None and not self.failed.done():
            self.failed.set_exception(failure)


def _is_same(target: Target, found: ScrapeTarget) -> bool:
    return (target.state.node, target.state.own_pod) == (found.node, found.pod)


async def _cancel(tasks: Sequence[asyncio.Future[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
