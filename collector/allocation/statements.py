"""Takes a poll into what is remembered of its node: who is stated, missed and withdrawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from collector.allocation.placement import place_by_processes, uids_by_device
from collector.allocation.pods import Pods
from collector.allocation.polls import Holder, Poll, is_same_holder
from collector.allocation.state import (
    COMPLETE,
    MISSED_POLLS,
    WATCHED,
    Ending,
    EndKey,
    NodeState,
    SourceState,
    Statement,
    StatementKey,
    Timing,
    Trace,
)
from collector.holdings import DeviceKey, Holding, HoldingSource

Endings: TypeAlias = dict[EndKey, Ending]


def statement_key(holding: Holding) -> StatementKey:
    """Return what tells a statement from every other of its node."""
    holder = Holder(holding.namespace, holding.pod, holding.container)
    return holding.source, holding.device_uuid, holding.instance_id, holding.replica, holder


@dataclass(slots=True, kw_only=True)
class Taking:
    """One poll being taken in."""

    node: NodeState
    poll: Poll
    at_us: int
    previous_us: int
    """The source's poll before this one; this one where there is none."""
    pods: Pods
    timing: Timing

    @property
    def is_after_silence(self) -> bool:
        """Return whether the source was silent for two polls or more."""
        silence_us = self.at_us - self.previous_us
        return self.poll.source not in WATCHED and silence_us > self.timing.silence_us

    def covers(self, device: DeviceKey) -> bool:
        """Return whether the poll speaks of the device."""
        return self.poll.devices is None or device in self.poll.devices


def take(node: NodeState, poll: Poll, *, at_us: int, pods: Pods, timing: Timing) -> Endings:
    """Remember a poll and return when the holdings ended that it withdraws."""
    before = node.sources.get(poll.source)
    taking = Taking(
        node=node,
        poll=poll,
        at_us=at_us,
        previous_us=at_us if before is None else min(before.at_us, at_us),
        pods=pods,
        timing=timing,
    )
    node.sm_shares.update(poll.sm_shares)
    endings = _take_holdings(taking)
    _take_devices(taking)
    if poll.busy is not None:
        endings.update(_take_busy(taking, poll.busy))
    if poll.uses is not None:
        node.uses = uids_by_device(poll, pods)
    place_by_processes(node, pods)
    node.sources[poll.source] = SourceState(
        at_us=at_us,
        holdings=tuple(poll.holdings),
        devices=poll.devices,
        has_named=bool(poll.holdings) or (before is not None and before.has_named),
    )
    return endings


def _take_holdings(taking: Taking) -> Endings:
    node, poll = taking.node, taking.poll
    said = {
        statement_key(each): each
        for each in poll.holdings
        if not each.is_admin_access and each.node == poll.node
    }
    endings: Endings = {}
    own = [pair for pair in node.statements.items() if pair[0][0] is poll.source]
    for key, statement in own:
        if key not in said:
            ending = _miss(taking, statement)
            if ending is not None:
                add_ending(endings, statement, ending)
                del node.statements[key]
                if poll.source in WATCHED:
                    _drop_unheard(node, statement)
    for key, holding in said.items():
        known = node.statements.get(key)
        if known is None:
            node.statements[key] = Statement(holding=holding, since_us=taking.at_us)
        else:
            _see(taking, known)
            known.holding = holding
    return endings


def add_ending(endings: Endings, statement: Statement, ending: Ending) -> None:
    """Add when a holder's statement ended; of several shares of one device the last end counts."""
    key = (statement.device, statement.holder)
    known = endings.get(key)
    if known is None or known.at_us < ending.at_us:
        endings[key] = ending


def _drop_unheard(node: NodeState, withdrawn: Statement) -> None:
    """Drop what others, no longer heard, said of a holding that the API server took back."""
    for key, other in list(node.statements.items()):
        is_same = other.device == withdrawn.device and is_same_holder(
            other.holder, withdrawn.holder
        )
        if is_same and node.is_unknown(other):
            del node.statements[key]


def _see(taking: Taking, statement: Statement) -> None:
    """Note a statement that is made again."""
    if statement.missed_count and taking.poll.source not in COMPLETE:
        _note_alternation(taking, statement)
    statement.seen_us, statement.missed_count, statement.dark_until_us = None, 0, None


