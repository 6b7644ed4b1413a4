"""Builds allocation intervals from polls: what a collector calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from collector.allocation.measured import measure
from collector.allocation.memory import (
    NODE,
    NOW,
    SEEN,
    encoded_finished,
    encoded_node,
    encoded_seen,
    finished_key,
    recalled,
)
from collector.allocation.placement import device_order, uids_by_device
from collector.allocation.pods import Finished, Pods
from collector.allocation.polls import Output, PodKey, Poll, Row, is_same_holder, micros
from collector.allocation.resolve import parts_by_device
from collector.allocation.state import (
    MISSED_POLLS,
    RECENT_US,
    WATCHED,
    Ending,
    NodeState,
    SourceState,
    Statement,
    Timing,
)
from collector.allocation.statements import Endings, add_ending, ending_of, is_expired, take
from collector.allocation.timeline import Settling, settle_device
from collector.ownership import Owners
from steward.ids import ClusterName
from steward.units import MICROS_PER_SECOND, SECONDS_PER_MINUTE

UNKNOWN_LIMIT_S: Final = 900.0
"""So long an unknown holding stays with a pod that the cluster does not know either."""
CLOCK_STEP_POLLS: Final = 3
"""So many polls in a row that seem old mean that the clock was set back."""
_SWEEP_US: Final = SECONDS_PER_MINUTE * MICROS_PER_SECOND


class AllocationBuilder:
    """Keeps who holds what of every node, and tells each change as rows.

    Not for use by several threads at a time. Every instant comes with the calls.
    """

    def __init__(
        self,
        *,
        cluster: ClusterName,
        poll_s: float,
        owners: Owners,
        memory: Mapping[str, bytes] | None = None,
        unknown_limit_s: float = UNKNOWN_LIMIT_S,
    ) -> None:
        """Start from what was remembered.

        Args:
            cluster: the cluster of every row.
            poll_s: how often each node is polled.
            owners: whose pods are.
            memory: what earlier outputs asked to remember; other keys are ignored.
            unknown_limit_s: so long an unknown holding stays with a pod that ``owners`` does not
                know; with one it knows it stays until the pod's end is told.

        Raises:
            InputError: what is remembered is damaged, or of another version.
        """
        self._cluster = cluster
        self._timing = Timing(
            poll_us=round(poll_s * MICROS_PER_SECOND),
            unknown_limit_us=round(unknown_limit_s * MICROS_PER_SECOND),
        )
        self._pods = Pods(owners)
        self._nodes: dict[str, NodeState] = {}
        self._nodes_of_pod: dict[PodKey, set[str]] = {}
        self._swept_us = 0
        self.late_poll_count = 0
        """Polls that were left out since a later one of their source was known."""
        self._recall(memory or {})

    def observe(self, poll: Poll) -> Output:
        """Take in one complete poll of one node by one source."""
        at_us = micros(poll.at)
        node = self._nodes.setdefault(poll.node, NodeState(node=poll.node))
        if self._is_late(node, poll, at_us=at_us):
            return Output(rows=[], remember={})
        self._pods.now_us = max(self._pods.now_us, at_us)
        rows: list[Row] = []
        is_repeated = self._is_repeated(node, poll)
        if is_repeated:
            node.sources[poll.source].at_us = at_us
        else:
            rows = self._take(node, poll, at_us=at_us)
        is_measured = bool(poll.uses) and self._measure(node, poll, rows=rows)
        if is_repeated and not is_measured:
            return Output(rows=rows, remember={SEEN + node.node: encoded_seen(node)})
        return Output(rows=rows, remember=self._memory_of(node))

    def pod_finished(
        self, namespace: str, pod: str, *, pod_uid: str | None, finished_at: datetime
    ) -> Output:
        """Close what a pod held at the instant its containers finished.

        A source may go on listing the pod; that counts for nothing from now on. An end before
        what was seen corrects intervals that are open or were closed a short while ago.
        """
        at_us = micros(finished_at)
        if self._latest_us:
            at_us = min(at_us, self._latest_us + self._timing.poll_us)
        end = Finished(pod_uid=pod_uid, finished_us=at_us, told_us=max(self._latest_us, at_us))
        self._pods.finished[namespace, pod] = end
        rows: list[Row] = []
        remember: dict[str, bytes | None] = {finished_key((namespace, pod)): encoded_finished(end)}
        for name in sorted(self._nodes_of_pod.get((namespace, pod), ())):
            node = self._nodes[name]
            rows += self._shorten_recent(node, namespace=namespace, pod=pod, end=end)
            rows += self._settle(
                node,
                at_us=node.last_us,
                endings={
                    (each.device, each.holder): Ending(at_us=at_us, is_certain=True)
                    for each in node.open.values()
                    if (each.namespace, each.pod) == (namespace, pod)
                },
            )
            remember |= self._memory_of(node)
        return Output(rows=rows, remember=remember)

    def advance(self, now: datetime) -> Output:
        """Note which sources fell silent, and give up what was unknown for too long."""
        now_us = micros(now)
        self._pods.now_us = max(self._pods.now_us, now_us)
        rows: list[Row] = []
        remember: dict[str, bytes | None] = {NOW: str(self._latest_us).encode()}
        for node in self._nodes.values():
            is_new = self._note_silence(node, now_us=now_us)
            if not any(source.is_silent for source in node.sources.values()):
                continue
            endings = self._give_up(node, now_us=now_us)
            if is_new or endings:
                rows += self._settle(node, at_us=now_us, endings=endings)
                remember |= self._memory_of(node)
            if self._forget_sources(node, now_us=now_us):
                node.is_settled = self._is_settled(node)
                remember |= self._memory_of(node)
        if now_us - self._swept_us >= _SWEEP_US:
            self._swept_us = now_us
            remember |= {finished_key(pod): None for pod in self._expired_ends()}
            self._index_pods()
        return Output(rows=rows, remember=remember)

    def node_removed(self, name: str, *, removed_at: datetime) -> Output:
        """Close everything on a node that left the cluster, and forget the node."""
        node = self._nodes.get(name)
        if node is None:
            return Output(rows=[], remember={})
        at_us = micros(removed_at)
        if node.sources:
            at_us = min(at_us, node.last_us + self._timing.poll_us)
        node.statements.clear()
        for traces in (node.busy, node.missing, node.dark):
            traces.clear()
        rows = self._settle(node, at_us=at_us, endings={})
        del self._nodes[name]
        return Output(rows=rows, remember={NODE + name: None, SEEN + name: None})

    @property
    def _latest_us(self) -> int:
        return self._pods.now_us

    def _recall(self, memory: Mapping[str, bytes]) -> None:
        known = recalled(memory)
        self._pods.finished, self._nodes = known.finished, known.nodes
        times = [node.last_us for node in self._nodes.values()]
        self._pods.now_us = max([known.now_us, *times])
        self._index_pods()

    def _expired_ends(self) -> list[PodKey]:
        listed = {
            (statement.holding.namespace, statement.holding.pod)
            for node in self._nodes.values()
            for statement in node.statements.values()
        }
        return self._pods.expire(listed=listed)

    def _index_pods(self) -> None:
        """Note again on which nodes each pod is stated, holds or held a short while ago."""
        self._nodes_of_pod.clear()
        for node in self._nodes.values():
            self._index_node(node)

    def _index_node(self, node: NodeState) -> None:
        pods = {(said.holding.namespace, said.holding.pod) for said in node.statements.values()}
        pods |= {(each.namespace, each.pod) for each in node.recent if each.pod is not None}
        for pod in pods:
            self._nodes_of_pod.setdefault(pod, set()).add(node.node)

    def _is_late(self, node: NodeState, poll: Poll, *, at_us: int) -> bool:
        source = node.sources.get(poll.source)
        if source is None or at_us > source.at_us:
            return False
        source.late_count += 1
        if source.late_count >= CLOCK_STEP_POLLS and at_us < source.at_us:
            return False
        self.late_poll_count += 1
        return True

    def _is_repeated(self, node: NodeState, poll: Poll) -> bool:
        """Return whether the poll says what the last one said, and nothing is pending."""
        source = node.sources.get(poll.source)
        if source is None or not node.is_settled or source.late_count:
            return False
        is_same = _is_same_said(source, poll) and (
            poll.busy is None or node.unheld(poll.busy) == node.busy.keys()
        )
        if not is_same or not poll.sm_shares.items() <= node.sm_shares.items():
            return False
        if poll.uses is not None:
            strays = node.strays(uids_by_device(poll, self._pods))
            if strays != node.strays(node.uses):
                return False
        return not self._has_owner_news(node)

    def _has_owner_news(self, node: NodeState) -> bool:
        owner_of = self._pods.owner
        for interval in node.open.values():
            if interval.pod is None:
                continue
            owner = owner_of(interval.namespace, interval.pod)
            if owner is None or owner is interval.owner:
                continue
            if owner != interval.owner:
                return True
            interval.owner = owner
        return False

    def _take(self, node: NodeState, poll: Poll, *, at_us: int) -> list[Row]:
        """Take in a poll that says something new.

        After the clock was set back, changes count at the last instant before that.
        """
        before = node.sources.get(poll.source)
        since_us = at_us if before is None else max(at_us, before.at_us)
        endings = take(node, poll, at_us=since_us, pods=self._pods, timing=self._timing)
        node.sources[poll.source].at_us = at_us
        return self._settle(node, at_us=since_us, endings=endings)

    def _settle(self, node: NodeState, *, at_us: int, endings: Endings) -> list[Row]:
        settling = self._settling(node, at_us=at_us, endings=endings)
        parts = parts_by_device(node, self._pods)
        devices = set(parts) | {each.device for each in node.open.values()}
        for device in sorted(devices, key=device_order):
            settle_device(settling, device, parts.get(device, ()))
        _prune(node, at_us=at_us)
        node.is_settled = self._is_settled(node)
        self._index_node(node)
        return settling.rows

    def _is_settled(self, node: NodeState) -> bool:
        pods = self._pods
        is_pending = (
            any(
                each.missed_count or pods.is_over(each.holding) for each in node.statements.values()
            )
            or any(each.is_silent for each in node.sources.values())
            or any(each.missed_count for each in node.busy.values())
            or any(0 < each.missed_count < MISSED_POLLS for each in node.missing.values())
        )
        return not is_pending and not node.dark

    def _measure(self, node: NodeState, poll: Poll, *, rows: list[Row]) -> bool:
        """Add what the poll measured, and rows where that is due; return whether it did."""
        is_added, due = measure(node, poll, at_us=micros(poll.at))
        settling = self._settling(node, at_us=micros(poll.at))
        for interval in due:
            settling.tell(interval)
        rows += settling.rows
        return is_added

    def _settling(self, node: NodeState, *, at_us: int, endings: Endings | None = None) -> Settling:
        return Settling(
            cluster=self._cluster,
            node=node,
            at_us=at_us,
            told_us=self._latest_us,
            endings=endings or {},
            pods=self._pods,
            timing=self._timing,
        )

    def _memory_of(self, node: NodeState) -> dict[str, bytes | None]:
        remember: dict[str, bytes | None] = {SEEN + node.node: encoded_seen(node)}
        content = encoded_node(node)
        if content != node.told_memory:
            node.told_memory = content
            remember[NODE + node.node] = content
        return remember

    def _shorten_recent(
        self, node: NodeState, *, namespace: str, pod: str, end: Finished
    ) -> list[Row]:
        """Bring forward the ends of intervals that were closed after the pod was over."""
        settling = self._settling(node, at_us=node.last_us)
        for interval in node.recent:
            is_pod = (interval.namespace, interval.pod) == (namespace, pod) and (
                None in {interval.pod_uid, end.pod_uid} or interval.pod_uid == end.pod_uid
            )
            if is_pod and interval.ended_us is not None and interval.ended_us > end.finished_us:
                interval.ended_us = max(interval.started_us, end.finished_us)
                settling.tell(interval)
        return settling.rows

    def _note_silence(self, node: NodeState, *, now_us: int) -> bool:
        """Mark sources that missed two polls; return whether any is new."""
        is_new = False
        for source, state in node.sources.items():
            is_silent = now_us - state.at_us > self._timing.silence_us
            if is_silent and not state.is_silent and source not in WATCHED:
                state.is_silent = is_new = True
        return is_new

    def _forget_sources(self, node: NodeState, *, now_us: int) -> bool:
        """Forget sources that were silent for long and state nothing; return whether any was."""
        stating = {key[0] for key in node.statements}
        gone = [
            source
            for source, state in node.sources.items()
            if state.is_silent
            and source not in stating
            and now_us - state.at_us > self._timing.unknown_limit_us
        ]
        for source in gone:
            del node.sources[source]
        return bool(gone)

    def _give_up(self, node: NodeState, *, now_us: int) -> Endings:
        """Withdraw what silent sources said too long ago of pods that nobody knows."""
        endings: Endings = {}
        for key, statement in list(node.statements.items()):
            source = node.sources[key[0]]
            if not source.is_silent:
                continue
            if statement.seen_us is None:
                statement.seen_us = source.at_us
            statement.missed_count = max(statement.missed_count, MISSED_POLLS)
            if is_expired(statement, at_us=now_us, pods=self._pods, timing=self._timing):
                ending = ending_of(statement, at_us=now_us, poll_us=self._timing.poll_us)
                add_ending(endings, statement, ending)
                if _is_held(node, statement):
                    since_us = node.dark.get(statement.device, 0)
                    node.dark[statement.device] = max(since_us, ending.at_us)
                del node.statements[key]
        return endings


def _is_held(node: NodeState, statement: Statement) -> bool:
    """Return whether the statement's holder has an open interval on its device."""
    return any(
        is_same_holder(each.holder, statement.holder) for each in node.on_device(statement.device)
    )


def _is_same_said(source: SourceState, poll: Poll) -> bool:
    holdings: Sequence[object] = poll.holdings
    is_same = source.holdings is holdings or source.holdings == tuple(holdings)
    return is_same and (source.devices is poll.devices or source.devices == poll.devices)


def _prune(node: NodeState, *, at_us: int) -> None:
    """Forget what can no longer matter."""
    node.recent = [each for each in node.recent if at_us - (each.ended_us or 0) <= RECENT_US]
    node.floors = {key: us for key, us in node.floors.items() if at_us - us <= RECENT_US}
    stated = [statement.device for statement in node.statements.values()]
    node.alternating = {device for device in node.alternating if stated.count(device) > 1}
