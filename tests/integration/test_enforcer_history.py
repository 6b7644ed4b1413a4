"""From a real warehouse and its state to a snapshot and a decision."""

from __future__ import annotations

from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from enforcer.decisions import Step, Verdict
from enforcer.history import history
from enforcer.policies.decide import decide
from enforcer.policies.shipped import default_policy
from enforcer.snapshot import build
from sql.warehouse import EmbeddedWarehouse, open_embedded
from steward.errors import QueryError
from steward.ids import BatchId
from steward.period import Period
from tests.support.enforcer_world import CLUSTER, HOUR, MINUTE, START, WORKING, World

NOW = START + 5 * HOUR


def told() -> World:
    """Return an hour of work and four hours of rest, with a leave for the second workload."""
    world = World().node().job("GPU-a").job("GPU-b", uid="w2")
    for uuid in ("GPU-a", "GPU-b"):
        world.reads(uuid, until_at=START + HOUR, **WORKING)
        world.reads(uuid, from_at=START + HOUR, until_at=NOW)
    return world


def text(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def fill(warehouse: EmbeddedWarehouse, world: World) -> None:
    for table, frame in world.frames().items():
        warehouse.append(table, frame, batch_id=BatchId(table))
    leave = {
        "scope_kind": "workload",
        "scope_key": "w2",
        "policy": "*",
        "reason": "demo",
        "approver": "lead",
        "valid_from_at": text(START),
        "valid_until_at": text(NOW + timedelta(days=1)),
        "recorded_at": text(START),
    }
    warehouse.state_append([("exemption", leave)], seen={})


def test_a_real_warehouse_gives_the_facts_of_a_decision(tmp_path: Path) -> None:
    policies = [default_policy()]
    with closing(open_embedded(tmp_path)) as warehouse:
        fill(warehouse, told())
        period = Period(START, NOW)
        known = history(warehouse, warehouse, period, cluster=CLUSTER)
    snapshot = build(known, policies, now=NOW + timedelta(seconds=30))
    first, second = decide(snapshot, policies, snapshot.taken_at)
    assert (first.judgement.verdict, first.withheld_step) == (Verdict.IDLE, Step.NOTIFY)
    assert timedelta(seconds=first.judgement.observed_idle_s) == 4 * HOUR
    assert (second.step, second.withheld_step) == (None, None)
    assert snapshot.health.telemetry_at == NOW - MINUTE


def test_another_cluster_is_not_seen(tmp_path: Path) -> None:
    with closing(open_embedded(tmp_path)) as warehouse:
        fill(warehouse, told())
        known = history(warehouse, warehouse, Period(START, NOW), cluster="other")
    snapshot = build(known, [default_policy()], now=NOW)
    assert (snapshot.workloads, snapshot.rooms, snapshot.health.telemetry_at) == ((), (), None)


@pytest.mark.parametrize("cell_s", [60, 300])
def test_longer_cells_tell_the_same_verdicts(tmp_path: Path, cell_s: int) -> None:
    with closing(open_embedded(tmp_path)) as warehouse:
        fill(warehouse, told())
        known = history(warehouse, warehouse, Period(START, NOW), cluster=CLUSTER, cell_s=cell_s)
    snapshot = build(known, [default_policy()], now=NOW)
    decisions = decide(snapshot, [default_policy()], snapshot.taken_at)
    assert [each.judgement.verdict for each in decisions] == [Verdict.IDLE, Verdict.IDLE]
    for each in decisions:
        idle = timedelta(seconds=each.judgement.observed_idle_s)
        assert 4 * HOUR - timedelta(seconds=cell_s) <= idle <= 4 * HOUR


def test_a_cell_length_is_a_whole_number(tmp_path: Path) -> None:
    ends = {"from_at": START, "until_at": NOW, "cell_s": "60"}
    with closing(open_embedded(tmp_path)) as warehouse:
        with pytest.raises(QueryError, match="cell_s"):
            warehouse.query("evidence_sample", ends)
        assert warehouse.query("evidence_sample", {**ends, "cell_s": 60}).num_rows == 0


def test_no_rows_at_all_are_an_empty_snapshot(tmp_path: Path) -> None:
    with closing(open_embedded(tmp_path)) as warehouse:
        known = history(warehouse, warehouse, Period(START, NOW), cluster=CLUSTER)
    snapshot = build(known, [default_policy()], now=NOW)
    assert snapshot.workloads == ()
    assert pl.DataFrame(known.readings.ordered).is_empty()
