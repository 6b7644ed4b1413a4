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
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

import httpx

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

RESOLVER_THREADS: Final = 64
"""Names are resolved in threads; a name server that hangs for some must not hold up the rest."""

Offer = Callable[[Iterable[tuple[str, ArrowTable]]], None]


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
    skipped_slots: int = 0
    """Slots that passed while a target's scrape before was not done."""
    failing: dict[str, Reason] = field(default_factory=dict)
    """Targets whose last scrape failed, and why."""


def first_delay_s(url: str, *, interval_s: float, target_count: int) -> float:
    """Return when to scrape a target first: the same for the same target, spread over all."""
    digest = hashlib.sha256(url.encode()).digest()
    place_ratio = int.from_bytes(digest[:8], "big") / 2**64
    return place_ratio * min(interval_s, target_count * SPREAD_PER_TARGET_S)


def next_slot_s(slot_s: float, *, now_s: float, interval_s: float) -> float:
    """Return the first slot of the target's rhythm after this one that is not yet past."""
    late_s = max(0.0, now_s - slot_s)
    return slot_s + max(1, math.ceil(late_s / interval_s)) * interval_s


@asynccontextmanager
async def _client_with_resolvers() -> AsyncIterator[httpx.AsyncClient]:
    threads = ThreadPoolExecutor(max_workers=RESOLVER_THREADS, thread_name_prefix="resolver")
    asyncio.get_running_loop().set_default_executor(threads)
    async with open_client() as client:
        yield client


class ScrapeLoop:
    """All targets, scraped until told to stop.

    Args:
        plan: targets, interval and limits; no deadline should be longer than the interval.
        offer: takes each scrape's rows.
        clock: dates the scrapes.
    """

    def __init__(self, plan: LoopPlan, *, offer: Offer, clock: Clock) -> None:
        """Prepare one state per target; nothing is scraped yet."""
        self._plan = plan
        self._offer = offer
        self._clock = clock
        self.targets = [Target(url=url, cluster=plan.cluster) for url in plan.urls]
        self.tally = LoopTally()

    async def run(self, stop: asyncio.Event, *, flush: Callable[[], None]) -> None:
        """Scrape at the interval until ``stop`` is set; scrapes under way are then given up.

        Args:
            stop: ends the loop.
            flush: called every few seconds, and not after the end; its failure ends the loop.
        """
        async with _client_with_resolvers() as client:
            tasks = [asyncio.create_task(self._follow(client, one)) for one in self.targets]
            tasks.append(asyncio.create_task(self._flush_often(flush)))
            stopper = asyncio.create_task(stop.wait())
            ended, _ = await asyncio.wait({*tasks, stopper}, return_when=asyncio.FIRST_COMPLETED)
            for task in (*tasks, stopper):
                task.cancel()
            await asyncio.gather(*tasks, stopper, return_exceptions=True)
        for task in ended:
            task.result()

    async def once(self) -> list[Reading]:
        """Scrape every target one time, all together; return what each gave, in order.

        Nothing is logged: the caller tells what failed.
        """
        async with _client_with_resolvers() as client:
            scrapes = (self._scrape(client, target) for target in self.targets)
            return list(await asyncio.gather(*scrapes))

    async def _follow(self, client: httpx.AsyncClient, target: Target) -> None:
        """Scrape one target for ever, in its own rhythm."""
        loop, interval_s = asyncio.get_running_loop(), self._plan.interval_s
        slot_s = loop.time() + first_delay_s(
            target.url, interval_s=interval_s, target_count=len(self.targets)
        )
        while True:
            await asyncio.sleep(max(0.0, slot_s - loop.time()))
            self._note(await self._scrape(client, target))
            following_s = next_slot_s(slot_s, now_s=loop.time(), interval_s=interval_s)
            self.tally.skipped_slots += round((following_s - slot_s) / interval_s) - 1
            slot_s = following_s

    async def _scrape(self, client: httpx.AsyncClient, target: Target) -> Reading:
        reading = await read_target(client, target, limits=self._plan.limits, clock=self._clock)
        self._offer(reading.rows)
        return reading

    def _note(self, reading: Reading) -> None:
        """Count the outcome, and log it where it differs from the target's last one."""
        url, refusal = reading.url, reading.refusal
        before = self.tally.failing.pop(url, None)
        self.tally.scrapes["ok" if refusal is None else refusal.reason] += 1
        if refusal is not None:
            self.tally.failing[url] = refusal.reason
            if refusal.reason != before:
                log.warning("%s (%s; %s)", refusal.message, refusal.reason, refusal.hint)
        elif before is not None:
            log.info("%s answers again (was %s)", url, before)

    async def _flush_often(self, flush: Callable[[], None]) -> None:
        while True:
            await asyncio.sleep(min(FLUSH_S, self._plan.interval_s))
            flush()
