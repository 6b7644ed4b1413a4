"""From polls to the report: intervals in a real warehouse, joined with readings by time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import polars as pl
import pytest

from analytics.reports import utilization
from analytics.reports.model import Question
from collector.tables import rows_table
from dashboard.reports.load import frames
from sql.warehouse import EmbeddedWarehouse, open_embedded
from steward.ids import new_batch_id
from steward.period import Period
from tests.support.allocation_story import GPU, POLL_S, TEN, Story, at, boards, holding, owner

HOUR = Period(TEN, TEN + timedelta(hours=1))
STEP = int(POLL_S)
WORKING = {"busy_ratio": 1.0, "sm_active_ratio": 0.8, "tensor_active_ratio": 0.465,
           "dram_active_ratio": 0.1}  # fmt: skip
RESTING = dict.fromkeys(WORKING, 0.0)
BY_OVERLAP = """
with held as (
    select pod, started_at, coalesce(ended_at, timestamptz '2026-05-04 11:00:00+00') as ended_at,
           gpu_share_ratio
    from allocation
    where pod is not null
    qualify row_number() over (
        partition by device_uuid, replica, pod, started_at order by observed_at desc
    ) = 1
)

select held.pod, round(sum(epoch(
           least(held.ended_at, device_sample.sampled_at)
           - greatest(held.started_at, device_sample.sampled_at - interval 15 seconds)
       ) * held.gpu_share_ratio * device_sample.busy_ratio), 3) as busy_s
from device_sample
join held
    on held.started_at < device_sample.sampled_at
    and held.ended_at > device_sample.sampled_at - interval 15 seconds
group by held.pod
order by held.pod
"""
"""What each pod kept busy, in GPU-seconds: readings stand for the 15 seconds before them."""


def told_hour() -> Story:
    """Return an hour of one GPU: an init container, a pod, nobody, two pods that share it.

    The first pod finishes at 10:30 and is listed for five more minutes, which is told late; the
    collector restarts at 10:20; owners become known at 10:10.
    """
    story = Story()
    story.polls(range(0, 300, STEP), busy=boards(GPU))
    story.polls(range(300, 600, STEP), holding(), busy=boards(GPU))
    story.owners.by_pod = {
        "pod-1": owner("vision", pod_uid="u1", workload_uid="w1"),
        "a": owner("vision", pod_uid="u2", workload_uid="w2"),
        "b": owner("speech", pod_uid="u3", workload_uid="w3"),
    }
    story.polls(range(600, 1200, STEP), holding(), busy=boards(GPU))
    story.restart()
    story.polls(range(1200, 2100, STEP), holding(), busy=frozenset())
    story.finish(1800, pod_uid="u1")
    story.polls(range(2100, 2700, STEP), busy=frozenset())
    shared = [
        holding(pod, replica=number, resource="nvidia.com/gpu.shared")
        for number, pod in enumerate("ab")
    ]
    story.polls(range(2700, 3601, STEP), *shared, busy=boards(GPU))
    return story


@pytest.fixture
def warehouse(tmp_path: Path) -> Iterator[EmbeddedWarehouse]:
    with closing(open_embedded(tmp_path)) as opened:
        for name, rows in stored_rows().items():
            opened.append(name, rows_table(name, rows), batch_id=new_batch_id())
        yield opened


def stored_rows() -> dict[str, list[dict[str, object]]]:
    """Return the rows by table; the GPU works but from 10:30 to 10:45."""
    where = {"cluster": "c", "node": "n1"}
    seen = {**where, "observed_at": TEN, "source": "test"}
    device = {**where, "device_uuid": GPU, "source": "test"}
    return {
        "node": [{**seen, "gpu_count": 1, "is_schedulable": True}],
        "device": [{**device, "observed_at": TEN, "is_present": True}],
        "device_sample": [
            {**device, "sampled_at": at(second), **(RESTING if 1800 < second <= 2700 else WORKING)}
            for second in range(0, 3601, STEP)
        ],
        "allocation": told_hour().rows,
    }


def test_readings_join_intervals_by_overlap_and_are_not_doubled(
    warehouse: EmbeddedWarehouse,
) -> None:
    found = pl.DataFrame(warehouse.sql(BY_OVERLAP))
    assert found.rows() == [("a", 450.0), ("b", 450.0), ("pod-1", 1500.0)]


def test_the_report_says_where_the_hour_went(warehouse: EmbeddedWarehouse) -> None:
    asked = Question(period=HOUR)
    rows = frames(warehouse, utilization.DEFINITION, asked)
    report = utilization.build(rows, asked)
    leaves = next(each.frame for each in report.tables if each.key == "leaves")
    hours = dict(leaves.select("leaf", "gpu_hours").filter(pl.col("gpu_hours") > 0).rows())
    assert hours == pytest.approx(
        {
            "used": 2700 / 3600 * 0.5,
            "allocated_idle": 2700 / 3600 * 0.5,
            "free_idle": 900 / 3600,
        }
    )
    tenants = next(each.frame for each in report.tables if each.key == "by_tenant")
    assert dict(tenants.select("tenant_id", "held_gpu_hours").rows()) == pytest.approx(
        {"vision": (1500 + 450) / 3600, "speech": 450 / 3600, None: 300 / 3600}
    )
    nobody = next(each for each in report.figures if each.key == "unattributed_gpu_hours")
    assert nobody.value == pytest.approx(300 / 3600)
