"""Which jobs did work with what they held."""

from __future__ import annotations

import polars as pl
import pytest

from analytics import efficiency
from analytics.inventory import current_devices
from analytics.reports import efficiency as report
from analytics.reports.model import Question, Report
from steward.errors import UsageError
from tests.support.analytics_frames import HOUR, NOON, ONE_HOUR, Row, frames, rows
from tests.support.ledger_rows import free, held, ledger

BOARDS = rows("device_history", {"memory_total_bytes": 80})


def jobs(*given: Row, boards: pl.DataFrame = BOARDS) -> pl.DataFrame:
    return efficiency.jobs(ledger(*given), current_devices(boards, rows("node_history", {})))


def made(*given: Row, by: str | None = None) -> Report:
    idle: Row = {"cluster": "c", "node": "n1", "device_uuid": "GPU-a", "tenant_id": "team-a",
                 "workload_uid": "w1", "is_idle": True, "started_at": NOON,
                 "ended_at": NOON + HOUR / 4, "gpu_share_ratio": 1.0}  # fmt: skip
    world = frames(
        ledger=ledger(*given),
        device_history=BOARDS,
        workload_current=rows("workload_current", {"name": "llama"}),
    )
    world["rest"] = pl.DataFrame([idle], schema=world["rest"].schema)
    inputs = {name: world[name] for name in report.DEFINITION.inputs}
    return report.build(inputs, Question(period=ONE_HOUR, by=by))


def test_rank_by_waste_stands_beside_rank_by_efficiency() -> None:
    found = jobs(
        held(workload_uid="big", used=90, idle=10),
        held(workload_uid="small", used=1, ineffective=4),
        held(workload_uid="silent", unknown=50),
    )
    columns = ("workload_uid", "wasted_gpu_hours", "utilization_ratio", "waste_rank",
               "efficiency_rank")  # fmt: skip
    assert found.select(columns).rows() == [
        ("big", 10.0, 0.9, 1, 1),
        ("small", 4.0, 0.2, 2, 2),
        ("silent", None, None, None, None),
    ]


@pytest.mark.parametrize(
    ("given", "zero", "coverage"),
    [
        pytest.param([held(used=2)], 0.0, 1.0, id="zero: never at rest"),
        pytest.param([held(unknown=2)], None, 0.0, id="null: use unknown"),
        pytest.param([held(idle=1), held(unknown=1)], 1.0, 0.5, id="both"),
    ],
)
def test_gpu_hours_at_zero(given: list[Row], zero: float | None, coverage: float) -> None:
    (found,) = jobs(*given).to_dicts()
    assert (found["zero_gpu_hours"], found["coverage_ratio"]) == (zero, coverage)


def test_how_use_is_known_is_said() -> None:
    (found,) = jobs(
        held(used=1), held(used_estimated=1, tier=2), held(unknown=1, tier=4), held(unknown=1)
    ).to_dicts()
    assert found["tiers"] == "1+2"


@pytest.mark.parametrize(
    ("boards", "peak", "share"),
    [
        pytest.param(BOARDS, 40, 0.5, id="half"),
        pytest.param(BOARDS, 0, 0.0, id="zero"),
        pytest.param(BOARDS, None, None, id="peak not read"),
        pytest.param(rows("device_history", {"memory_total_bytes": None}), 40, None, id="unknown"),
        pytest.param(
            rows("device_history", {"memory_total_bytes": 80},
                 {"memory_total_bytes": 40, "device_uuid": "GPU-b"}),
            40, None, id="boards of two sizes",
        ),
    ],
)  # fmt: skip
def test_peak_memory(boards: pl.DataFrame, peak: int | None, share: float | None) -> None:
    found = jobs(held(used=1, memory_peak_bytes=peak), boards=boards)
    assert found["memory_peak_ratio"].to_list() == [share]


def test_free_time_is_of_no_job() -> None:
    assert jobs(free(free_idle=1), free(reserved_unused=1, tenant_id="team-a")).is_empty()


def test_the_report_names_jobs_and_their_longest_rest() -> None:
    found = made(held(used=0.05, idle=0.95), held(workload_uid="w2", unknown=1, owner="bob"))
    (first, second) = found.tables[0].frame.to_dicts()
    assert (first["namespace"], first["name"], first["longest_idle_s"]) == ("team-a", "llama", 900)
    assert (second["name"], second["longest_idle_s"]) == (None, None)
    assert second["idle_spell_count"] is None
    assert found.findings == (
        "llama of team-a held 1.0 GPU-hours and used 5.0 % of them.",
    )  # fmt: skip


def test_teams_and_users_add_up_to_the_jobs() -> None:
    found = made(
        held(used=1, idle=1),
        held(workload_uid="w2", idle=3, owner="bob"),
        held(workload_uid="w3", unknown=1, owner="bob"),
    )
    by_key = {table.key: table.frame for table in found.tables}
    columns = ("job_count", "wasted_gpu_hours", "utilization_ratio", "coverage_ratio")
    assert by_key["by_tenant"].select("tenant_id", *columns).rows() == [
        ("team-a", 3, 4.0, 0.2, pytest.approx(5 / 6))
    ]
    assert by_key["by_user"].select("owner", *columns).rows() == [
        ("bob", 2, 3.0, 0.0, 0.75),
        ("ann", 1, 1.0, 0.5, 1.0),
    ]


@pytest.mark.parametrize(
    ("given", "wasted", "coverage"),
    [
        pytest.param([held(used=2)], 0.0, 1.0, id="zero: nothing wasted"),
        pytest.param([held(unknown=2)], None, 0.0, id="null: no use known"),
        pytest.param([held(used=1), held(workload_uid="w2", unknown=1)], 0.0, 0.5, id="both"),
    ],
)
def test_waste_of_a_holder(given: list[Row], wasted: float | None, coverage: float) -> None:
    (found,) = efficiency.holders(jobs(*given), "tenant_id").to_dicts()
    assert (found["wasted_gpu_hours"], found["coverage_ratio"]) == (wasted, coverage)


def test_only_what_jobs_have_may_group_them() -> None:
    assert [table.key for table in made(held(used=1), by="user").tables] == ["jobs", "by_user"]
    with pytest.raises(UsageError, match="cannot group by 'node'"):
        made(held(used=1), by="node")
