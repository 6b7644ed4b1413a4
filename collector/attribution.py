"""Who holds what and whose it is: the cluster's changes and the scrapes in, rows out.

Everything runs under one lock: changes come from the thread that watches the cluster, readings from
the loop that scrapes. Rows wait here until the next flush, together with what must be remembered of
them: they are offered in one step, so that after a crash neither is there without the other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from threading import Lock
from typing import Final, Protocol

from collector.allocation.builder import AllocationBuilder
from collector.allocation.polls import Output as AllocationOutput
from collector.allocation.polls import Poll
from collector.holdings import DeviceKey, HoldingSource
from collector.lifecycle.lifecycle import Lifecycle
from collector.lifecycle.output import Output as LifecycleOutput
from collector.ownership import Owner
from collector.polling import Polling
from collector.reading import Reading
from collector.sources.kubernetes.change import Change, ChangeType
from collector.sources.kubernetes.resources import NODES
from collector.tables import rows_table
from steward.clock import Clock
from steward.ids import ClusterName
from steward.ports import ArrowTable

PATIENCE: Final = timedelta(seconds=30)
"""How long scrapes wait at the start until the cluster's pods are known; later they would only have
to be told again with their owners."""
PORTIONS_A_FLUSH: Final = 4
"""Portions of the first lists that a flush takes, where no change makes the watcher take them."""
ROW_LIMIT: Final = 5_000
"""Rows that wait as mappings; beyond it they become columns, a tenth of the size."""


class Offer(Protocol):
    """Takes rows over, with what to remember."""

    def __call__(
        self,
        rows: Iterable[tuple[str, ArrowTable]],
        *,
        remember: Mapping[str, bytes | None] | None = None,
    ) -> None:
        """Take all of it, in one step."""
        ...


class NoOwners:
    """Where no cluster is watched, nobody knows whose a pod is."""

    def owner_of(self, namespace: str | None, pod: str) -> Owner | None:
        """Return None."""
        del namespace, pod
        return None


class Attribution:
    """Keeps lifecycle and allocation of one cluster in step.

    Args:
        cluster: the cluster of every row.
        poll_s: how often each target is scraped.
        lifecycle: the watched cluster; None where none is watched.
        memory: what was to be remembered before a restart.
        offer: takes the rows.
        clock: dates what no change dates.
    """

    def __init__(
        self,
        *,
        cluster: ClusterName,
        poll_s: float,
        lifecycle: Lifecycle | None,
        memory: Mapping[str, bytes],
        offer: Offer,
        clock: Clock,
    ) -> None:
        """Begin where the memory ends."""
        self._lifecycle = lifecycle
        self._allocation = AllocationBuilder(
            cluster=cluster,
            poll_s=poll_s,
            owners=lifecycle if lifecycle is not None else NoOwners(),
            memory=memory,
        )
        self._polling = Polling()
        self._offer = offer
        self._clock = clock
        self._rows: defaultdict[str, list[Mapping[str, object]]] = defaultdict(list)
        self._row_count = 0
        self._remember: dict[str, bytes | None] = {}
        self._claimed: dict[str, frozenset[DeviceKey]] = {}
        self._started_at = clock.now()
        self._lock = Lock()

    def apply(self, change: Change) -> None:
        """Take a change of the watched cluster."""
        if self._lifecycle is None:
            return
        with self._lock:
            self._take_lifecycle(self._lifecycle.apply(change))
            if change.resource is NODES and change.type is ChangeType.DELETED:
                self._take_allocation(
                    self._allocation.node_removed(change.key.name, removed_at=change.observed_at)
                )
        while self._take_portion(self._lifecycle, change.observed_at):
            pass

    def observe(self, reading: Reading) -> None:
        """Take what a scrape says of who holds what."""
        with self._lock:
            if self._is_too_early():
                return
            for poll in self._polling.polls(reading):
                self._take_allocation(self._allocation.observe(poll))

    def flush(self) -> None:
        """Note what time alone changes, and offer everything that waits."""
        now = self._clock.now()
        with self._lock:
            if self._lifecycle is not None:
                self._take_lifecycle(self._lifecycle.advance(now))
        for _ in range(PORTIONS_A_FLUSH):
            if self._lifecycle is not None:
                self._take_portion(self._lifecycle, now)
        with self._lock:
            if self._lifecycle is not None:
                self._poll_claims(self._lifecycle, now)
            self._take_allocation(self._allocation.advance(now))
            self._offer_all()

    @property
    def late_poll_count(self) -> int:
        """Return how many polls were left out since a later one of their source was known."""
        return self._allocation.late_poll_count

    def keep_only(self, urls: Iterable[str]) -> None:
        """Forget targets that are no longer scraped."""
        with self._lock:
            self._polling.keep_only(urls)

    def _is_too_early(self) -> bool:
        if self._lifecycle is None or self._lifecycle.is_settled:
            return False
        return self._clock.now() < self._started_at + PATIENCE

    def _poll_claims(self, lifecycle: Lifecycle, now: datetime) -> None:
        """Let the claims of each node speak, and of each device that is offered there.

        A node or a partition that was spoken of is spoken of once more when it is free.
        """
        if not lifecycle.is_settled:
            return
        holdings, boards = lifecycle.holdings(), lifecycle.boards()
        spoken_of = self._claimed
        self._claimed = {}
        for node in sorted(spoken_of.keys() | holdings.keys() | boards.keys()):
            held = holdings.get(node, ())
            now_claimed = frozenset((one.device_uuid, one.instance_id) for one in held)
            offered = frozenset((uuid, None) for uuid in boards.get(node, ()))
            poll = Poll(
                node=node,
                at=now,
                source=HoldingSource.DRA,
                holdings=held,
                devices=offered | now_claimed | spoken_of.get(node, frozenset()),
            )
            self._take_allocation(self._allocation.observe(poll))
            if now_claimed or offered:
                self._claimed[node] = now_claimed

    def _take_portion(self, lifecycle: Lifecycle, now: datetime) -> bool:
        """Take one portion of what is left of the first lists; return whether there was one.

        The lock is free between portions, so that scrapes are not held up by large lists.
        """
        with self._lock:
            if not lifecycle.has_more:
                return False
            self._take_lifecycle(lifecycle.advance(now))
            return True

    def _take_lifecycle(self, output: LifecycleOutput) -> None:
        for table, row in output.rows:
            self._add(table, row)
        self._remember.update(output.remember)
        for end in output.ended_pods:
            self._take_allocation(
                self._allocation.pod_finished(
                    end.namespace, end.pod, pod_uid=end.pod_uid, finished_at=end.finished_at
                )
            )
        if self._row_count >= ROW_LIMIT:
            self._offer_all()

    def _take_allocation(self, output: AllocationOutput) -> None:
        for row in output.rows:
            self._add("allocation", row)
        self._remember.update(output.remember)

    def _add(self, table: str, row: Mapping[str, object]) -> None:
        self._rows[table].append(row)
        self._row_count += 1

    def _offer_all(self) -> None:
        if not self._row_count and not self._remember:
            return
        rows, self._rows = self._rows, defaultdict(list)
        remember, self._remember = self._remember, {}
        self._row_count = 0
        tables = [(name, rows_table(name, rows[name])) for name in sorted(rows)]
        self._offer(tables, remember=remember)
