"""The page to read first: decisions with money and evidence, components with targets."""

from __future__ import annotations

from datetime import timedelta

import polars as pl
import pytest

from analytics.inputs import SCHEMAS
from analytics.reports.health import DEFINITION, build
from analytics.reports.health_components import TARGETS, Target, status
from analytics.reports.model import Figure, Question, Report
from steward.period import Period
from tests.support.analytics_frames import HOUR, MINUTE, NOON, ONE_HOUR, Row, frames, rows
from tests.support.ledger_rows import free, held, ledger


def price(**given: object) -> pl.DataFrame:
    row: dict[str, object] = {
        "price_id": 1, "gpu_model": "H100", "amount_micros_per_gpu_hour": 2_500_000,
        "currency": "USD", "valid_from_at": NOON - HOUR, "recorded_at": NOON - HOUR,
        "purchase_type": "on_demand", "includes_energy": 1, "is_withdrawn": 0,
        "source": "list", "approver": "cfo", **given,
    }  # fmt: skip
    return pl.DataFrame([row], schema=SCHEMAS["state.price"])


def resting(minutes: float = 60) -> pl.DataFrame:
    row = {"cluster": "c", "node": "n1", "device_uuid": "GPU-a", "tenant_id": "team-a",
           "workload_uid": "w1", "is_idle": True, "started_at": NOON,
           "ended_at": NOON + minutes * MINUTE, "gpu_share_ratio": 1.0}  # fmt: skip
    return pl.DataFrame([row], schema=SCHEMAS["rest"])


def made(*given: Row, period: Period = ONE_HOUR, currency: str | None = None,
         prices: pl.DataFrame | None = None, **others: pl.DataFrame) -> Report:  # fmt: skip
    world = frames(
        ledger=ledger(*given),
        **{"workload_current": rows("workload_current", {"name": "llama"}), **others},
    )
    if prices is not None:
        world["state.price"] = prices
    inputs = {name: world[name] for name in DEFINITION.inputs}
    return build(inputs, Question(period=period, currency=currency))


def table(found: Report, key: str) -> list[dict[str, object]]:
    return next(each.frame for each in found.tables if each.key == key).to_dicts()


def component(found: Report, key: str) -> dict[str, object]:
    return next(row for row in table(found, "components") if row["key"] == key)


PATHOLOGIES = (
    held(used=6, idle=4),
    free(stranded=2, reason="no_shape_fits"),
    free(reserved_unused=1, tenant_id="team-b", queue="b"),
    free(free_idle=3),
)


def test_the_page_leads_with_three_decisions_and_their_money() -> None:
    found = made(*PATHOLOGIES, rest=resting(), prices=price())
    assert [each.key for each in found.tables][:2] == ["decisions", "components"]
    columns = ("rank", "kind", "gpu_hours", "money", "currency", "row_count", "coverage_ratio")
    assert [tuple(row[name] for name in columns) for row in table(found, "decisions")] == [
        (1, "reclaim_idle", 4.0, "10.00", "USD", 1, 1.0),
        (2, "defragment", 2.0, "5.00", "USD", 1, None),
        (3, "lend_reserved", 1.0, "2.50", "USD", 1, None),
    ]
    assert found.findings[0] == (
        "Reclaim GPUs that 1 job held idle: 4.0 GPU-hours, 10.00 USD; 1 spell of 10 minutes or "
        "more at rest; most: team-a/llama 4.0 GPU-hours."
    )


def test_without_a_price_there_are_gpu_hours_and_no_money() -> None:
    found = made(*PATHOLOGIES, rest=resting())
    assert [row["money"] for row in table(found, "decisions")] == [None] * 3
    assert [row["gpu_hours"] for row in table(found, "decisions")] == [4.0, 2.0, 1.0]
    assert "(no price known)" in found.findings[0]
    assert [row["kind"] for row in table(found, "other_decisions")] == ["record_prices"]


@pytest.mark.parametrize(
    ("currency", "money"),
    [
        pytest.param(None, "10.00", id="the currency of the prices"),
        pytest.param("USD", "10.00", id="the same by name"),
        pytest.param("CNY", None, id="another: nothing is converted"),
    ],
)
def test_money_is_in_one_currency(currency: str | None, money: str | None) -> None:
    found = made(
        *PATHOLOGIES, rest=resting(), currency=currency, prices=price()
    )  # fmt: skip
    assert table(found, "decisions")[0]["money"] == money


def test_a_short_rest_is_no_decision() -> None:
    found = made(*PATHOLOGIES, rest=resting(9.9), prices=price())
    kinds = [row["kind"] for row in table(found, "decisions")]
    assert "reclaim_idle" not in kinds


def test_a_fleet_in_order_needs_no_decision() -> None:
    found = made(held(used=9), free(free_idle=1), prices=price())
    assert table(found, "decisions") == []
    assert found.findings == ()


