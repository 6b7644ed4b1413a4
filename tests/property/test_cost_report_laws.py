"""Laws of the price book, of bills and of statements, on random ledgers and prices."""

from __future__ import annotations

import random
from collections.abc import Sequence

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.cost import dated
from analytics.cost.bills import bills
from analytics.cost.costing import Costing, costing
from analytics.cost.printing import printed_groups, printed_leaves
from analytics.cost.rounding import minor_units
from analytics.cost.statement import Document, Heading, correction, statement, text_of
from analytics.reports.grouping import GROUPINGS
from tests.support.analytics_frames import HOUR, NOON, ONE_HOUR
from tests.support.ledger_rows import free, held, ledger
from tests.support.price_rows import money_frames, price, shared

LAWS = settings(max_examples=200)
MODELS = ("H100", "A100", "T4")
CLUSTERS = ("c", "d")
TEAMS = ("a", "b", None)
RULES = ("proportional", "even_all", "even_active", "custom")
hours = st.integers(0, 7).map(lambda sevenths: sevenths / 7)
rates = st.integers(0, 9_999_999).map(lambda micros: f"{micros // 10**6}.{micros % 10**6:06d}")

holders = st.fixed_dictionaries(
    {
        "cluster": st.sampled_from(CLUSTERS),
        "model": st.sampled_from(MODELS),
        "tenant_id": st.sampled_from(TEAMS),
        "workload_uid": st.sampled_from(("w1", "w2", "w3")),
        "node": st.sampled_from(("n1", "n2")),
        "used": hours,
        "idle": hours,
        "unknown": hours,
    }
).map(lambda given: held(**given))
places = st.fixed_dictionaries(
    {
        "cluster": st.sampled_from(CLUSTERS),
        "model": st.sampled_from((*MODELS, None)),
        "free_idle": hours,
        "down": hours,
        "stranded": hours,
        "reserved_unused": hours,
    }
).map(lambda given: free(**given))
ledgers = st.lists(st.one_of(holders, places), min_size=1, max_size=12)
priced_models = st.lists(
    st.tuples(st.sampled_from(MODELS), st.sampled_from((None, *CLUSTERS)), rates), max_size=4
)
shared_costs = st.lists(st.tuples(rates, st.sampled_from(RULES)), max_size=3)


def made(
    rows: Sequence[dict[str, object]],
    prices: Sequence[tuple[str, str | None, str]],
    costs: Sequence[tuple[str, str]] = (),
) -> Costing:
    frames = money_frames(
        ledger(*rows),
        price=[
            price(rate, gpu_model=model, cluster=cluster, price_id=at)
            for at, (model, cluster, rate) in enumerate(prices)
        ],
        shared_cost=[
            shared(
                amount,
                name=f"s{at}",
                split_rule=rule,
                weights_json='{"a": 2, "z": 1}' if rule == "custom" else None,
            )
            for at, (amount, rule) in enumerate(costs)
        ],
    )
    return costing(frames, ONE_HOUR)


@LAWS
@given(
    ledgers, priced_models, shared_costs, st.sampled_from(sorted(set(GROUPINGS) - {"capability"}))
)
def test_bills_sum_to_the_total_under_every_grouping_and_rule(
    rows: list[dict[str, object]],
    prices: list[tuple[str, str | None, str]],
    costs: list[tuple[str, str]],
    word: str,
) -> None:
    found, by = made(rows, prices, costs), GROUPINGS[word]
    borne = bills(found, by.keys, is_of_holder=by.is_of_holder)
    total = sum(one.full for one in borne.groups) + borne.idle_left + borne.shared_left
    assert total == found.whole.capacity + found.shared_total
    code = found.currency or "USD"
    printed, left = printed_groups(borne, code)
    assert sum(one["full"] for one in printed) + sum(left.values()) == minor_units(total, code)
    for one in printed:
        assert one["full"] == one["direct"] + one["idle"] + one["shared"]
        assert one["direct"] == one["used"] + one["allocated_idle"] + one["unknown_use"]


