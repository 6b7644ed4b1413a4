"""Device-time times the price in force; what has no price is null and listed."""

from __future__ import annotations

from fractions import Fraction

import polars as pl
import pytest

from analytics.cost.charge import (
    LEAF_PARTS,
    OF_PRICE,
    PARTS,
    PRICES,
    allocated_parts,
    charge,
    costs,
    price_instants,
    unallocated_parts,
)
from analytics.cost.rounding import parts_of, units_of
from tests.support.analytics_frames import HOUR, MINUTE, NOON
from tests.support.cost_cases import at_rate, money, money_by, prices
from tests.support.ledger_rows import free, held, ledger

NONE = pl.DataFrame(schema=PRICES)


def test_each_leaf_has_its_cost_and_they_add_up() -> None:
    rows = ledger(
        held(used=1, ineffective=2, idle=3, unknown=4),
        free(down=5, stranded=6, reserved_unused=7, free_idle=8),
    )
    told = charge(rows, at_rate("2.00")).rows
    found = {name: money(told, name) for name in PARTS}
    assert found == {
        "capacity_parts": 72,
        "used_parts": 2,
        "allocated_idle_parts": 10,
        "unknown_use_parts": 8,
        "down_parts": 10,
        "stranded_parts": 12,
        "reserved_unused_parts": 14,
        "free_idle_parts": 16,
    }
    split = told.select(allocated_parts().sum().alias("a"), unallocated_parts().sum().alias("b"))
    assert [units_of(split[name].item()) for name in ("a", "b")] == [20, 52]


@pytest.mark.parametrize(
    ("minutes", "rate"),
    [
        pytest.param(-1, 1, id="the minute before the change"),
        pytest.param(0, 2, id="at the change"),
        pytest.param(1, 2, id="the minute after"),
    ],
)
def test_the_price_in_force_at_a_span_s_start_counts(minutes: int, rate: int) -> None:
    book = prices({"rate": 1, "valid_until_at": NOON}, {"rate": 2, "valid_from_at": NOON})
    start = NOON + minutes * MINUTE
    row = held(used=1, started_at=start, ended_at=start + MINUTE)
    assert money(charge(ledger(row), book).rows, "capacity_parts") == rate


@pytest.mark.parametrize(
    ("until", "is_priced"),
    [
        pytest.param(NOON + MINUTE, True, id="still valid at the start"),
        pytest.param(NOON, False, id="ended at the start"),
        pytest.param(NOON - MINUTE, False, id="ended before"),
    ],
)
def test_a_price_that_has_ended_prices_nothing(until: object, is_priced: bool) -> None:
    row = held(used=1, ended_at=NOON + MINUTE)
    told = charge(ledger(row), prices({"rate": 1, "valid_until_at": until}))
    assert (told.rows["capacity_parts"].null_count() == 0) is is_priced
    assert told.unpriced.height == (0 if is_priced else 1)


def test_a_cluster_s_own_price_comes_before_the_common_one() -> None:
    book = prices({"rate": 1}, {"rate": 5, "cluster": "own"})
    rows = ledger(held(cluster="own", used=1), held(cluster="other", used=1))
    assert money_by(charge(rows, book), "cluster") == {"own": 5, "other": 1}


def test_without_a_price_cost_is_null_and_listed() -> None:
    rows = ledger(
        held(model="B200", node="n1", used=1),
        held(model="B200", node="n2", idle=2),
        held(model=None, used=4),
        held(used=8),
    )
    told = charge(rows, at_rate("1.00"))
    assert told.rows["capacity_parts"].is_null().to_list() == [True, True, True, False]
    assert told.rows.select(*LEAF_PARTS, *OF_PRICE).head(3).null_count().row(0) == (3,) * 12
    assert told.unpriced.to_dicts() == [
        {
            "cluster": "c",
            "model": model,
            "gpu_hours": hours,
            "node_count": nodes,
            "from_at": NOON,
            "until_at": NOON + HOUR,
        }
        for model, hours, nodes in (("B200", 3.0, 2), (None, 4.0, 1))
    ]
    by_model = costs(told.rows, "model").select("model", "currency", "capacity_parts")
    assert by_model.rows() == [
        ("B200", None, None),
        ("H100", "USD", parts_of(8)),
        (None, None, None),
    ]


def test_a_price_of_zero_is_a_price() -> None:
    told = charge(ledger(held(used=1)), at_rate(0))
    assert told.rows["capacity_parts"].to_list() == [0]
    assert told.unpriced.is_empty()


def test_nothing_at_all() -> None:
    assert charge(ledger(), at_rate(1)).rows.height == 0
    told = charge(ledger(held(used=1)), NONE)
    assert told.unpriced["gpu_hours"].to_list() == [1.0]
    assert costs(told.rows)["capacity_parts"].to_list() == [None]


def test_currencies_are_never_added() -> None:
    book = prices({"rate": 1}, {"rate": 7, "gpu_model": "T4", "currency": "CNY"})
    rows = ledger(held(used=1), held(model="T4", used=1))
    told = costs(charge(rows, book).rows).select("currency", "capacity_parts")
    assert told.rows() == [("CNY", parts_of(7)), ("USD", parts_of(1))]


@pytest.mark.parametrize(
    ("minutes", "is_refused"),
    [
        pytest.param(0, False, id="at the start"),
        pytest.param(1, True, id="inside"),
        pytest.param(60, False, id="at the end"),
    ],
)
def test_a_span_across_a_change_of_price_is_refused(minutes: int, is_refused: bool) -> None:
    change = NOON + minutes * MINUTE
    book = prices({"rate": 1, "valid_until_at": change}, {"rate": 2, "valid_from_at": change})
    if is_refused:
        with pytest.raises(ValueError, match="not cut at 2026-05-04T12:01:00"):
            charge(ledger(held(used=1)), book)
    else:
        charge(ledger(held(used=1)), book)


def test_a_price_of_another_model_cuts_nothing() -> None:
    book = prices({"rate": 1}, {"rate": 2, "gpu_model": "T4", "valid_from_at": NOON + MINUTE})
    assert money(charge(ledger(held(used=1)), book).rows, "capacity_parts") == 1
    assert price_instants(book)[-1] == NOON + MINUTE


def test_the_largest_fleet_of_a_year_does_not_overflow() -> None:
    """8,000 GPUs for a year at 99.99, summed exactly."""
    hours = 8_760
    rows = ledger(*[held(used=hours, node=f"n{number}") for number in range(20)])
    told = charge(pl.concat([rows] * 400), at_rate("99.99"))
    assert money(costs(told.rows), "capacity_parts") == 8_000 * hours * Fraction("99.99")
