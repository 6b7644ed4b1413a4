"""All places that targets come from, looked at again and again; the set is told when it changes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from collector.discovery import ScrapeTarget
from collector.discovery_files import FileDiscovery
from collector.discovery_http import HttpDiscovery
from collector.discovery_labels import SourceState, merged_targets

log = logging.getLogger(__name__)

SetTargets = Callable[[Sequence[ScrapeTarget]], None]


class ClusterExporters(Protocol):
    """Exporters that the cluster itself names."""

    def look(self) -> tuple[ScrapeTarget, ...]:
        """Return the targets as they are now."""
        ...

    def states(self) -> tuple[SourceState, ...]:
        """Return how it goes with each selection."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetSources:
    """Where targets come from."""

    static: Sequence[str] = ()
    """Addresses, in the spelling of ``target_urls``."""
    files: FileDiscovery | None = None
    http: HttpDiscovery | None = None
    cluster: ClusterExporters | None = None


class TargetDiscovery:
    """The union of all sources.

    Args:
        sources: where targets come from.
        look_s: files and the cluster are looked at this often; URLs at their own interval.
    """

    def __init__(self, sources: TargetSources, *, look_s: float = 5.0) -> None:
        """Look at nothing yet."""
        self._sources = sources
        self._look_s = look_s
        self._static = tuple(ScrapeTarget(url=url) for url in sources.static)
        self._http_targets: tuple[ScrapeTarget, ...] = ()
        self._ask_at_s: float | None = None
        self._troubled: frozenset[SourceState] = frozenset()

    async def run(self, stop: asyncio.Event, set_targets: SetTargets) -> None:
        """Look until ``stop`` is set; tell the whole set at the start and when it changes.

        Args:
            stop: ends it.
            set_targets: takes all targets, each URL once, ascending.
        """
        told: tuple[ScrapeTarget, ...] | None = None
        while not stop.is_set():
            targets = await self.look()
            if targets != told:
                set_targets(targets)
                told = targets
            try:
                await asyncio.wait_for(stop.wait(), self._look_s)
            except TimeoutError:
                continue

    async def look(self) -> tuple[ScrapeTarget, ...]:
        """Return all targets now; what is wrong with a source is told once in the log."""
        sources = self._sources
        files = () if sources.files is None else await asyncio.to_thread(sources.files.look)
        await self._ask_if_due()
        cluster = () if sources.cluster is None else sources.cluster.look()
        self._tell_troubles()
        return merged_targets((self._static, files, self._http_targets, cluster))

    def states(self) -> tuple[SourceState, ...]:
        """Return how it goes with each file, URL and selection."""
        sources = (self._sources.files, self._sources.http, self._sources.cluster)
        return tuple(state for one in sources if one is not None for state in one.states())

    async def _ask_if_due(self) -> None:
        http, now_s = self._sources.http, asyncio.get_running_loop().time()
        if http is not None and (self._ask_at_s is None or now_s >= self._ask_at_s):
            self._http_targets = await http.look()
            self._ask_at_s = now_s + http.refresh_s

    def _tell_troubles(self) -> None:
        troubled = frozenset(state for state in self.states() if state.error is not None)
        told = {(state.source, state.error) for state in self._troubled}
        for state in sorted(troubled, key=lambda one: one.source):
            if (state.source, state.error) not in told:
                log.warning("%s; its last good targets stay (%s)", state.error, state.hint)
        self._troubled = troubled
