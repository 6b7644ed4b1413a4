"""Reports on fragmentation, fairness, reclaim and value: whole worlds with known answers."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from analytics.reports import fairness, fragmentation, reclaim, value
from analytics.reports.model import Question, Report, ReportDefinition
from analytics.shapes import shapes_json, target_workload
from steward.errors import UsageError
from steward.period import Period
from tests.support.analytics_frames import HOUR, MINUTE, NOON, ONE_HOUR, Row, frames, rows
from tests.support.governance_rows import told
from tests.support.ledger_rows import free, held, ledger


def made(
    definition: ReportDefinition,
    *worlds: Mapping[str, pl.DataFrame],
    by: str | None = None,
    fits: str | None = None,
) -> Report:
    """Return the report on a world of all the frames given, the last of one name counting."""
    given = {name: frame for world in worlds for name, frame in world.items()}
    everything = {**frames(), **given}
    inputs = {name: everything[name] for name in definition.inputs}
    return definition.build(inputs, Question(period=ONE_HOUR, by=by, fits=fits))


def figures(report: Report) -> dict[str, object]:
    return {each.key: each.value for each in report.figures}


def frame(report: Report, key: str) -> pl.DataFrame:
    return next(each.frame for each in report.tables if each.key == key)


def price(model: str = "H100", amount: int = 4_000_000) -> pl.DataFrame:
    row: Row = {
        "price_id": 1,
        "gpu_model": model,
        "amount_micros_per_gpu_hour": amount,
        "currency": "USD",
        "valid_from_at": NOON - HOUR,
        "source": "test",
        "approver": "bob",
        "recorded_at": NOON - HOUR,
        "purchase_type": "on_demand",
        "includes_energy": 1,
        "is_withdrawn": 0,
    }
    schema = frames()["state.price"].schema
    return pl.DataFrame({name: [row.get(name)] for name in schema}, schema=schema, strict=False)


GPUS = [{"device_uuid": f"GPU-{n}", "node": f"n{n // 8 + 1}"} for n in range(16)]
FLEET = {
    "node_history": rows("node_history", {"node": "n1"}, {"node": "n2"}),
    "device_history": rows("device_history", *GPUS),
    "node_place": told("node_place", {"node": "n1"}, {"node": "n2", "rack": None}),
    "workload_current": rows("workload_current", {"gpu_count": 8}, {"workload_uid": "w2"}),
    "workload_standing": told("workload_standing", {"workload_uid": "w1", "gpu_count": 7},
                              {"workload_uid": "w2"}),
    "allocation_history": rows(
        "allocation_history",
        *[{"device_uuid": f"GPU-{n}", "node": "n1", "workload_uid": "w1"} for n in range(7)],
        {"device_uuid": "GPU-8", "node": "n2", "workload_uid": "w2"},
    ),
}  # fmt: skip
"""Eight GPUs on each of two nodes: seven of n1 held by one job, one of n2 by another."""


def test_fragmentation_of_a_known_fleet() -> None:
    found = made(fragmentation.DEFINITION, FLEET)
    said = figures(found)
    assert (said["slots_of_8_count"], said["moves_gain_slot_count"]) == (0, 1)
    assert frame(found, "moves").rows() == [("w1", "team-a", 1.0, "n2", "n1", "c")]
    places = frame(found, "places").filter(pl.col("gang_size") == 1)
    assert dict(places.select("place", "largest_gang_gpu_count").iter_rows()) == {
        "node": 7, "rack": 1, "nvlink_domain": 8, "cluster": 8,
    }  # fmt: skip


def test_a_kept_target_workload_is_used_and_named() -> None:
    one = shapes_json(target_workload(rows("workload_current", {"gpu_count": 1})))
    stored = told("state.target_workload", {"shapes_json": one, "version": "2026w18"})
    found = made(fragmentation.DEFINITION, FLEET, {"state.target_workload": stored})
    assert figures(found)["shapes_version"] == "2026w18"
    assert frame(found, "target")["gpu_count"].to_list() == [1]
    assert "2026w18, kept, learnt from 2026-05-04 11:00" in next(
        each.note for each in found.tables if each.key == "target"
    )
    learnt = figures(made(fragmentation.DEFINITION, FLEET))["shapes_version"]
    assert isinstance(learnt, str)
    assert learnt != "2026w18"


def test_without_requests_there_is_no_version() -> None:
    assert figures(made(fragmentation.DEFINITION))["shapes_version"] is None


@pytest.mark.parametrize(
    ("by", "rows_expected"),
    [
        ("cluster", [("c", 16, 8)]),
        ("model", [("H100", 16, 8)]),
        ("node", [("c", "n2", 8, 7), ("c", "n1", 8, 1)]),
    ],
)
def test_fragmentation_by(by: str, rows_expected: list[tuple[object, ...]]) -> None:
    found = frame(made(fragmentation.DEFINITION, FLEET, by=by), f"by_{by}")
    keys = ["cluster", "node"] if by == "node" else found.columns[:1]
    assert found.select(*keys, "gpu_count", "whole_idle_count").rows() == rows_expected


def test_what_fits_is_asked_and_told() -> None:
    found = made(fragmentation.DEFINITION, FLEET, fits="gpus=8,workers=1")
    assert figures(found)["fits_worker_count"] == 0
    assert frame(found, "fits_blocked").rows() == [("gpus", "too few free GPUs", 2, 2)]
    assert frame(found, "fits_instead").rows() == [
        ("smaller workers, more of them", "workers=8,gpus=1"),
        ("fewer, smaller workers", "workers=1,gpus=7"),
    ]
    small = made(fragmentation.DEFINITION, FLEET, fits="gpus=4,model=H100")
    assert frame(small, "fits").rows() == [("c", "n2", "H100", 1)]


def test_what_is_no_request_is_refused() -> None:
    with pytest.raises(UsageError, match="'gpu=8'"):
        made(fragmentation.DEFINITION, FLEET, fits="gpu=8")


STRANDED = ledger(
    free(stranded=2, reason="no_shape_fits"),
    free(stranded=1, reason="no_shape_fits", model="T4"),
    free(stranded=1, reason="mig_geometry", model="A100"),
    free(free_idle=4),
)


def test_stranded_time_and_its_cost() -> None:
    found = made(fragmentation.DEFINITION, {"ledger": STRANDED, "state.price": price()})
    assert figures(found)["stranded_gpu_hours"] == 4
    assert frame(found, "stranded").rows() == [
        ("mig_geometry", 1.0, 0.125, None, None, 0.0),
        ("no_shape_fits", 3.0, 0.375, "8.00", "USD", 2 / 3),
    ]


def test_without_a_price_there_is_no_cost() -> None:
    found = made(fragmentation.DEFINITION, {"ledger": STRANDED})
    assert frame(found, "stranded")["cost"].to_list() == [None, None]


def test_without_a_ledger_nothing_is_known_of_stranded_time() -> None:
    assert figures(made(fragmentation.DEFINITION))["stranded_gpu_hours"] is None
    none = made(fragmentation.DEFINITION, {"ledger": ledger(free(free_idle=1))})
    assert figures(none)["stranded_gpu_hours"] == 0


def test_a_board_cut_into_instances_is_no_whole_gpu() -> None:
    cut = rows("device_history", {}, {"instance_id": 1, "mig_profile": "3g.40gb"},
               {"device_uuid": "GPU-b"})  # fmt: skip
    found = made(
        fragmentation.DEFINITION,
        {"node_history": rows("node_history", {}), "device_history": cut},
    )
    assert figures(found)["largest_gang_gpu_count"] == 1
    assert frame(found, "mig_room").height == 7


def quota(tenant: str, used: float, **given: object) -> Row:
    return {"tenant_id": tenant, "queue": f"{tenant}-queue", "used_gpu_count": used, **given}


SHARED = {
    "quota_use": told("quota_use", quota("a", 4.0, pending_workload_count=1), quota("b", 12.0)),
    "ledger": ledger(
        held(tenant_id="a", queue="a-queue", used=4, idle=0),
        held(tenant_id="b", queue="b-queue", used=4, idle=8),
    ),
}
"""Both are promised eight GPUs; a uses four of them and waits, b twelve, a third of them well."""


@pytest.mark.parametrize(("by", "names"), [(None, "ab"), ("team", "ab"), ("queue", "ab")])
def test_fairness_of_two_teams(by: str | None, names: str) -> None:
    found = made(fairness.DEFINITION, SHARED, by=by)
    first, second = (f"{name}-queue" if by == "queue" else name for name in names)
    said = figures(found)
    assert said["lent_gpu_hours"] == said["starved_gpu_hours"] == 4
    assert said["guaranteed_gpu_hours"] == said["quota_used_gpu_hours"] == 16
    assert frame(found, "lending").rows() == [(second, first, 4.0)]
    assert frame(found, "starvation").rows() == [(first, second, 4.0)]
    shares = frame(found, "fair_share")
    assert shares["allocated_share_ratio"].to_list() == pytest.approx([0.25, 0.75])
    assert shares["effective_share_ratio"].to_list() == pytest.approx([0.5, 0.5])
    assert said["jain_allocated_ratio"] == pytest.approx(0.8)
    assert said["jain_effective_ratio"] == pytest.approx(1.0)
    starved = f"{first} waited within its own guarantee while {second} borrowed up to 4.0 GPU-hours"
    assert found.findings == (f"{starved} of it.",)


def test_more_promised_than_there_is() -> None:
    small = {**SHARED, "ledger": ledger(held(tenant_id="a", used=4), free(free_idle=4))}
    assert "Guarantees add up to 200.0 % of capacity: they cannot all be kept at once." in (
        made(fairness.DEFINITION, small).findings
    )


def test_without_quota_it_says_so_and_shows_no_zero() -> None:
    found = made(fairness.DEFINITION, {"ledger": SHARED["ledger"]})
    said = figures(found)
    assert {said[key] for key in said if not key.startswith("jain")} == {None}
    assert found.findings == (
        "No quota is recorded: there is no promised share to compare use with.",
    )


@pytest.mark.parametrize(
    ("zone", "hours"),
    [
        pytest.param("UTC", [24], id="UTC"),
        pytest.param("Asia/Shanghai", [16, 40], id="east"),
        pytest.param("Europe/Berlin", [23, 46], id="the day with 23 hours"),
    ],
)
def test_use_fades_by_days_of_the_zone(zone: str, hours: list[int]) -> None:
    start = datetime(2026, 3, 28, tzinfo=UTC)
    period = Period(start, start + timedelta(days=2))
    cuts = fairness.days({}, Question(period=period, time_zone=zone))
    assert [(cut - start) / HOUR for cut in cuts] == hours


JUDGED = {
    "verdict_history": told("verdict_history", {}),
    "state.action": told("state.action", {"recorded_at": NOON + 30 * MINUTE}),
    "allocation_history": rows("allocation_history", {"ended_at": NOON + 30 * MINUTE}),
    "workload_standing": told("workload_standing", {}),
}


@pytest.mark.parametrize(
    ("by", "name"), [(None, "team-a"), ("team", "team-a"), ("class", "training")]
)
def test_reclaim_of_one_workload(by: str | None, name: str) -> None:
    found = made(reclaim.DEFINITION, JUDGED, by=by)
    said = figures(found)
    assert (said["detected_count"], said["reclaimed_count"]) == (1, 1)
    assert (said["judged_idle_gpu_hours"], said["idle_to_reclaimed_s"]) == (0.5, 1_800)
    assert said["reused_gpu_hours"] == 0
    assert (said["reused_ratio"], said["regret_ratio"]) == (None, None)
    assert frame(found, f"by_{by or 'team'}").row(0)[:4] == (name, 1, 0, 1)


def test_what_idle_cases_cost_and_what_was_won_back() -> None:
    """Half an hour of one H100 judged idle; then others hold half of it for half an hour."""
    other = {"workload_uid": "w2", "started_at": NOON + 30 * MINUTE, "gpu_share_ratio": 0.5}
    allocations = rows("allocation_history", {"ended_at": NOON + 30 * MINUTE}, other)
    world = {**JUDGED, "allocation_history": allocations}
    devices = {
        "device_history": rows("device_history", {}),
        "node_history": rows("node_history", {}),
    }
    found = made(reclaim.DEFINITION, world, devices, {"state.price": price()})
    assert frame(found, "money").rows() == [
        ("judged_idle", "team-a", "USD", "2.00"),
        ("reused", "team-a", "USD", "1.00"),
    ]


def test_a_price_that_changes_meanwhile_counts_from_its_instant() -> None:
    devices = {
        "device_history": rows("device_history", {}),
        "node_history": rows("node_history", {}),
    }
    later = price(amount=8_000_000).with_columns(
        price_id=pl.lit(2, dtype=pl.Int64), valid_from_at=pl.lit(NOON + 15 * MINUTE)
    )
    both = pl.concat([price(), later.cast(price().schema)])
    found = made(reclaim.DEFINITION, JUDGED, devices, {"state.price": both})
    assert frame(found, "money")["cost"].to_list() == ["3.00"]


def test_what_was_reclaimed_before_the_period_is_priced_from_its_start() -> None:
    """Reclaimed half an hour before, slow to let go; others hold half of it until half past."""
    own = {"started_at": NOON - HOUR, "ended_at": NOON + 10 * MINUTE}
    other = {"workload_uid": "w2", "started_at": NOON - 20 * MINUTE,
             "ended_at": NOON + 30 * MINUTE, "gpu_share_ratio": 0.5}  # fmt: skip
    world = {
        "verdict_history": told("verdict_history", {"judged_at": NOON - HOUR}),
        "state.action": told("state.action", {"recorded_at": NOON - 30 * MINUTE}),
        "allocation_history": rows("allocation_history", own, other),
        "workload_standing": told("workload_standing", {}),
        "device_history": rows("device_history", {}),
        "node_history": rows("node_history", {}),
        "state.price": price(),
    }
    found = made(reclaim.DEFINITION, world)
    assert frame(found, "money").rows() == [("reused", "team-a", "USD", "1.00")]


def test_gpus_without_a_price_have_no_money() -> None:
    found = made(reclaim.DEFINITION, JUDGED, {"state.price": price(model="T4")})
    assert frame(found, "money").is_empty()
    assert "money" not in {each.key for each in made(reclaim.DEFINITION, JUDGED).tables}


def test_without_verdicts_nothing_is_told() -> None:
    found = made(reclaim.DEFINITION)
    assert set(figures(found).values()) == {None}
    assert found.findings[0].startswith("No verdict is recorded")


def test_without_actions_what_was_idle_is_told() -> None:
    found = made(reclaim.DEFINITION, {**JUDGED, "state.action": told("state.action")})
    said = figures(found)
    assert (said["detected_count"], said["reclaimed_count"]) == (1, None)
    assert (said["judged_idle_gpu_hours"], said["reused_gpu_hours"]) == (0.5, None)
    assert found.findings[0].startswith("No action is recorded")


def step(name: str, after: timedelta, **given: object) -> Row:
    return {"cluster": "c", "transition": name, "occurred_at": NOON + after, **given}


VALUED = {
    **FLEET,
    "workload_standing": told(
        "workload_standing",
        {"workload_uid": "w1", "priority_class": "best-effort"},
        {"workload_uid": "w2"},
        {"workload_uid": "w3", "priority_class": "production"},
    ),
    "transition_history": rows(
        "transition_history",
        step("created", timedelta(0), workload_uid="w3"),
        step("started", 30 * MINUTE, workload_uid="w3"),
        step("preempted", 45 * MINUTE, workload_uid="w3", reason="InCohortReclamation"),
    ),
    "ledger": ledger(held(priority_class="production", used=1), held(used=3)),
}


def test_value_of_a_known_fleet() -> None:
    found = made(value.DEFINITION, VALUED)
    said = figures(found)
    assert said["critical_started_in_time_ratio"] == 0
    assert (said["critical_workload_count"], said["critical_interruption_count"]) == (1, 1)
    assert said["lower_while_critical_waits_gpu_hours"] == 4.0
    assert frame(found, "occupancy").select("value_level", "held_gpu_hours").rows() == [
        ("critical", 1.0),
        ("normal", 3.0),
    ]
    assert found.findings[0] == (
        "1 critical workloads did not start within their objective: 0.0 % did."
    )


def test_a_declared_objective_counts() -> None:
    said = told(
        "state.business_value",
        {"scope_kind": "priority_class", "scope_key": "production", "value_level": "critical",
         "start_objective_s": 1_800},
    )  # fmt: skip
    found = made(value.DEFINITION, VALUED, {"state.business_value": said})
    assert figures(found)["critical_started_in_time_ratio"] == 1
    assert not any("No business value" in each for each in found.findings)


def test_without_transitions_nothing_is_told() -> None:
    assert set(figures(made(value.DEFINITION)).values()) == {None}
