"""Ends, starts and corrects the intervals of one device so that they say who holds it now.

Intervals of one share never overlap and shares of one device never add up to more than it: what
comes or goes cuts all that stay, at one instant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from collector.allocation.pods import Pods
from collector.allocation.polls import Holder, Row, is_same_holder
from collector.allocation.resolve import UNOBSERVED, Part, conflict_text, nobody
from collector.allocation.rows import row_of
from collector.allocation.sharing import SharingMode, Wanted, wanted
from collector.allocation.state import (
    PRECEDENCE,
    Ending,
    EndKey,
    Interval,
    NodeState,
    ShareKey,
    Statement,
    Timing,
)
from collector.allocation.statements import ending_of
from collector.holdings import DeviceKey
from collector.ownership import Owner

_SAME_SHARE: Final = 1e-9
_RANKS: Final = {str(source): rank for source, rank in PRECEDENCE.items()}


@dataclass(slots=True, kw_only=True)
class Settling:
    """One round of a node: what is known of ends, and the rows it gives."""

    cluster: str
    node: NodeState
    at_us: int
    """Starts of what is new."""
    told_us: int
    """``observed_at`` of the rows."""
    endings: Mapping[EndKey, Ending]
    pods: Pods
    timing: Timing
    rows: list[Row] = field(default_factory=list)

    def tell(self, interval: Interval) -> None:
        """Add a row for the interval as it is now, later than every row before it."""
        interval.told_us = max(self.told_us, interval.told_us + 1)
        interval.told_share_ratio = interval.final_share_ratio
        if interval.measured_count:
            interval.sharing_mode = SharingMode.SHARED_MEASURED
        self.rows.append(row_of(interval, cluster=self.cluster, node=self.node.node))

    def end_of(self, interval: Interval) -> Ending:
        """Return when an interval that is no longer wanted ended."""
        told = [
            ending
            for (device, ended), ending in self.endings.items()
            if device == interval.device and is_same_holder(ended, interval.holder)
        ]
        if any(ending.is_certain for ending in told):
            return told[0]
        seen = [
            ending_of(each, at_us=self._seen_or_now(each), poll_us=self.timing.poll_us)
            for each in self.node.statements.values()
            if is_same_holder(each.holder, interval.holder) and interval.device in each.devices
        ]
        return max(
            [*told, *seen], key=lambda ending: ending.at_us, default=Ending(at_us=self.at_us)
        )

    def _seen_or_now(self, statement: Statement) -> int:
        """Return up to when a statement speaks for its holder."""
        source = self.node.sources[statement.holding.source]
        if statement.seen_us is None and source.is_silent:
            return min(self.at_us, source.at_us + self.timing.poll_us)
        return self.at_us


def settle_device(settling: Settling, device: DeviceKey, parts: Sequence[Part]) -> None:
    """Make the open intervals of a device say what its parts say."""
    node = settling.node
    before = node.on_device(device)
    wants = wanted(device, parts, before=before, sm_shares=node.sm_shares)
    _Change(settling=settling, device=device, before=before, wants=wants).apply()


@dataclass(slots=True, kw_only=True)
class _Change:
    """The way from the open intervals of one device to the wanted ones."""

    settling: Settling
    device: DeviceKey
    before: list[Interval]
    wants: list[Wanted]
    _stays: list[tuple[Interval, Wanted]] = field(default_factory=list)
    _ends: dict[Holder | None, Ending] = field(default_factory=dict)
    _starts: list[tuple[Wanted, int, Interval | None]] = field(default_factory=list)

    def apply(self) -> None:
        """End, correct and start, in this order: a number given up can be given again."""
        staying = self._match()
        leaving = {each.key: each for each in self.before if each.key not in staying}
        joining = [each for each in self.wants if (*self.device, each.replica) not in staying]
        moves, new = _moves(leaving, joining)
        for old, _ in moves:
            del leaving[old.key]
        self._ends = {each.holder: self._end_of(each) for each in leaving.values()}
        cut_us = self._cut(is_joined=not all(self._was_there(each) for each in new))
        for each in leaving.values():
            self._close(each, min(self._ends[each.holder].at_us, cut_us))
        for interval, want in self._stays:
            self._keep(interval, want, cut_us=cut_us)
        for old, want in moves:
            self._recut(old, want, cut_us=cut_us)
        if len(leaving) == len(self.before):
            self._tell_dark()
        for want in new:
            start_us = cut_us if self._was_there(want) else self._start_of(want.part)
            self._starts.append((want, start_us, None))
        for want, start_us, old_interval in self._starts:
            self._open(want, start_us=start_us, before=old_interval)

    def _was_there(self, want: Wanted) -> bool:
        """Return whether the holder had a share of the device before."""
        return any(is_same_holder(each.holder, want.part.holder) for each in self.before)

    def _end_of(self, interval: Interval) -> Ending:
        """Return when an interval ends; one whose holder goes on ends at the poll that tells."""
        if any(_is_same(interval, want.part) for want in self.wants):
            return Ending(at_us=self.settling.at_us)
        return self.settling.end_of(interval)

    def _match(self) -> set[ShareKey]:
        """Note which intervals go on under their number, and return their keys."""
        by_replica = {each.replica: each for each in self.wants}
        for interval in self.before:
            want = by_replica.get(interval.replica)
            if want is not None and _is_same(interval, want.part):
                self._stays.append((interval, want))
        return {interval.key for interval, _ in self._stays}

    def _start_of(self, part: Part) -> int:
        return self.settling.at_us if part.since_us is None else part.since_us

    def _cut(self, *, is_joined: bool) -> int:
        """Return when the split of those that stay changes."""
        instants = [ending.at_us for ending in self._ends.values()]
        return (
            max(instants) if instants and not is_joined else max([*instants, self.settling.at_us])
        )

    def _keep(self, interval: Interval, want: Wanted, *, cut_us: int) -> None:
        """Correct an interval in place, or cut it where its share changes."""
        is_same_share = abs(interval.share_ratio - want.share_ratio) < _SAME_SHARE
        if is_same_share:
            self._correct(interval, want)
        else:
            self._recut(interval, want, cut_us=cut_us)

    def _recut(self, old: Interval, want: Wanted, *, cut_us: int) -> None:
        """End an interval and go on with another share or number.

        What ended before the interval began corrects it from its beginning.
        """
        started_us = old.started_us
        if cut_us <= started_us and old.replica == want.replica:
            old.share_ratio = want.share_ratio
            old.measured_sum, old.measured_count = 0.0, 0
            self._correct(old, want, is_due=True)
            return
        self._close(old, cut_us)
        self._starts.append((want, max(cut_us, started_us), old))

    def _correct(self, interval: Interval, want: Wanted, *, is_due: bool = False) -> None:
        """Take over what is now known of an interval, and tell it where it differs."""
        part = want.part
        conflict = conflict_text(want.conflicts)
        is_measured = interval.measured_count > 0
        mode = interval.sharing_mode if is_measured else str(want.sharing_mode)
        facts = (conflict, part.claim or interval.claim, part.resource or interval.resource, mode)
        is_due |= facts != (
            interval.conflict, interval.claim, interval.resource, interval.sharing_mode
        )  # fmt: skip
        interval.conflict, interval.claim, interval.resource, interval.sharing_mode = facts
        if _is_better(part.source, interval.source):
            interval.source, interval.is_attributed, is_due = part.source, part.is_attributed, True
        is_due |= self._take_owner(interval, part.pod_uid)
        if is_due:
            self.settling.tell(interval)

    def _take_owner(self, interval: Interval, pod_uid: str | None) -> bool:
        is_new = take_owner(interval, self.settling.pods)
        if interval.pod_uid is None and pod_uid is not None:
            interval.pod_uid, is_new = pod_uid, True
        return is_new

    def _close(self, interval: Interval, end_us: int) -> None:
        node = self.settling.node
        interval.ended_us = max(interval.started_us, end_us)
        del node.open[interval.key]
        node.floors[self.device] = max(node.floors.get(self.device, 0), interval.ended_us)
        node.recent.append(interval)
        self.settling.tell(interval)

    def _open(self, want: Wanted, *, start_us: int, before: Interval | None = None) -> None:
        part, node = want.part, self.settling.node
        uuid, instance_id = self.device
        namespace, pod, container = part.holder or (None, None, None)
        interval = Interval(
            device_uuid=uuid,
            instance_id=instance_id,
            replica=want.replica,
            started_us=max(start_us, node.floors.get(self.device, 0)),
            namespace=namespace,
            pod=pod,
            container=container,
            pod_uid=part.pod_uid,
            share_ratio=want.share_ratio,
            sharing_mode=want.sharing_mode,
            source=part.source,
            claim=part.claim,
            resource=part.resource,
            conflict=conflict_text(want.conflicts),
            is_attributed=part.is_attributed,
            owner=None if before is None else before.owner,
        )
        for each in node.recent:
            if each.key == interval.key and each.started_us == interval.started_us:
                interval.told_us = max(interval.told_us, each.told_us)
        take_owner(interval, self.settling.pods)
        node.open[interval.key] = interval
        self.settling.tell(interval)

    def _tell_dark(self) -> None:
        """Tell the time between the last sighting of the holders and the first look after it."""
        for ending in self._ends.values():
            until_us = ending.dark_until_us
            if until_us is not None and until_us > ending.at_us:
                part = nobody(UNOBSERVED)
                (want,) = wanted(
                    self.device, [part], before=(), sm_shares=self.settling.node.sm_shares
                )
                self._open(want, start_us=ending.at_us)
                self._close(self.settling.node.open[*self.device, None], until_us)
                return


def _moves(
    leaving: Mapping[ShareKey, Interval], joining: Sequence[Wanted]
) -> tuple[list[tuple[Interval, Wanted]], list[Wanted]]:
    """Return which intervals go on under another number, each once, and what is new."""
    free = list(leaving.values())
    moves: list[tuple[Interval, Wanted]] = []
    new: list[Wanted] = []
    for want in joining:
        old = next((each for each in free if _is_same(each, want.part)), None)
        if old is None:
            new.append(want)
        else:
            free.remove(old)
            moves.append((old, want))
    return moves, new


def take_owner(interval: Interval, pods: Pods) -> bool:
    """Take over what is now known of the holder's owner; return whether that is news.

    What was known stays known when the cluster forgets the pod.
    """
    if interval.pod is None:
        return False
    owner = pods.owner(interval.namespace, interval.pod)
    if owner is None or owner is interval.owner or not _is_pod(interval, owner):
        return False
    is_new = owner != interval.owner
    interval.owner = owner
    if owner.pod_uid is not None:
        interval.pod_uid = owner.pod_uid
    return is_new


def _is_pod(interval: Interval, owner: Owner) -> bool:
    return None in {interval.pod_uid, owner.pod_uid} or interval.pod_uid == owner.pod_uid


def _is_same(interval: Interval, part: Part) -> bool:
    """Return whether a part goes on with an interval: the same container of the same pod."""
    if not is_same_holder(interval.holder, part.holder):
        return False
    if part.holder is None:
        return bool(interval.conflict) and _kind(interval.conflict) == part.conflicts[0]
    return None in {interval.pod_uid, part.pod_uid} or interval.pod_uid == part.pod_uid


def _kind(conflict: str | None) -> str:
    return (conflict or "").partition(";")[0]


def _is_better(source: str, than: str) -> bool:
    """Return whether a source is more trusted than the one that stated the interval so far."""
    return source != than and _rank(source) < _rank(than)


def _rank(source: str) -> int:
    return _RANKS.get(source, len(_RANKS))
