"""Laws of the lifecycle: nothing twice, nothing missing, whatever restarts in between."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from collector.sources.kubernetes.objects import Pod
from collector.sources.kubernetes.resources import PODS
from tests.support.lifecycle_drive import Drive, settled
from tests.support.lifecycle_histories import History, clusters, interleaved

LIVES = settings(max_examples=60, deadline=None)


def counted(
    rows: Iterable[tuple[str, Mapping[str, object]]], *, without: Iterable[str] = ()
) -> Counter[str]:
    """Return how often each row was told, the time of observation apart."""
    left_out = {"observed_at", "deleted_at", *without}
    return Counter(
        f"{table} {json.dumps({k: str(v) for k, v in row.items() if k not in left_out})}"
        for table, row in rows
    )


def shown(history: History) -> Drive:
    """Return a drive that watched all of it."""
    drive = settled()
    for step in history:
        step.show(drive)
    return drive


@LIVES
@given(st.data())
def test_restarts_add_nothing_and_lose_nothing(data: st.DataObject) -> None:
    history = data.draw(clusters().flatmap(interleaved))
    restarts = set(data.draw(st.lists(st.integers(0, len(history)), max_size=4)))
    drive = settled()
    for index, step in enumerate(history):
        if index in restarts:
            drive.restart(seen_s=step.seen_s)
        step.show(drive)
    assert counted(drive.rows) == counted(shown(history).rows)


@LIVES
@given(clusters().flatmap(interleaved))
def test_storm_of_relists_adds_nothing(history: History) -> None:
    drive = shown(history)
    before = len(drive.rows)
    for _ in range(3):
        drive.restart(seen_s=10_000)
    assert drive.rows[before:] == []


@LIVES
@given(st.data())
def test_order_of_unrelated_changes_does_not_matter(data: st.DataObject) -> None:
    histories = data.draw(clusters())
    first = shown(data.draw(interleaved(histories)))
    second = shown(data.draw(interleaved(histories)))
    assert counted(first.rows) == counted(second.rows)
    assert first.memory == second.memory


@LIVES
@given(st.data())
def test_outages_double_nothing_and_the_end_is_known(data: st.DataObject) -> None:
    history = data.draw(clusters().flatmap(interleaved))
    first = data.draw(st.integers(0, len(history)))
    last = data.draw(st.integers(first, len(history)))
    drive = settled()
    for step in history[:first]:
        step.show(drive)
    for step in history[first:last]:
        step.hide(drive) if _is_possible(drive, step) else None
    drive.restart(seen_s=history[-1].seen_s)
    for step in history[last:]:
        step.show(drive)
    _assert_told_once(drive)
    _assert_every_pod_is_known(drive)


def _is_possible(drive: Drive, step: Any) -> bool:  # noqa: ANN401 - a Step
    return step.body is not None or (step.resource.name, step.uid) in drive.objects


def _assert_told_once(drive: Drive) -> None:
    """No transition of a pod, no created and no attempt's beginning is told twice."""
    columns = ("workload_uid", "pod_uid", "attempt", "transition")
    told = Counter(
        row
        for row in drive.table("workload_transition", *columns)
        if row[3] in {"created", "requeued", "scheduled", "started", "ready", "quota_reserved"}
    )
    assert all(count == 1 for count in told.values()), told
    changes = Counter(
        drive.table("condition_change", "object_uid", "condition", "status", "occurred_at")
    )
    assert all(count == 1 for count in changes.values()), changes


def _assert_every_pod_is_known(drive: Drive) -> None:
    """The last row of each pod says what the server says."""
    last = {row[0]: row[1:] for row in drive.table("pod", "pod_uid", "phase", "node", "deleted_at")}
    for (name, uid), (_, found) in drive.objects.items():
        if name == PODS.name:
            assert isinstance(found, Pod)
            assert last[uid] == (found.status.phase, found.spec.node_name, None)
    gone = [uid for uid in last if (PODS.name, str(uid)) not in drive.objects]
    assert all(last[uid][2] is not None for uid in gone)
