"""Laws of the FOCUS export: it adds up exactly, whatever the ledger and however it is ordered."""

from __future__ import annotations

import json
from decimal import Decimal

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.cost.costing import costing
from analytics.focus.amounts import written
from analytics.focus.export import export
from analytics.focus.terms import Terms
from tests.support.focus_sample import TWO_HOURS, hour, price, sample_frames
from tests.support.ledger_rows import free, held, ledger

HOURS = st.integers(0, 5_000).map(lambda n: n / 1_260)
MODELS = st.sampled_from(["H100", "A100", "L40S"])
HELD = st.builds(
    lambda model, team, uid, node, at, used, idle, unknown: held(
        model=model, tenant_id=team, workload_uid=uid, node=node, used=used, idle=idle,
        unknown=unknown, **hour(at),
    ),
    MODELS, st.sampled_from(["a", "b", None]), st.sampled_from(["w1", "w2", None]),
    st.sampled_from(["n1", "n2"]), st.integers(0, 1), HOURS, HOURS, HOURS,
)  # fmt: skip
FREE = st.builds(
    lambda model, at, idle, stranded, down, reserved: free(
        model=model, free_idle=idle, stranded=stranded, down=down, reserved_unused=reserved,
        **hour(at),
    ),
    MODELS, st.integers(0, 1), HOURS, HOURS, HOURS, HOURS,
)  # fmt: skip
ROWS = st.lists(HELD | FREE, max_size=12)
RATES = st.tuples(*[st.integers(0, 99_999_999)] * 3)


def priced(rows: list[dict[str, object]], rates: tuple[int, ...]) -> pl.DataFrame:
    prices = tuple(
        price(number, model, amount_micros_per_gpu_hour=rate, purchase_type=kind)
        for number, model, rate, kind in zip(
            (1, 2, 3), ("H100", "A100", "L40S"), rates, ("on_demand", "reserved", "tco"),
            strict=True,
        )
    )  # fmt: skip
    frames = sample_frames(rows=ledger(*rows), prices=prices, shared=False)
    return costing(frames, TWO_HOURS).rows.with_columns(
        sku=pl.lit(None, dtype=pl.String), list_rate_micros=pl.lit(None, dtype=pl.Int64)
    )


@settings(max_examples=200)
@given(ROWS, RATES, st.sampled_from(["internal", "split"]))
def test_costs_add_up_to_what_is_charged(
    rows: list[dict[str, object]], rates: tuple[int, ...], mode: str
) -> None:
    known = priced(rows, rates)
    version = "1.3" if mode == "split" else "1.2"
    found = export(known, terms=Terms(), mode=mode, version=version)  # type: ignore[arg-type]  # sampled from both
    total = written(int(known["capacity_parts"].sum()))
    for name in ("EffectiveCost", "BilledCost", "ContractedCost", "ListCost"):
        assert sum(found.frame[name], Decimal(0)) == total
    held_rows = found.frame.filter(pl.col("x_CostLeaf") == "allocated")
    parts = held_rows.select(
        pl.sum_horizontal("x_UsedCost", "x_AllocatedIdleCost", "x_UnknownUseCost")
    ).to_series()
    assert parts.to_list() == held_rows["EffectiveCost"].to_list()


@settings(max_examples=200)
@given(ROWS, RATES)
def test_shares_of_each_charge_add_up_to_one(
    rows: list[dict[str, object]], rates: tuple[int, ...]
) -> None:
    found = export(priced(rows, rates), terms=Terms(), mode="split", version="1.3").frame
    shares: dict[tuple[object, ...], Decimal] = {}
    for row in found.iter_rows(named=True):
        (element,) = json.loads(row["AllocatedMethodDetails"], parse_float=Decimal)["Elements"]
        key = tuple(row[name] for name in ("ChargePeriodStart", "ResourceId", "SkuPriceId"))
        shares[key] = shares.get(key, Decimal(0)) + element["AllocatedRatio"]
    assert set(shares.values()) <= {Decimal(1)}


@settings(max_examples=200)
@given(ROWS, RATES, st.randoms(use_true_random=False))
def test_order_of_rows_does_not_matter(
    rows: list[dict[str, object]], rates: tuple[int, ...], shuffle: object
) -> None:
    mixed = list(rows)
    shuffle.shuffle(mixed)  # type: ignore[attr-defined]  # Hypothesis' own Random
    first = export(priced(rows, rates), terms=Terms()).frame
    assert first.equals(export(priced(mixed, rates), terms=Terms()).frame)
