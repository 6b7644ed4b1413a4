"""What users of other tools complained of, each with the number that would have been right."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Final

import msgspec
import polars as pl
import pytest

from analytics.bookkeeping import BOOK_ROWS
from analytics.cost.assets import (
    GpuCount,
    component_rates,
    node_cost,
    node_price,
    physical_share,
)
from analytics.cost.charge import charge, costs
from analytics.cost.costing import cost_instants, costing
from analytics.cost.days import days, midnights, with_day
from analytics.cost.energy import Draw, energy_cost
from analytics.cost.idle import Allocated, Asset, Level, idle_cost
from analytics.cost.rounding import money_text, parts_of, units_of
from analytics.cost.settle import IDLE, Line, Rules, settle
from analytics.cost.shares import even_use, replica_shares
from analytics.cost.split import SplitRule
from analytics.cost.statement import Heading, statement, text_of
from analytics.usage import gpu_hours
from collector.lifecycle.requests import request_of
from collector.sources.kubernetes.objects import PodSpec
from steward.calendar_period import period_from
from steward.period import Period
from tests.support.analytics_frames import HOUR, NOON
from tests.support.cost_cases import EARLY, at_rate, booked, history, money, prices
from tests.support.kubernetes_objects import pod_spec
from tests.support.ledger_rows import free, held, ledger
from tests.support.price_rows import closed, money_frames, price

RAM_GIB: Final = Fraction("15.3246")
NODE: Final = {"cpu": 4, "ram": RAM_GIB, "gpu": 1}


@pytest.mark.parametrize(
    ("cpu", "ram", "gpu", "node"),
    [
        pytest.param(1, 1, 1, Fraction("20.3246"), id="all ones"),
        pytest.param(1, 2, 3, Fraction("37.6492"), id="one two three"),
    ],
)
def test_c01_custom_prices_do_not_shrink_when_a_gpu_appears(
    cpu: int, ram: int, gpu: int, node: Fraction
) -> None:
    base = {"cpu": cpu, "ram": ram, "gpu": gpu}
    rates = component_rates(base, NODE, node_price=None)
    assert rates == base
    assert node_cost(base, NODE) == node
    assert rates["cpu"] != Fraction(1) / node


def test_c02_equal_nodes_cost_the_same_at_prices_of_one() -> None:
    ones = {"cpu": 1, "ram": 1, "gpu": 1}
    told = idle_cost(
        [Asset(cluster="c", node=node, costs=NODE) for node in ("a40", "a6000")],
        (),
        level=Level.NODE,
    )
    assert component_rates(ones, NODE, node_price=None) == ones
    assert {node: told.exact[node, "gpu"] for node in ("a40", "a6000")} == {"a40": 1, "a6000": 1}
    assert node_cost(ones, NODE) == Fraction("20.3246")


def test_c03_components_cost_what_the_instance_does() -> None:
    base = {"cpu": Fraction("1.25"), "ram": Fraction("0.5"), "gpu": Fraction("0.95")}
    rates = component_rates(base, NODE, node_price=Fraction("0.526"))
    assert rates is not None
    assert node_cost(rates, NODE) == Fraction("0.526")
    rounded = {name: f"{float(rate):.6f}" for name, rate in rates.items()}
    assert rounded == {"cpu": "0.048302", "ram": "0.019321", "gpu": "0.036709"}


def test_c04_no_gpu_costs_nothing_for_gpus() -> None:
    assert node_cost({"gpu": Fraction("0.95")}, {"gpu": 0}) * 24 == 0


def test_c06_virtual_gpus_are_boards_by_share() -> None:
    count = GpuCount(physical=1, virtual=10)
    assert physical_share(5, count) == Fraction(1, 2)
    assert (physical_share(5, count) or 0) * 2 == 1


def test_c07_idle_of_a_gpu_nobody_holds_does_not_disappear_when_idle_is_shared() -> None:
    lines = [Line(owner="a", place="c", costs={"cpu": 10})]
    idle = {("c", "gpu"): 27, ("c", "cpu"): 5}
    apart, spread = (
        settle(lines, idle=idle, rules=Rules(shares_idle=flag)) for flag in (False, True)
    )
    assert spread.bills[IDLE].idle == 27
    assert apart.total == spread.total == 42


def test_c09_idle_is_capacity_less_what_was_allocated() -> None:
    assets = [Asset(cluster="c", node="n", costs={"cpu": 25})]
    held_cost = [Allocated(cluster="c", node="n", costs={"cpu": Fraction("4.8958")})]
    told = idle_cost(assets, held_cost, level=Level.CLUSTER)
    assert money_text(parts_of(told.exact["c", "cpu"] * 100), "USD") == "2010.42"


@pytest.mark.parametrize("shares_idle", [False, True])
@pytest.mark.parametrize("shares_namespace", [False, True])
@pytest.mark.parametrize("rule", SplitRule)
def test_c10_the_total_is_the_same_however_idle_and_namespaces_are_shared(
    rule: SplitRule, *, shares_idle: bool, shares_namespace: bool
) -> None:
    lines = [
        Line(
            owner=name, place="c", costs={"gpu": cost}, is_shared=shares_namespace and name == "n3"
        )
        for name, cost in (("n1", 28), ("n2", 36), ("n3", 18))
    ]
    rules = Rules(shares_idle=shares_idle, rule=rule, custom={"n1": 1})
    assert settle(lines, idle={("c", "gpu"): 30}, rules=rules).total == 112


def test_c12_cost_by_use_is_not_cost_by_allocation() -> None:
    told = charge(ledger(held(used=24, idle=72)), at_rate("2.00")).rows
    assert money(told, "capacity_parts") == 192
    assert money(told, "used_parts") == 48


def test_c13_a_device_s_use_is_counted_once_among_its_sharers() -> None:
    shares = even_use(Fraction("0.714"), ["a", "b", "c"])
    assert shares == dict.fromkeys("abc", Fraction("0.238"))


def test_c14_a_board_s_power_is_counted_once() -> None:
    board = Draw(cluster="c", from_at=NOON, until_at=NOON + HOUR, joules=70 * 3_600)
    assert energy_cost([board], (), currency="USD").it_kwh == Fraction("0.070")


def test_c15_devices_that_report_nothing_are_capacity() -> None:
    names = [f"GPU-{number}" for number in range(8)]
    stored = history(
        devices=[{"device_uuid": name, "observed_at": EARLY} for name in names],
        held=[{"device_uuid": name, "started_at": EARLY} for name in names[:3]],
    )
    told = booked(stored, NOON, NOON + HOUR)
    hours = told.group_by("is_held").agg(gpu_hours(pl.col("wall_ticks").sum())).sort("is_held")
    assert hours.rows() == [(False, 5.0), (True, 3.0)]


def test_c17_work_on_a_shared_gpu_is_not_free() -> None:
    shares = replica_shares({"pod": [(0, 2)]}, (0, 2), replicas=4)
    assert shares["pod"] * 2 * Fraction("1.20") == Fraction("0.60")


def test_c18_a_new_family_without_a_price_is_null_and_named() -> None:
    told = charge(ledger(held(model="a3-highgpu-8g", used=8)), at_rate("4.00"))
    assert told.rows["capacity_parts"].to_list() == [None]
    (missing,) = told.unpriced.to_dicts()
    assert (missing["model"], missing["node_count"], missing["gpu_hours"]) == (
        "a3-highgpu-8g",
        1,
        8.0,
    )


def test_c20_an_evicted_pod_costs_until_its_end() -> None:
    evicted = {"started_at": NOON, "ended_at": NOON + HOUR / 4}
    stored = history(devices=[{"observed_at": EARLY}], held=[evicted])
    told = charge(booked(stored, NOON, NOON + 2 * HOUR), at_rate("4.00")).rows
    assert money(told.filter("is_held"), "capacity_parts") == 1


def test_c21_prices_are_dated_within_a_month() -> None:
    march = period_from("2026-03", zone="UTC", until_at=datetime(2026, 4, 1, tzinfo=UTC))
    change = datetime(2026, 3, 24, tzinfo=UTC)
    book = prices(
        {"rate": "2.00", "valid_until_at": change}, {"rate": "2.50", "valid_from_at": change}
    )
    ledger_rows = booked(
        history(devices=[{"observed_at": EARLY}]), march.from_at, march.until_at, change
    )
    told = charge(ledger_rows, book).rows
    assert money(told, "capacity_parts") == 552 * 2 + 192 * Fraction("2.5") == 1_584


def test_c26_a_week_is_the_sum_of_its_days() -> None:
    week = period_from("2026-W19", zone="Asia/Shanghai", until_at=datetime(2027, 1, 1, tzinfo=UTC))
    stored = history(
        devices=[{"observed_at": EARLY}],
        held=[{"started_at": NOON - timedelta(hours=7), "ended_at": NOON + timedelta(minutes=17)}],
    )
    cuts = midnights(week, "Asia/Shanghai")
    by_step = charge(booked(stored, week.from_at, week.until_at, *cuts), at_rate("3.33")).rows
    whole = charge(booked(stored, week.from_at, week.until_at), at_rate("3.33")).rows
    dated = costs(with_day(by_step, week, "Asia/Shanghai"), "day")
    assert dated.height == len(days(week, "Asia/Shanghai")) == 7
    assert dated["capacity_parts"].sum() == whole["capacity_parts"].sum()


def test_c29_daemons_on_gpu_nodes_ask_for_no_gpu() -> None:
    daemon = msgspec.convert({**pod_spec(), "containers": [{"name": "exporter"}]}, PodSpec)
    asked = [request_of(daemon).gpu_count for _node in range(4) for _daemon in range(3)]
    assert sum(count or 0 for count in asked) == 0


def test_c30_direct_cost_is_told_apart_from_the_share_of_idle() -> None:
    line = Line(owner="eric", place="c", costs={"gpu": Fraction("0.93")})
    told = settle(
        [line], idle={("c", "gpu"): Fraction("48.84")}, rules=Rules(shares_idle=True)
    ).bills["eric"]
    assert (told.direct, told.idle) == (Fraction("0.93"), Fraction("48.84"))
    assert told.total == Fraction("49.77")


def test_c31_an_instance_of_eight_gpus_costs_eight() -> None:
    assert node_price(0, gpus=8, per_gpu=2) == 16


def test_c32_a_node_whose_holders_nobody_records_costs_its_whole_price() -> None:
    names = [f"GPU-{number}" for number in range(4)]
    stored = history(devices=[{"device_uuid": name, "observed_at": EARLY} for name in names])
    told = charge(booked(stored, NOON, NOON + HOUR), at_rate("2.00")).rows
    assert money(told, "capacity_parts") == 8
    assert money(told, "unknown_use_parts") == 8
    assert told["reason"].unique().to_list() == ["no_holder_recorded"]


def test_c33_one_definition_of_today_and_a_currency_with_every_amount() -> None:
    late = datetime(2026, 5, 4, 23, 30, tzinfo=UTC)
    shown, enforced = (
        period_from("today", zone="Asia/Shanghai", until_at=late) for _door in range(2)
    )
    assert shown == enforced == Period(datetime(2026, 5, 4, 16, tzinfo=UTC), late)
    book = prices({"rate": 1, "currency": "EUR"}, {"rate": 2, "gpu_model": "T4"})
    rows = ledger(held(used=1), free(model="T4", free_idle=1))
    assert costs(charge(rows, book).rows)["currency"].to_list() == ["EUR", "USD"]


def test_c36_a_closed_week_is_the_same_bytes_after_a_change_of_price() -> None:
    week = Period(NOON, NOON + HOUR)
    old = price("2.00", valid_from_at=EARLY)
    new = price("9.00", valid_from_at=EARLY, recorded_at=week.until_at + 2 * HOUR)
    shut = closed(from_at=week.from_at, until_at=week.until_at, recorded_at=week.until_at + HOUR)

    def text(*book: Mapping[str, object]) -> str:
        state = money_frames(
            pl.DataFrame(schema=BOOK_ROWS), price=[dict(row) for row in book], closed_period=[shut]
        )
        stored = history(devices=[{"observed_at": EARLY}])
        told = booked(stored, week.from_at, week.until_at, *cost_instants(state, week))
        heading = Heading(
            statement_id="w1",
            time_zone="UTC",
            watermark_at=week.until_at,
            config_hash="c",
            reason=None,
        )
        return text_of(statement(costing({**state, "ledger": told}, week), heading))

    assert text(old) == text(old, new)
    assert '"total":"2.00"' in text(old, new)
    assert units_of(parts_of(2)) == 2
