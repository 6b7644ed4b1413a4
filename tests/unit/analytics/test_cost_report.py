"""The cost report: every figure from the ledger, the prices and the question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import polars as pl
import pytest

from analytics.reports.cost import DEFINITION, MOST_GROUPS, OTHERS
from analytics.reports.grouping import words
from analytics.reports.model import Question, Report
from steward.period import Period
from tests.support.analytics_frames import HOUR, NOON, ONE_HOUR
from tests.support.ledger_rows import free, held, ledger
from tests.support.price_rows import budget, closed, exchange, money_frames, price, shared

DAY = timedelta(days=1)
MAY = datetime(2026, 5, 1, tzinfo=UTC)


def report(
    rows: pl.DataFrame, question: Question | None = None, **tables: list[dict[str, object]]
) -> Report:
    asked = Question(period=ONE_HOUR) if question is None else question
    return DEFINITION.build(money_frames(rows, **{"price": [price()], **tables}), asked)


def value(found: Report, key: str) -> object:
    return {one.key: one.value for one in found.figures}[key]


def coverage(found: Report, key: str) -> float | None:
    return {one.key: one.coverage_ratio for one in found.figures}[key]


def frame(found: Report, key: str) -> pl.DataFrame:
    return {one.key: one.frame for one in found.tables}[key]


def cents(texts: Sequence[str | None]) -> int:
    return sum(int(text.replace(".", "")) for text in texts if text is not None)


@pytest.mark.parametrize("by", ["team", "class", "workload", "user", "queue", "priority"])
def test_time_of_which_no_holder_is_known_is_borne_by_nobody_known_and_by_no_idle_share(
    by: str,
) -> None:
    rows = ledger(held(used=2), free(unknown=1, reason="no_holder_recorded"), free(free_idle=1))
    found = report(rows, Question(period=ONE_HOUR, by=by))
    (table,) = [one for one in found.tables if one.key.startswith("by_")]
    name = table.columns[0].name
    assert value(found, "unattributed_cost") == "4.00"
    assert value(found, "total_cost") == "16.00"
    assert cents(table.frame["total_cost"].to_list()) == 1600
    assert sorted(table.frame["total_cost"]) == ["12.00", "4.00"]
    assert table.frame.filter(pl.col("total_cost") == "4.00")["idle_cost"].to_list() == ["0.00"], (
        name
    )


def by_name(rows: pl.DataFrame, name: str, amount: str) -> Mapping[str, str | None]:
    return dict(zip(rows[name], rows[amount], strict=True))


FLEET = ledger(
    held(used=288 / 4, idle=96 / 4),
    held(tenant_id="team-b", workload_uid="w2", used=9.6, idle=14.4),
    held(tenant_id=None, workload_uid=None, used=0.6, idle=5.4),
    free(stranded=12),
    free(tenant_id="team-c", queue="team-c", reserved_unused=30),
    free(free_idle=20, down=4),
)
"""The worked example: one node of eight GPUs for a day at 4.00."""


class TestWorkedExample:
    found = report(FLEET)

    @pytest.mark.parametrize(
        ("key", "amount"),
        [
            ("capacity_cost", "768.00"),
            ("allocated_cost", "504.00"),
            ("used_cost", "328.80"),
            ("allocated_idle_cost", "175.20"),
            ("unknown_use_cost", "0.00"),
            ("stranded_cost", "48.00"),
            ("reserved_unused_cost", "120.00"),
            ("free_idle_cost", "80.00"),
            ("down_cost", "16.00"),
            ("unattributed_cost", "24.00"),
            ("shared_cost", "0.00"),
            ("total_cost", "768.00"),
            ("cost_per_used_gpu_hour", "9.34"),
        ],
    )
    def test_money(self, key: str, amount: str) -> None:
        assert value(self.found, key) == amount

    def test_utilisation_by_money(self) -> None:
        assert value(self.found, "apparent_cost_ratio") == 126 / 192
        assert value(self.found, "effective_cost_ratio") == pytest.approx(0.428125)

    def test_direct_cost_of_each_team(self) -> None:
        teams = by_name(frame(self.found, "by_tenant"), "tenant_id", "direct_cost")
        assert teams == {"team-a": "384.00", "team-b": "96.00", "unattributed": "24.00"}

    def test_teams_and_their_idle_sum_to_the_capacity(self) -> None:
        assert cents(frame(self.found, "by_tenant")["total_cost"].to_list()) == 76_800

    def test_idle_that_is_held_is_told(self) -> None:
        assert any("175.20 USD" in finding for finding in self.found.findings)


class TestMissing:
    def test_no_device_time_costs_nothing(self) -> None:
        found = report(ledger(), shared_cost=[shared("1.00")])
        assert value(found, "capacity_cost") == "0.00"
        assert value(found, "apparent_cost_ratio") is None
        assert value(found, "cost_per_used_gpu_hour") is None

    def test_a_price_of_zero_makes_a_cost_of_zero(self) -> None:
        found = report(ledger(held(used=1)), price=[price("0.00")])
        assert value(found, "capacity_cost") == "0.00"
        assert coverage(found, "capacity_cost") == 1
        assert value(found, "effective_cost_ratio") is None

    def test_no_price_makes_no_cost(self) -> None:
        found = report(ledger(held(used=1)), price=[])
        assert value(found, "capacity_cost") is None
        assert value(found, "total_cost") is None
        assert value(found, "unpriced_gpu_hours") == 1
        assert frame(found, "by_tenant")["total_cost"].to_list() == [None]

    def test_a_part_without_a_price_is_listed_and_in_no_sum(self) -> None:
        rows = ledger(held(used=1), held(model="T4", tenant_id="team-b", used=3))
        found = report(rows)
        assert (value(found, "capacity_cost"), coverage(found, "capacity_cost")) == ("4.00", 0.25)
        assert frame(found, "unpriced").rows() == [("c", "T4", 3.0, 1)]
        teams = frame(found, "by_tenant")
        assert by_name(teams, "tenant_id", "direct_cost") == {"team-a": "4.00", "team-b": None}
        assert any("T4" in finding and "steward price set" in finding for finding in found.findings)

    def test_a_leaf_without_a_price_has_no_cost(self) -> None:
        found = report(ledger(held(used=1), free(model="T4", down=3)))
        assert value(found, "down_cost") is None
        leaves = by_name(frame(found, "leaves"), "leaf", "cost")
        assert (leaves["Down"], leaves["Stranded"]) == (None, "0.00")

    def test_use_that_is_not_known_is_neither_used_nor_idle(self) -> None:
        found = report(ledger(held(used=1, unknown=1)))
        assert value(found, "unknown_use_cost") == "4.00"
        assert value(found, "used_of_known_ratio") == 1
        assert coverage(found, "used_of_known_ratio") == 0.5


class TestPrices:
    def test_each_span_has_the_price_of_its_time(self) -> None:
        change = NOON + 80 * timedelta(minutes=1)
        span = Period(NOON, NOON + 4 * HOUR)
        rows = ledger(
            held(used=4 / 3, ended_at=change),
            held(used=8 / 3, started_at=change, ended_at=span.until_at),
        )
        prices = [price("4.00"), price("3.10", valid_from_at=change)]
        assert value(report(rows, Question(period=span), price=prices), "used_cost") == "13.60"

    def test_a_teams_own_price(self) -> None:
        rows = ledger(held(used=1), held(tenant_id="team-b", workload_uid="w2", used=1))
        found = report(rows, price=[price("4.00"), price("1.00", tenant_id="team-b")])
        teams = by_name(frame(found, "by_tenant"), "tenant_id", "direct_cost")
        assert teams == {"team-a": "4.00", "team-b": "1.00"}
        assert frame(found, "prices")["rate"].to_list() == ["1.00", "4.00"]


class TestCurrency:
    rows = ledger(held(used=25), held(cluster="d", workload_uid="w2", used=100))
    prices = (price("4.00", cluster="c"), price("7.10", cluster="d", currency="CNY"))

    @pytest.mark.parametrize(("code", "total"), [("USD", "200.00"), ("CNY", "1420.00")])
    def test_amounts_are_converted(self, code: str, total: str) -> None:
        asked = Question(period=ONE_HOUR, currency=code)
        found = report(self.rows, asked, price=[*self.prices], exchange_rate=[exchange("7.10")])
        assert value(found, "capacity_cost") == total

    def test_without_a_rate_they_are_left_out_and_said_so(self) -> None:
        asked = Question(period=ONE_HOUR, currency="USD")
        found = report(self.rows, asked, price=[*self.prices])
        assert (value(found, "capacity_cost"), coverage(found, "capacity_cost")) == ("100.00", 0.2)
        assert any("Amounts in CNY are left out" in finding for finding in found.findings)

    def test_the_currency_of_most_device_time_is_the_usual_one(self) -> None:
        assert value(report(self.rows, price=[*self.prices]), "capacity_cost") == "710.00"


class TestClosed:
    """A report of a closed period knows what was known when it was closed."""

    before, after = closed()["recorded_at"], NOON.replace(month=7)

    @pytest.mark.parametrize(
        ("recorded_at", "total"),
        [
            pytest.param(before, "11.00", id="recorded by then"),
            pytest.param(after, "1.00", id="recorded afterwards"),
        ],
    )
    def test_shared_costs_and_rates(self, recorded_at: object, total: str) -> None:
        late = {"recorded_at": recorded_at}
        found = report(
            ledger(held(used=1)),
            price=[price("1.00")],
            shared_cost=[shared("71.00", currency="CNY", **late)],
            exchange_rate=[exchange("7.10")],
            closed_period=[closed()],
        )
        assert value(found, "total_cost") == total

    def test_prices(self) -> None:
        usual, late = price("4.00"), price("5.00", recorded_at=self.after)
        found = report(ledger(held(used=1)), price=[usual, late], closed_period=[closed()])
        assert value(found, "capacity_cost") == "4.00"


class TestGroups:
    @pytest.mark.parametrize("word", words())
    def test_every_grouping_sums_to_the_total(self, word: str) -> None:
        asked = Question(period=ONE_HOUR, by=word)
        found = report(FLEET, asked, shared_cost=[shared("100.01")])
        assert value(found, "total_cost") == "868.01"
        assert cents(found.tables[0].frame["total_cost"].to_list()) == 86_801

    @pytest.mark.parametrize(
        ("more", "rest"),
        [
            pytest.param(-1, None, id="fewer groups than are shown"),
            pytest.param(0, None, id="as many"),
            pytest.param(2, "8.00", id="the smallest two together"),
        ],
    )
    def test_many_groups_are_told_as_one(self, more: int, rest: str | None) -> None:
        large = [held(workload_uid=f"w{at}", used=2) for at in range(MOST_GROUPS + min(more, 0))]
        small = [held(workload_uid=f"small{at}", used=1) for at in range(more)]
        asked = Question(period=ONE_HOUR, by="workload")
        rows = frame(report(ledger(*large, *small), asked), "by_workload")
        assert by_name(rows, "workload_uid", "total_cost").get(OTHERS) == rest
        assert cents(rows["total_cost"].to_list()) == 800 * len(large) + 400 * len(small)

    def test_a_place_bears_its_own_idle(self) -> None:
        rows = ledger(held(used=1), free(node="n2", free_idle=1))
        found = report(rows, Question(period=ONE_HOUR, by="node"))
        nodes = frame(found, "by_node")
        assert by_name(nodes, "node", "direct_cost") == {"n1": "4.00", "n2": "0.00"}
        assert by_name(nodes, "node", "idle_cost") == {"n1": "0.00", "n2": "4.00"}

    def test_idle_of_a_model_that_nobody_holds_stays_a_row(self) -> None:
        found = report(ledger(held(used=1), free(model="L40S", free_idle=2)),
                       price=[price(), price("1.00", gpu_model="L40S")])  # fmt: skip
        teams = frame(found, "by_tenant")
        assert by_name(teams, "tenant_id", "total_cost") == {
            "team-a": "4.00",
            "not distributed": "2.00",
        }

    @pytest.mark.parametrize(
        ("rule", "weights", "expected"),
        [
            pytest.param("proportional", None, ("7.50", "2.50"), id="by direct cost"),
            pytest.param("even_all", None, ("5.00", "5.00"), id="evenly"),
            pytest.param("custom", '{"team-b": 1}', ("0.00", "10.00"), id="by weights"),
        ],
    )
    def test_shared_cost(self, rule: str, weights: str | None, expected: tuple[str, str]) -> None:
        rows = ledger(held(used=3), held(tenant_id="team-b", workload_uid="w2", used=1))
        one = shared("10.00", split_rule=rule, weights_json=weights)
        teams = by_name(frame(report(rows, shared_cost=[one]), "by_tenant"), "tenant_id",
                        "shared_cost")  # fmt: skip
        assert (teams["team-a"], teams["team-b"]) == expected

    def test_a_shared_cost_counts_for_the_time_it_is_valid(self) -> None:
        one = shared("10.00", valid_from_at=NOON - HOUR)
        assert value(report(FLEET, shared_cost=[one]), "shared_cost") == "5.00"


def days_of_may(costs: Sequence[float], **given: object) -> pl.DataFrame:
    """Return a ledger with one team that uses so many GPU-hours on each day."""
    return ledger(
        *(
            held(used=cost, started_at=MAY + at * DAY, ended_at=MAY + (at + 1) * DAY, **given)
            for at, cost in enumerate(costs)
        )
    )


class TestDays:
    span = Question(period=Period(MAY, MAY + 14 * DAY))

    def test_the_month_is_forecast_by_both_methods(self) -> None:
        found = report(days_of_may([75] * 7 + [80] * 7), self.span)
        assert value(found, "month_spent_cost") == "4340.00"
        assert value(found, "month_end_cost") == "9780.00"
        assert value(found, "month_end_linear_cost") == "9610.00"

    def test_the_range_lies_around_the_run_rate(self) -> None:
        found = report(days_of_may([75] * 7 + [80] * 7), self.span)
        low, high = (float(str(value(found, f"month_end_{end}_cost"))) for end in ("low", "high"))
        assert 4_340 < low < 9_780 < high
        assert low + high == pytest.approx(2 * 9_780)

    def test_the_day_in_progress_is_no_day(self) -> None:
        half = Question(period=Period(MAY, MAY + 14.5 * DAY))
        rows = pl.concat([days_of_may([75] * 14), ledger(
            held(used=1, started_at=MAY + 14 * DAY, ended_at=MAY + 14.5 * DAY))])  # fmt: skip
        found = report(rows, half)
        assert value(found, "month_spent_cost") == "4200.00"
        assert frame(found, "daily")["is_whole"].to_list() == [True] * 14 + [False]

    def test_days_before_the_period_are_forecast_too(self) -> None:
        late = Question(period=Period(MAY + 2 * DAY, MAY + 14 * DAY))
        rows = days_of_may([75] * 14).filter(pl.col("started_at") >= late.period.from_at)
        found = report(rows, late)
        assert value(found, "month_spent_cost") is None
        assert value(found, "month_end_cost") == "9300.00"
        assert coverage(found, "month_end_cost") == 12 / 31

    def test_days_sum_to_the_capacity_cost(self) -> None:
        found = report(days_of_may([1 / 3] * 14), self.span, price=[price("0.10")])
        daily = frame(found, "daily")["cost"].to_list()
        assert cents(daily) == cents([str(value(found, "capacity_cost"))])

    def test_an_odd_day_names_team_model_and_workload(self) -> None:
        usual = days_of_may([10] * 14)
        burst = ledger(held(used=90, workload_uid="w9", started_at=MAY + 10 * DAY,
                            ended_at=MAY + 11 * DAY))  # fmt: skip
        found = report(pl.concat([usual, burst]), self.span)
        assert frame(found, "anomalies").select(
            "day", "tenant_id", "model", "cost", "usual_cost", "workload_uid", "change_cost"
        ).rows() == [("2026-05-11", "team-a", "H100", "400.00", "40.00", "w9", "360.00")]
        assert any("w9 moved most" in finding for finding in found.findings)

    def test_even_days_are_not_odd(self) -> None:
        assert frame(report(days_of_may([10] * 14), self.span), "anomalies").is_empty()

    @pytest.mark.parametrize(
        ("zone", "day", "hours"),
        [
            pytest.param("America/New_York", "2026-03-08", 23, id="clocks go forward"),
            pytest.param("America/New_York", "2026-11-01", 25, id="clocks go back"),
            pytest.param("Europe/Berlin", "2026-03-29", 23, id="in Berlin"),
            pytest.param("Asia/Shanghai", "2026-03-08", 24, id="clocks stay"),
        ],
    )
    def test_a_day_is_a_day_of_the_zone(self, zone: str, day: str, hours: int) -> None:
        noon = datetime.fromisoformat(f"{day}T12:00:00Z")
        asked = Question(period=Period(noon - 2 * DAY, noon + 2 * DAY), time_zone=zone)
        cuts = DEFINITION.cuts(money_frames(ledger()), asked)
        ends = [asked.period.from_at, *cuts, asked.period.until_at]
        rows = ledger(
            *(
                held(used=(end - start) / HOUR * 8, started_at=start, ended_at=end)
                for start, end in pairwise(ends)
            )
        )
        daily = by_name(frame(report(rows, asked), "daily"), "day", "cost")
        assert daily[day] == f"{hours * 8 * 4}.00"


class TestBudgets:
    span = Question(period=Period(MAY, MAY + 10 * DAY))

    def test_budgets_stand_beside_spending(self) -> None:
        found = report(
            days_of_may([25] * 10),
            self.span,
            budget=[budget("2000.00"), budget("500.00", tenant_id="team-a")],
        )
        rows = frame(found, "budgets")
        assert by_name(rows, "tenant_id", "spent_cost") == {
            "everybody": "1000.00",
            "team-a": "1000.00",
        }
        assert value(found, "budget_used_ratio") == 0.5
        assert coverage(found, "budget_used_ratio") == 1
        assert by_name(rows, "tenant_id", "thresholds") == {
            "everybody": "50 %: reached 2026-05-10; 80 %: expected 2026-05-16; "
            "100 %: expected 2026-05-20",
            "team-a": "50 %: reached 2026-05-03; 80 %: reached 2026-05-04; "
            "100 %: reached 2026-05-05",
        }

    def test_no_budget_is_no_ratio(self) -> None:
        assert value(report(FLEET), "budget_used_ratio") is None

    def test_a_budget_of_another_month_does_not_count(self) -> None:
        other = budget("1.00", valid_from_at=MAY - 30 * DAY, valid_until_at=MAY)
        assert frame(report(days_of_may([1]), self.span, budget=[other]), "budgets").is_empty()

    def test_a_budget_in_another_currency_is_converted(self) -> None:
        found = report(
            days_of_may([25] * 10),
            self.span,
            budget=[budget("7100.00", currency="CNY")],
            exchange_rate=[exchange("7.10")],
        )
        assert frame(found, "budgets")["budget_cost"].to_list() == ["1000.00"]


def test_the_ledger_is_cut_where_prices_days_and_budgets_change() -> None:
    asked = Question(period=Period(NOON, NOON + DAY), time_zone="Asia/Shanghai")
    some = money_frames(
        ledger(),
        price=[price(valid_from_at=NOON + HOUR)],
        budget=[budget("1.00", valid_from_at=NOON + 2 * HOUR)],
    )
    assert sorted(set(DEFINITION.cuts(some, asked))) == [
        NOON + HOUR,
        NOON + 2 * HOUR,
        datetime(2026, 5, 4, 16, tzinfo=UTC),
        datetime(2026, 5, 5, tzinfo=UTC),
    ]


def test_every_figure_is_defined() -> None:
    for one in report(FLEET).figures:
        assert one.definition.endswith(".")
        assert one.unit in {"currency", "ratio", "GPU-hours"}