@LAWS
@given(ledgers, priced_models)
def test_leaves_are_never_negative_and_sum_to_the_capacity(
    rows: list[dict[str, object]], prices: list[tuple[str, str | None, str]]
) -> None:
    found = made(rows, prices)
    whole = found.whole
    assert found.allocated("tenant_id", rows=found.rows) == {
        key: one.allocated for key, one in found.accounts("tenant_id").items()
    }
    assert min(whole.parts.values()) >= 0
    assert sum(printed_leaves(whole, "USD").values()) == minor_units(whole.capacity, "USD")
    assert 0 <= whole.parts["used"] <= whole.allocated <= whole.capacity
    assert 0 <= whole.priced_ticks <= whole.wall_ticks


@LAWS
@given(ledgers, ledgers, priced_models)
def test_parts_of_a_ledger_add_up(
    some: list[dict[str, object]],
    others: list[dict[str, object]],
    prices: list[tuple[str, str | None, str]],
) -> None:
    together = made([*some, *others], prices).whole
    assert made(some, prices).whole + made(others, prices).whole == together


@LAWS
@given(ledgers, priced_models, shared_costs, st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(
    rows: list[dict[str, object]],
    prices: list[tuple[str, str | None, str]],
    costs: list[tuple[str, str]],
    order: random.Random,
) -> None:
    shuffled = order.sample(rows, len(rows))
    assert _bills(made(rows, prices, costs)) == _bills(made(shuffled, prices, costs))


@LAWS
@given(ledgers, ledgers, rates, rates)
def test_a_correction_makes_the_old_statement_the_new_one(
    before: list[dict[str, object]], after: list[dict[str, object]], old: str, new: str
) -> None:
    stored, fresh = _document(before, old), _document(after, new)
    changed = correction([stored], fresh, statement_id="s-c1")
    if changed is None:
        assert stored["total"] == fresh["total"]
        return
    assert correction([stored, changed], fresh, statement_id="s-c2") is None
    assert _cents(stored["total"]) + _cents(changed["total"]) == _cents(fresh["total"])
    assert text_of(stored) == text_of(_document(before, old))


spans = st.lists(
    st.tuples(st.integers(0, 8), st.one_of(st.none(), st.integers(1, 8)), st.sampled_from("xy")),
    max_size=8,
)


@LAWS
@given(spans)
def test_at_every_instant_the_row_recorded_last_counts(
    given_spans: list[tuple[int, int | None, str]],
) -> None:
    rows = [
        (at, key, start, None if length is None else start + length)
        for at, (start, length, key) in enumerate(given_spans)
    ]
    frame = pl.DataFrame(
        [
            (one, key, NOON + start * HOUR, None if end is None else NOON + end * HOUR)
            for one, key, start, end in rows
        ],
        schema={
            "id": pl.Int64,
            "key": pl.String,
            "valid_from_at": pl.Datetime("us", "UTC"),
            "valid_until_at": pl.Datetime("us", "UTC"),
        },
        orient="row",
    )
    found = dated.latest(frame, key=("key",), identity="id").rows(named=True)
    for key in "xy":
        for half_hour in range(40):
            at = NOON + half_hour * HOUR / 2
            hour = half_hour / 2
            holding = [
                one for one, own, start, end in rows
                if own == key and start <= hour and (end is None or hour < end)
            ]  # fmt: skip
            told = [
                one["id"] for one in found
                if one["key"] == key and one["valid_from_at"] <= at
                and (one["valid_until_at"] is None or one["valid_until_at"] > at)
            ]  # fmt: skip
            assert told == ([max(holding)] if holding else [])


def _document(rows: list[dict[str, object]], rate: str) -> Document:
    found = made(rows, [(model, None, rate) for model in MODELS])
    if found.currency is None:
        return _document([*rows, held(used=0)], rate)
    heading = Heading(
        statement_id="s", time_zone="UTC", watermark_at=NOON, config_hash="h", reason=None
    )
    return statement(found, heading)


def _bills(found: Costing) -> list[object]:
    borne = bills(found, ("tenant_id",), is_of_holder=True)
    return [(one.key, one.direct, one.idle, one.shared) for one in borne.groups]


def _cents(text: object) -> int:
    return int(str(text).replace(".", ""))