def _note_alternation(taking: Taking, statement: Statement) -> None:
    """Note that a label names several holders in turn: this one is back, another just left.

    A shared device without numbered replicas is labelled with whichever holder came last.
    """
    holding = statement.holding
    if holding.replica is not None:
        return
    for other in taking.node.statements.values():
        if (
            other.holding.source is holding.source
            and other.device == statement.device
            and other.holder != statement.holder
            and other.missed_count == 1
            and other.seen_us == taking.previous_us
        ):
            taking.node.alternating.add(statement.device)


def _miss(taking: Taking, statement: Statement) -> Ending | None:
    """Note that a statement is not made again; return its end where that withdraws it."""
    if statement.seen_us is None:
        statement.seen_us = taking.previous_us
    if taking.is_after_silence and statement.seen_us == taking.previous_us:
        statement.dark_until_us = taking.at_us
    statement.missed_count += 1
    if taking.poll.source in COMPLETE and taking.covers(statement.device):
        if taking.poll.source in WATCHED:
            return Ending(at_us=taking.at_us)
        return ending_of(statement, at_us=taking.at_us, poll_us=taking.timing.poll_us)
    if is_expired(statement, at_us=taking.at_us, pods=taking.pods, timing=taking.timing):
        return ending_of(statement, at_us=taking.at_us, poll_us=taking.timing.poll_us)
    return None


def ending_of(statement: Statement, *, at_us: int, poll_us: int) -> Ending:
    """Return the end of a statement that is no longer made: a poll after it was last seen."""
    if statement.seen_us is None:
        return Ending(at_us=at_us)
    end_us = min(at_us, statement.seen_us + poll_us)
    return Ending(at_us=end_us, dark_until_us=statement.dark_until_us)


def is_expired(statement: Statement, *, at_us: int, pods: Pods, timing: Timing) -> bool:
    """Return whether a holding was unknown for too long, and the cluster knows no such pod."""
    if statement.seen_us is None or statement.missed_count < MISSED_POLLS:
        return False
    is_long = at_us - statement.seen_us > timing.unknown_limit_us
    return is_long and not pods.is_alive(statement.holding)


def _take_devices(taking: Taking) -> None:
    """Note which devices exist, and which of them this poll does not show."""
    node, shown = taking.node, taking.poll.devices
    if taking.poll.source is HoldingSource.DRA:
        node.listed = shown or frozenset()
        node.missing = {key: each for key, each in node.missing.items() if key in node.listed}
        return
    if shown is None:
        node.dark.clear()
        return
    boards = {uuid for uuid, _ in shown}
    node.dark = {key: since for key, since in node.dark.items() if key[0] not in boards}
    for device in node.listed:
        trace = node.missing.get(device)
        if device[0] in boards:
            node.missing[device] = Trace(since_us=taking.at_us, seen_us=taking.at_us)
        elif trace is None:
            node.missing[device] = Trace(
                since_us=taking.at_us, seen_us=taking.at_us, missed_count=1
            )
        else:
            if not trace.missed_count:
                trace.since_us = taking.previous_us + taking.timing.poll_us
            trace.missed_count += 1


def _take_busy(taking: Taking, busy: frozenset[DeviceKey]) -> Endings:
    """Note which devices work that nobody held; one quiet poll is not the end of it."""
    node, endings = taking.node, Endings()
    traces = node.busy = {
        device: trace for device, trace in node.busy.items() if node.unheld(frozenset((device,)))
    }
    for device in node.unheld(busy):
        since_us = traces[device].since_us if device in traces else taking.at_us
        traces[device] = Trace(since_us=since_us, seen_us=taking.at_us)
    for device in [each for each in traces if each not in busy and taking.covers(each)]:
        trace = traces[device]
        if not trace.missed_count:
            trace.seen_us = taking.previous_us
        trace.missed_count += 1
        if trace.missed_count >= MISSED_POLLS:
            end_us = min(taking.at_us, trace.seen_us + taking.timing.poll_us)
            endings[device, None] = Ending(at_us=end_us)
            del traces[device]
    return endings
