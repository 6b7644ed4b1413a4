"""What Kueue decides about a workload: quota, admission, eviction and the way back to the queue.

Kueue keeps one condition of each type with its last change only, so each change is read against
what was told before. See the Workload API of Kueue, ``status.conditions``.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from collector.lifecycle.chains import Chain
from collector.lifecycle.conditions import find, find_true
from collector.lifecycle.memory import RunEntry
from collector.lifecycle.pod_facts import Incident
from collector.lifecycle.runs import KUEUE, Run, Runs
from collector.sources.kubernetes.objects import Condition
from collector.sources.kubernetes.objects_workloads import KueueWorkload

UNOBSERVED: Final = "Unobserved"
"""Reason of an eviction that is known only by what came after it."""
_BY_PREEMPTION: Final = "Preempted"
_NO_END: Final = frozenset({"WorkloadSliceReplaced", "OutOfSync"})
"""Reasons of a finished Workload in whose place comes another of the same job."""


def open_queued(runs: Runs, chain: Chain, workload: KueueWorkload) -> Run:
    """Return the run of a Kueue Workload; where it is new, begin with the attempt it is in.

    Attempts before the collector came are counted but not told: their times are lost.
    """
    known, created = runs.get(chain.run.uid), workload.metadata.creation_timestamp
    at = runs.now if created is None else created
    past = _past_eviction_count(workload)
    conditions = workload.status.conditions if workload.status is not None else None
    is_evicted = find_true(conditions, "Evicted") is not None
    if known is not None or past == 0 or (past == 1 and is_evicted):
        return known or runs.open(chain, at=at)
    run = runs.open(chain, at=at, is_created=False)
    runs.skip_attempts(run, past - 1)
    if not is_evicted:
        run.entry.over_at, run.entry.over_by = run.entry.opened_at, KUEUE
    return run


def _past_eviction_count(workload: KueueWorkload) -> int:
    """Return how often Kueue says that it evicted the workload."""
    status = workload.status
    if status is None:
        return 0
    stats = status.scheduling_stats
    counted = sum(each.count for each in (stats.evictions or ())) if stats is not None else 0
    known = 1 if find(status.conditions, "Evicted") is not None else 0
    return max(counted, known)


def tell_admission(runs: Runs, run: Run, workload: KueueWorkload, *, is_whole: bool) -> None:
    """Tell what is new in a Kueue Workload's conditions, in order of time.

    Args:
        runs: where it is told.
        run: what the Workload stands for.
        workload: as it now is.
        is_whole: False where it stands for one pod of several: its end is not the run's.
    """
    run.entry.is_queued = True
    conditions = workload.status.conditions if workload.status is not None else None
    _tell_missed_eviction(runs, run, conditions)
    if run.entry.over_at is None:
        _tell_progress(runs, run, conditions, until=_evicted_now(conditions))
        _tell_eviction(runs, run, conditions)
    else:
        _take_over(run, conditions)
    if run.entry.over_by == KUEUE and run.entry.over_at is not None:
        _tell_requeue(runs, run, conditions)
    if run.entry.over_at is None:
        _tell_progress(runs, run, conditions, until=None)
    finished = _dated(find_true(conditions, "Finished"))
    if finished is not None and is_whole and finished.reason not in _NO_END:
        runs.finish(run, finished)
    runs.save(run)


def _tell_progress(
    runs: Runs, run: Run, conditions: Iterable[Condition] | None, *, until: datetime | None
) -> None:
    """Tell quota and admission that the current attempt got, up to an eviction."""
    entry = run.entry
    reserved = _dated(find_true(conditions, "QuotaReserved"))
    if reserved is not None and entry.quota_at is None and _is_of_attempt(reserved, entry, until):
        entry.quota_at = reserved.at
        runs.tell(run, "quota_reserved", reserved)
    admitted = _dated(find_true(conditions, "Admitted"))
    is_told = entry.admitted_at is not None
    if admitted is not None and not is_told and _is_of_attempt(admitted, entry, until):
        entry.admitted_at = admitted.at
        runs.tell(run, "admitted", admitted)


def _is_of_attempt(what: Incident, entry: RunEntry, until: datetime | None) -> bool:
    is_after = entry.evicted_at is None or what.at >= entry.evicted_at
    return is_after and (until is None or what.at <= until)


def _evicted_now(conditions: Iterable[Condition] | None) -> datetime | None:
    evicted = find_true(conditions, "Evicted")
    return None if evicted is None else evicted.last_transition_time


def _tell_eviction(runs: Runs, run: Run, conditions: Iterable[Condition] | None) -> None:
    evicted = _dated(find_true(conditions, "Evicted"))
    entry = run.entry
    if evicted is None or (entry.evicted_at is not None and evicted.at <= entry.evicted_at):
        return
    entry.evicted_at = evicted.at
    if evicted.reason != _BY_PREEMPTION:
        runs.end_attempt(run, "evicted", evicted, by=KUEUE)
        return
    cause = find_true(conditions, "Preempted")
    reason = cause.reason if cause is not None and cause.reason else evicted.reason
    what = Incident(at=evicted.at, reason=reason, message=evicted.message)
    runs.end_attempt(run, "preempted", what, by=KUEUE)


def _take_over(run: Run, conditions: Iterable[Condition] | None) -> None:
    """Note that Kueue evicted what a lost pod had ended already: it says when it goes on."""
    evicted, entry = _evicted_now(conditions), run.entry
    is_news = entry.evicted_at is None or (evicted is not None and evicted > entry.evicted_at)
    if evicted is not None and is_news:
        entry.evicted_at, entry.over_by = evicted, KUEUE


def _tell_missed_eviction(runs: Runs, run: Run, conditions: Iterable[Condition] | None) -> None:
    """Tell an eviction of which only the next reservation is left to see."""
    entry = run.entry
    reserved = _dated(find_true(conditions, "QuotaReserved"))
    if entry.quota_at is None or entry.over_at is not None or reserved is None:
        return
    if reserved.at <= entry.quota_at:
        return
    requeued = _dated(find_true(conditions, "Requeued"))
    is_between = requeued is not None and entry.quota_at <= requeued.at <= reserved.at
    at = requeued.at if requeued is not None and is_between else reserved.at
    evicted = find(conditions, "Evicted")
    message = evicted.message if evicted is not None else None
    entry.evicted_at = at
    what = Incident(at=at, reason=UNOBSERVED, message=message)
    runs.end_attempt(run, "evicted", what, by=KUEUE)


def _tell_requeue(runs: Runs, run: Run, conditions: Iterable[Condition] | None) -> None:
    """Begin the next attempt once Kueue has taken the quota back and queues the workload."""
    over_at = run.entry.over_at
    requeued, reserved = find(conditions, "Requeued"), find(conditions, "QuotaReserved")
    has_quota = reserved is not None and reserved.status == "True"
    is_backing_off = requeued is not None and requeued.status == "False"
    is_held = find_true(conditions, "Evicted") is not None if has_quota else is_backing_off
    if over_at is None or is_held:
        return
    times = [
        each.last_transition_time
        for each in (requeued, reserved)
        if each is not None and each.last_transition_time is not None
    ]
    later = [at for at in times if at >= over_at]
    if later:
        at = min(later) if has_quota else max(later)
        reason = requeued.reason if requeued is not None and requeued.reason else "Requeued"
        message = requeued.message if requeued is not None else None
        runs.next_attempt(run, Incident(at=at, reason=reason, message=message))


def _dated(condition: Condition | None) -> Incident | None:
    if condition is None or condition.last_transition_time is None:
        return None
    return Incident(
        at=condition.last_transition_time,
        reason=condition.reason or "",
        message=condition.message,
    )
