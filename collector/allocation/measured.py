"""How much of a shared device each holder really used, where every one of them is measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from collector.allocation.polls import DeviceUse, Poll
from collector.allocation.state import Interval, NodeState
from collector.holdings import DeviceKey
from steward.units import MICROS_PER_SECOND, SECONDS_PER_MINUTE

TELL_AFTER_US: Final = 5 * SECONDS_PER_MINUTE * MICROS_PER_SECOND
TELL_DRIFT_RATIO: Final = 0.02
"""A split that moved by more than this is told again, at most every five minutes."""


def measure(node: NodeState, poll: Poll, *, at_us: int) -> tuple[bool, list[Interval]]:
    """Add a poll's measurements to the intervals they speak of.

    Returns:
        whether anything was added, and the intervals whose split moved enough since it was told
        to be told again; on a device either all or none
    """
    by_device: dict[DeviceKey, list[DeviceUse]] = {}
    for use in poll.uses or ():
        if use.core_ratio is not None:
            by_device.setdefault((use.device_uuid, use.instance_id), []).append(use)
    is_added = False
    due: list[Interval] = []
    for device, uses in by_device.items():
        intervals = [each for each in node.on_device(device) if each.pod is not None]
        if _add(intervals, uses):
            is_added = True
            due.extend(intervals if any(_is_due(each, at_us) for each in intervals) else ())
    return is_added, due


def _add(intervals: Sequence[Interval], uses: Sequence[DeviceUse]) -> bool:
    """Add one poll's split of one device; return whether every holder was measured."""
    holders = [each.holder for each in intervals]
    if len(set(holders)) < 2:
        return False
    measured = [_core_ratio(each, uses) for each in intervals]
    known = [ratio for ratio in measured if ratio is not None]
    if len(known) < len(intervals):
        return False
    parts = [ratio / holders.count(holder) for ratio, holder in zip(known, holders, strict=True)]
    whole, total = sum(each.share_ratio for each in intervals), sum(parts)
    for interval, part in zip(intervals, parts, strict=True):
        interval.measured_sum += whole * part / total if total > 0 else interval.share_ratio
        interval.measured_count += 1
    return True


def _core_ratio(interval: Interval, uses: Sequence[DeviceUse]) -> float | None:
    """Return what the interval's container used; None where that was not measured."""
    own = [use.core_ratio for use in uses if use.core_ratio is not None and _is_of(use, interval)]
    return sum(own) if own else None


def _is_of(use: DeviceUse, interval: Interval) -> bool:
    if use.pod is None:
        return use.pod_uid is not None and use.pod_uid == interval.pod_uid
    is_container = use.container is None or use.container == interval.container
    return is_container and (use.namespace, use.pod) == (interval.namespace, interval.pod)


def _is_due(interval: Interval, at_us: int) -> bool:
    drift = abs(interval.final_share_ratio - interval.told_share_ratio)
    return drift >= TELL_DRIFT_RATIO and at_us - interval.told_us >= TELL_AFTER_US
