"""Budgets: which one counts, how far it is used, and when it will be reached."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from fractions import Fraction

import pytest

from analytics.cost.budget import Budget, Crossing, Standing, budgets, standing, thresholds
from analytics.cost.rounding import parts_of
from tests.support.price_rows import budget, rows

MAY = date(2026, 5, 1)
FEW = tuple(MAY + timedelta(days=at) for at in range(10))


def ten_days(amount: int = 1_000, *, shares: tuple[Fraction, ...] = (Fraction(1),)) -> Budget:
    return Budget(
        tenant_id="a",
        currency="USD",
        amount=Fraction(amount),
        time_zone="UTC",
        from_at=datetime(2026, 5, 1, tzinfo=UTC),
        until_at=datetime(2026, 5, 11, tzinfo=UTC),
        thresholds=shares,
    )


def stand(
    *costs: int | None, amount: int = 1_000, mean: int | None = 100, share: str = "1"
) -> Standing:
    """Return the standing after these days; None is a day that is not known."""
    spending = [
        (day, Fraction(cost)) for day, cost in zip(FEW, costs, strict=False) if cost is not None
    ]
    return standing(
        ten_days(amount, shares=(Fraction(share),)),
        spending,
        days=FEW,
        recent_daily_mean=None if mean is None else Fraction(mean),
    )


def test_what_is_spent() -> None:
    found = stand(100, 150)
    assert (found.spent, found.ratio) == (250, Fraction(1, 4))
    assert (found.known_days, found.elapsed_days, found.day_count) == (2, 2, 10)
    assert found.expected == 250 + 8 * 100


def test_nothing_spent_is_zero() -> None:
    assert (stand(0).spent, stand(0).ratio) == (0, 0)


def test_no_day_is_known() -> None:
    found = stand(mean=None)
    assert (found.spent, found.elapsed_days, found.expected) == (0, 0, None)


def test_a_missing_day_is_not_zero() -> None:
    found = stand(None, 100)
    assert (found.known_days, found.elapsed_days, found.expected) == (1, 2, None)


def test_a_budget_of_nothing_has_no_ratio() -> None:
    found = stand(1, amount=0)
    assert found.ratio is None
    assert found.crossings == (Crossing(threshold=Fraction(1), day=MAY, is_forecast=False),)


@pytest.mark.parametrize(
    ("cost", "day", "is_forecast"),
    [
        pytest.param(499, FEW[1], True, id="just below: expected tomorrow"),
        pytest.param(500, FEW[0], False, id="exactly reached"),
        pytest.param(501, FEW[0], False, id="just past"),
    ],
)
def test_a_threshold_is_reached(cost: int, day: date, *, is_forecast: bool) -> None:
    (found,) = stand(cost, share="0.5").crossings
    assert found == Crossing(threshold=Fraction(1, 2), day=day, is_forecast=is_forecast)


@pytest.mark.parametrize(
    ("mean", "day"),
    [
        pytest.param(99, None, id="just too slow"),
        pytest.param(100, FEW[9], id="on the last day"),
        pytest.param(113, FEW[8], id="a day earlier"),
        pytest.param(0, None, id="nothing is spent any more"),
        pytest.param(None, None, id="not known"),
    ],
)
def test_when_it_will_be_reached(mean: int | None, day: date | None) -> None:
    (found,) = stand(100, mean=mean).crossings
    assert (found.day, found.is_forecast) == (day, True)


def test_the_last_recorded_budget_counts() -> None:
    (found,) = budgets(rows("budget", budget("100"), budget("200")))
    assert found.amount == parts_of(200)


def test_budgets_of_teams_and_everybody_stand_side_by_side() -> None:
    found = budgets(rows("budget", budget("100", tenant_id="a"), budget("200")))
    assert [one.tenant_id for one in found] == [None, "a"]


def test_a_budget_that_another_cuts_does_not_count() -> None:
    quarter = budget("900", valid_until_at=datetime(2026, 8, 1, tzinfo=UTC))
    (found,) = budgets(rows("budget", quarter, budget("100")))
    assert found.amount == parts_of(100)


def test_no_budgets() -> None:
    assert budgets(rows("budget")) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("[0.8, 0.5, 1]", (Fraction(1, 2), Fraction(4, 5), Fraction(1)), id="sorted"),
        pytest.param("[0.1]", (Fraction(1, 10),), id="exactly a tenth"),
        pytest.param("[]", (), id="none"),
    ],
)
def test_thresholds(text: str, expected: tuple[Fraction, ...]) -> None:
    assert thresholds(text) == expected


@pytest.mark.parametrize("text", ["[0]", "[-1]", "{}", '["a"]', "[null]"])
def test_wrong_thresholds(text: str) -> None:
    with pytest.raises(ValueError, match=r"threshold|list|Invalid"):
        thresholds(text)
