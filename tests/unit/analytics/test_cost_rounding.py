"""Rounding: half away from zero once, and rows that add up to what is printed above them."""

from __future__ import annotations

from fractions import Fraction

import polars as pl
import pytest

from analytics.cost.rounding import (
    apportioned,
    exponent,
    minor_text,
    minor_units,
    money_text,
    parts_of,
    printed,
    rounded,
    shared_out,
    units_of,
)
from analytics.cost.rounding_frames import minor_as_text, minor_per_row, with_minor

CENT = parts_of(Fraction(1, 100))
ONE_PART = 1


@pytest.mark.parametrize(
    ("amount", "whole"),
    [
        pytest.param(Fraction(0), 0, id="zero"),
        pytest.param(Fraction(49, 100), 0, id="just inside the half"),
        pytest.param(Fraction(1, 2), 1, id="exactly at the half"),
        pytest.param(Fraction(51, 100), 1, id="just past the half"),
        pytest.param(Fraction(-49, 100), 0, id="negative, just inside"),
        pytest.param(Fraction(-1, 2), -1, id="negative, exactly at"),
        pytest.param(Fraction(-51, 100), -1, id="negative, just past"),
        pytest.param(Fraction(5, 2), 3, id="not to the even neighbour"),
        pytest.param(7, 7, id="whole"),
    ],
)
def test_halves_go_away_from_zero(amount: Fraction, whole: int) -> None:
    assert rounded(amount) == whole


@pytest.mark.parametrize(
    ("parts", "currency", "text"),
    [
        pytest.param(None, "USD", None, id="null stays null"),
        pytest.param(0, "USD", "0.00", id="zero"),
        pytest.param(CENT / 2 - ONE_PART, "USD", "0.00", id="a part below half a cent"),
        pytest.param(CENT / 2, "USD", "0.01", id="half a cent"),
        pytest.param(CENT / 2 + ONE_PART, "USD", "0.01", id="a part above half a cent"),
        pytest.param(parts_of(Fraction("1234567.1")), "USD", "1234567.10", id="both decimals"),
        pytest.param(parts_of(-5), "CNY", "-5.00", id="negative"),
        pytest.param(-CENT / 4, "USD", "0.00", id="no negative zero"),
        pytest.param(parts_of(Fraction(1000, 3)), "JPY", "333", id="no decimals"),
        pytest.param(parts_of(Fraction(1, 16)), "KWD", "0.063", id="three decimals"),
        pytest.param(parts_of(Fraction(1, 32)), "CLF", "0.0313", id="four decimals"),
        pytest.param(parts_of(10**24), "USD", f"{10**24}.00", id="beyond any float"),
    ],
)
def test_money_text(parts: Fraction | None, currency: str, text: str | None) -> None:
    assert money_text(parts, currency) == text


def test_decimals_by_currency() -> None:
    found = {code: exponent(code) for code in ("JPY", "USD", "CNY", "KWD", "CLF")}
    assert found == {"JPY": 0, "USD": 2, "CNY": 2, "KWD": 3, "CLF": 4}


def test_parts_and_units_are_inverse() -> None:
    assert units_of(parts_of(Fraction("0.1"))) == Fraction(1, 10)
    assert minor_units(parts_of(Fraction("0.1")), "USD") == 10
    assert minor_text(-7, "USD") == "-0.07"


@pytest.mark.parametrize(
    ("exact", "total", "whole"),
    [
        pytest.param({}, None, {}, id="nobody"),
        pytest.param({"a": 0, "b": 0}, None, {"a": 0, "b": 0}, id="nothing"),
        pytest.param(
            {"b": Fraction(1, 2), "a": Fraction(1, 2)}, None, {"b": 0, "a": 1}, id="ties by key"
        ),
        pytest.param(
            {"a": Fraction(1, 3), "b": Fraction(2, 3)}, None, {"a": 0, "b": 1}, id="largest first"
        ),
        pytest.param(
            {"a": Fraction(8, 3), "b": Fraction(-8, 3)}, None, {"a": 2, "b": -2}, id="both signs"
        ),
        pytest.param(
            {"a": Fraction(7, 2), "credit": Fraction(-3, 4)},
            None,
            {"a": 3, "credit": 0},
            id="credit",
        ),
        pytest.param({"a": Fraction(1, 2)}, 0, {"a": 0}, id="a total that was rounded down"),
        pytest.param({"a": Fraction(1, 2)}, 1, {"a": 1}, id="a total that was rounded up"),
    ],
)
def test_apportioned(exact: dict[str, Fraction], total: int | None, whole: dict[str, int]) -> None:
    assert apportioned(exact, total) == whole


