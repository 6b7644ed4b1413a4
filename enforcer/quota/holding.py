"""Who holds more, or longer, than one person may: found for the owner and the ladder, never killed.

Caps count per owner, queue and cluster. The oldest holdings keep their place; what came last is
beyond the cap. A workload without a known owner counts for nobody.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from enforcer.facts import Workload
from enforcer.quota.model import ANY, HoldingCap, QuotaFile

TOO_MANY_WORKLOADS: Final = "owner_workload_cap"
TOO_MANY_GPUS: Final = "owner_gpu_cap"
HELD_TOO_LONG: Final = "held_too_long"
_EXACT: Final = 1e-9
"""Shares of GPUs are sums of binary fractions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Excess:
    """One workload beyond a cap."""

    workload_uid: str
    tenant_id: str | None
    owner: str | None
    reason: str
    sentence: str
    """For the owner."""


def excesses(
    file: QuotaFile, workloads: Iterable[Workload], *, now: datetime
) -> tuple[Excess, ...]:
    """Return what is beyond the caps, ascending by uid and reason.

    Args:
        file: the caps.
        workloads: all of the cluster; those that still wait hold nothing.
        now: until when holding counts.
    """
    holding = sorted(
        (one for one in workloads if not one.is_pending),
        key=lambda each: (each.admitted_at or each.created_at, each.uid),
    )
    found: list[Excess] = []
    for cap in file.caps:
        of_class = [one for one in holding if cap.workload_class in (ANY, one.workload_class)]
        found.extend(_too_long(cap, of_class, now))
        by_owner: dict[tuple[str, str, str], list[Workload]] = defaultdict(list)
        for one in of_class:
            if one.owner is not None:
                by_owner[one.cluster, one.queue or "", one.owner].append(one)
        for (_cluster, queue, owner), theirs in by_owner.items():
            found.extend(_beyond(cap, theirs, queue=queue, owner=owner))
    return tuple(sorted(found, key=lambda each: (each.workload_uid, each.reason)))


def _too_long(cap: HoldingCap, holding: Sequence[Workload], now: datetime) -> Iterable[Excess]:
    if cap.longest is None:
        return
    for one in holding:
        if one.admitted_at is not None and now - one.admitted_at > cap.longest:
            sentence = f"held since {one.admitted_at:%Y-%m-%d %H:%M} UTC, longer than {cap.longest}"
            yield _excess(one, HELD_TOO_LONG, sentence)


def _beyond(
    cap: HoldingCap, theirs: Sequence[Workload], *, queue: str, owner: str
) -> Iterable[Excess]:
    """Yield the newest workloads of one owner that do not fit under the cap."""
    where = f"in queue {queue}" if queue else "outside any queue"
    gpus = 0.0
    for number, one in enumerate(theirs, start=1):
        gpus += one.gpu_count
        most = cap.per_owner_workload_count
        if most is not None and number > most:
            sentence = f"{owner} holds {number} workloads {where}; {most} are allowed"
            yield _excess(one, TOO_MANY_WORKLOADS, sentence)
        limit = cap.per_owner_gpu_count
        if limit is not None and gpus > limit + _EXACT:
            sentence = f"{owner} holds {gpus:g} GPUs {where}; {limit} are allowed"
            yield _excess(one, TOO_MANY_GPUS, sentence)


def _excess(one: Workload, reason: str, sentence: str) -> Excess:
    return Excess(
        workload_uid=one.uid,
        tenant_id=one.tenant_id,
        owner=one.owner,
        reason=reason,
        sentence=sentence,
    )