def test_prices_cut_the_ledger() -> None:
    state = {**frames(), "state.price": price(valid_from_at=NOON + MINUTE)}
    assert DEFINITION.cuts(state, Question(period=ONE_HOUR)) == (NOON + MINUTE,)


def test_every_component_shows_value_target_coverage_and_status() -> None:
    found = table(made(*PATHOLOGIES), "components")
    assert [row["key"] for row in found] == [target.key for target in TARGETS]
    assert {row["status"] for row in found} <= {"ok", "below target", "unknown"}
    assert all(row["target"] and row["reason"] for row in found)


@pytest.mark.parametrize(
    ("given", "value", "stands"),
    [
        pytest.param([held(idle=1)], "0.0 %", "below target", id="zero is measured"),
        pytest.param([held(unknown=1)], None, "unknown", id="null is not zero"),
        pytest.param([held(used=1), held(unknown=1)], "100.0 %", "unknown", id="half is too thin"),
        pytest.param([held(used=1)], "100.0 %", "ok", id="all known"),
    ],
)
def test_effective_utilisation_as_a_component(
    given: list[Row], value: str | None, stands: str
) -> None:
    found = component(made(*given), "effective_ratio")
    assert (found["value"], found["status"]) == (value, stands)


@pytest.mark.parametrize(
    ("read_at", "stands"),
    [
        pytest.param(NOON + 51 * MINUTE, "ok", id="younger than the target"),
        pytest.param(NOON + 50 * MINUTE, "ok", id="exactly as old"),
        pytest.param(NOON + 49 * MINUTE, "below target", id="older"),
    ],
)
def test_the_age_of_data_is_that_of_the_oldest_target(read_at: object, stands: str) -> None:
    scrapes = rows(
        "scrape_health",
        {"last_scraped_at": NOON + HOUR},
        {"target": "n2:9400", "last_scraped_at": read_at},
    )
    assert component(made(held(used=1), scrape_health=scrapes), "data_age_s")["status"] == stands


def test_no_event_is_good_news_only_where_something_was_watched() -> None:
    assert component(made(held(used=1)), "xid_event_count")["status"] == "ok"
    assert component(made(), "xid_event_count")["status"] == "unknown"


def test_lost_profiling_is_counted() -> None:
    events = rows("device_event_history", {"kind": "profiling_lost", "occurred_at": NOON})
    found = made(held(used=1), device_event_history=events)
    assert component(found, "profiling_lost_event_count")["status"] == "below target"
    assert any(text == "Losses of profiling metrics in this period: 1." for text in found.findings)


def figure(value: float | None, coverage_ratio: float | None) -> Figure:
    return Figure(key="k_ratio", title="", value=value, unit="ratio",
                  coverage_ratio=coverage_ratio, definition="", rows="ledger")  # fmt: skip


@pytest.mark.parametrize(
    ("value", "coverage", "at_least", "at_most"),
    [
        pytest.param(0.49, 1.0, "below target", "ok", id="just below"),
        pytest.param(0.50, 1.0, "ok", "ok", id="exactly at"),
        pytest.param(0.51, 1.0, "ok", "below target", id="just past"),
        pytest.param(0.51, None, "ok", "below target", id="coverage does not apply"),
        pytest.param(0.51, 0.8, "ok", "below target", id="just covered enough"),
        pytest.param(0.51, 0.79, "unknown", "unknown", id="covered too little"),
        pytest.param(None, 1.0, "unknown", "unknown", id="no value"),
    ],
)
def test_status(value: float | None, coverage: float | None, at_least: str, at_most: str) -> None:
    found = figure(value, coverage)
    told = [
        status(Target(key="k_ratio", value=0.5, is_least=is_least, reason=""), found)
        for is_least in (True, False)
    ]
    assert told == [at_least, at_most]


@pytest.mark.parametrize(
    ("waited", "stands"),
    [
        pytest.param(9 * MINUTE, "ok", id="inside the objective"),
        pytest.param(10 * MINUTE, "ok", id="exactly at it"),
        pytest.param(11 * MINUTE, "below target", id="past it"),
        pytest.param(None, "below target", id="never started"),
    ],
)
def test_critical_work_starts_in_time(waited: timedelta | None, stands: str) -> None:
    work = {"cluster": "c", "workload_uid": "w1", "priority_class": "production"}
    steps: list[Row] = [{"occurred_at": NOON}]
    if waited is not None:
        steps.append({"occurred_at": NOON + waited, "transition": "scheduled"})
    found = made(
        held(used=1),
        transition_history=rows("transition_history", *steps),
        workload_standing=pl.DataFrame([work], schema=SCHEMAS["workload_standing"]),
    )
    assert component(found, "critical_protection_ratio")["status"] == stands


def test_without_critical_work_its_protection_is_unknown() -> None:
    assert component(made(held(used=1)), "critical_protection_ratio")["status"] == "unknown"