@pytest.mark.parametrize("total", [-1, 2])
def test_a_total_that_is_not_the_sum_rounded_is_refused(total: int) -> None:
    with pytest.raises(ValueError, match="is not 1/2 rounded"):
        apportioned({"a": Fraction(1, 2)}, total)


def test_all_weights_zero_are_refused_unless_there_is_nothing() -> None:
    assert shared_out(0, {"a": 0}) == {"a": 0}
    with pytest.raises(ValueError, match="every weight is 0"):
        shared_out(1, {"a": 0})


def test_children_follow_the_printed_parent() -> None:
    """Grand total 0.01 of two teams with 0.004 each: one team prints a cent, its rows too."""
    teams = {"a": parts_of(Fraction("0.004")), "b": parts_of(Fraction("0.004"))}
    totals = printed(teams, "USD")
    assert totals == {"a": 1, "b": 0}
    rows = {"x": parts_of(Fraction("0.002")), "y": parts_of(Fraction("0.002"))}
    assert printed(rows, "USD", total=totals["a"]) == {"x": 1, "y": 0}
    assert printed(rows, "USD", total=totals["b"]) == {"x": 0, "y": 0}


def amounts(*given: tuple[str, str | None, Fraction | None, str | None]) -> pl.DataFrame:
    """Return rows of key, group, cost in currency units and currency."""
    rows = [
        (key, group, None if cost is None else int(parts_of(cost)), currency)
        for key, group, cost, currency in given
    ]
    schema = {
        "key": pl.String,
        "team": pl.String,
        "cost_parts": pl.Int128,
        "currency": pl.String,
    }
    return pl.DataFrame(rows, schema=schema, orient="row")


THIRD = Fraction(1, 3) + Fraction(1, 10**15)


def test_rows_of_a_frame_add_up_per_group_and_currency() -> None:
    frame = amounts(
        ("c", "a", THIRD, "USD"),
        ("b", "a", THIRD, "USD"),
        ("a", "a", THIRD, "USD"),
        ("a", "b", Fraction("2.5"), "JPY"),
        ("a", "b", Fraction("0.005"), "USD"),
    )
    told = with_minor(frame, parts="cost_parts", within=("team",), ties=("key",))
    assert told["cost_minor"].to_list() == [33, 33, 34, 3, 1]
    assert told.columns == [*frame.columns, "cost_minor"]
    text = told.select(minor_as_text("cost_minor")).to_series().to_list()
    assert text == ["0.33", "0.33", "0.34", "3", "0.01"]


@pytest.mark.parametrize("sign", [1, -1])
def test_the_largest_remainder_of_a_frame_comes_first(sign: int) -> None:
    """Rests of 0.2, 0.7 and 0.6 cents: of the sum of 4.5, rounded, the last two get one each."""
    cents = [Fraction("1.2"), Fraction("1.7"), Fraction("1.6")]
    rows = [(key, "a", sign * cost / 100, "USD") for key, cost in zip("abc", cents, strict=True)]
    told = with_minor(amounts(*rows), parts="cost_parts", within=("team",), ties=("key",))
    assert told["cost_minor"].to_list() == [sign, 2 * sign, 2 * sign]


def test_rows_of_a_frame_follow_a_printed_total() -> None:
    frame = amounts(("a", None, Fraction("0.004"), "USD"), ("b", None, Fraction("0.004"), "USD"))
    told = [
        with_minor(frame.with_columns(total=pl.lit(goal)), parts="cost_parts", total="total")
        for goal in (0, 1)
    ]
    assert [frame["cost_minor"].to_list() for frame in told] == [[0, 0], [1, 0]]


def test_null_and_zero_in_a_frame() -> None:
    frame = amounts(
        ("a", None, None, "USD"),
        ("b", None, Fraction(0), "USD"),
        ("c", None, Fraction(1), None),
    )
    told = with_minor(frame, parts="cost_parts")
    assert told["cost_minor"].to_list() == [None, 0, None]
    assert frame.select(minor_per_row("cost_parts")).to_series().to_list() == [None, 0, None]
    text = told.select(minor_as_text("cost_minor")).to_series().to_list()
    assert text == [None, "0.00", None]


def test_an_empty_frame_stays_empty() -> None:
    assert with_minor(amounts(), parts="cost_parts").is_empty()
