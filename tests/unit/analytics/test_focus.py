"""The FOCUS export: what each row says, and that rows add up to what is charged."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import polars as pl
import pytest

from analytics.cost.costing import costing
from analytics.focus.columns import schema
from analytics.focus.export import Export, export
from analytics.focus.from_costing import (
    is_of,
    priced_rows,
    printed_total,
    rounding_entry,
    shared_entries,
    statement_of,
)
from analytics.focus.priced import Entry
from analytics.focus.terms import Terms
from analytics.schemas.columns import INSTANT
from steward.period import Period
from tests.support.focus_sample import (
    HOUR,
    START,
    TWO_HOURS,
    closed_row,
    hour,
    lending,
    price,
    sample_frames,
    state,
)
from tests.support.ledger_rows import free, held, ledger


def exported(*rows: dict[str, object], mode: str = "internal", **given: object) -> Export:
    """Return the export of ledger rows at the sample's prices, without shared costs."""
    frames = sample_frames(rows=ledger(*rows), shared=False)
    version = "1.3" if mode == "split" else "1.2"
    priced = priced_rows(costing(frames, TWO_HOURS))
    return export(priced, **({"terms": Terms(), "mode": mode, "version": version} | given))  # type: ignore[arg-type]  # a test's own words


def one(found: Export) -> dict[str, object]:
    """Return the only row."""
    (row,) = found.frame.to_dicts()
    return row


def test_held_time_is_the_teams() -> None:
    row = one(exported(held(used=0.5, idle=0.25, unknown=0.25, **hour(0))))
    assert (row["SubAccountId"], row["SubAccountType"]) == ("team-a", "Team")
    assert (row["ResourceId"], row["ResourceType"]) == ("w1", "Workload")
    assert row["EffectiveCost"] == row["BilledCost"] == row["ContractedCost"] == Decimal("2.5")
    assert row["ListCost"] == Decimal("3.0")
    assert (row["x_UsedCost"], row["x_AllocatedIdleCost"], row["x_UnknownUseCost"]) == (
        Decimal("1.25"),
        Decimal("0.625"),
        Decimal("0.625"),
    )
    assert row["x_EffectiveUtilization"] == pytest.approx(2 / 3)
    assert row["x_MetricCoverage"] == pytest.approx(0.75)
    assert row["PricingQuantity"] == row["ConsumedQuantity"] == 1
    assert (row["PricingCategory"], row["SkuId"]) == ("Standard", "h100-sxm")
    assert (row["ChargePeriodStart"], row["ChargePeriodEnd"]) == (START, START + HOUR)
    assert (row["BillingPeriodStart"], row["BillingPeriodEnd"]) == (
        START,
        datetime(2026, 6, 1, tzinfo=UTC),
    )
    assert json.loads(str(row["Tags"])) == {
        "steward/priority_class": "standard",
        "steward/queue": "team-a",
        "steward/workload_class": "training",
    }


@pytest.mark.parametrize(
    ("leaves", "utilization", "coverage"),
    [
        pytest.param({"used": 0, "idle": 1}, 0.0, 1.0, id="measured zero"),
        pytest.param({"unknown": 1}, None, 0.0, id="nothing known"),
        pytest.param({"idle": 0.5, "unknown": 0.5}, 0.0, 0.5, id="both"),
    ],
)
def test_use_that_is_unknown_is_null_and_not_zero(
    leaves: dict[str, float], utilization: float | None, coverage: float
) -> None:
    row = one(exported(held(**leaves, **hour(0))))
    assert (row["x_EffectiveUtilization"], row["x_MetricCoverage"]) == (utilization, coverage)


def test_time_of_an_unknown_team_is_unattributed() -> None:
    row = one(exported(held(tenant_id=None, workload_uid=None, unknown=1, **hour(0))))
    assert (row["SubAccountId"], row["ResourceId"], row["ResourceType"]) == (
        "steward:unattributed",
        None,
        None,
    )


@pytest.mark.parametrize("leaf", ["down", "stranded", "free_idle"])
def test_what_nobody_holds_is_the_pools_and_consumes_nothing(leaf: str) -> None:
    row = one(exported(free(**{leaf: 1}, **hour(0))))
    assert (row["SubAccountId"], row["SubAccountName"]) == ("steward:pool", "Pool")
    assert (row["PricingQuantity"], row["ConsumedQuantity"]) == (1, 0)
    assert row["x_CostLeaf"] == leaf
    assert row["x_UsedCost"] is row["x_EffectiveUtilization"] is row["x_MetricCoverage"] is None
    assert row["CapacityReservationId"] is None


def test_unused_guarantee_is_an_unused_reservation() -> None:
    row = one(exported(free(reserved_unused=1, queue="q", tenant_id="team-b", **hour(0))))
    assert (row["CapacityReservationId"], row["CapacityReservationStatus"]) == (
        "guarantee/c/q",
        "Unused",
    )


@pytest.mark.parametrize(
    ("row", "status", "consumed"),
    [
        pytest.param(held(model="A100", used=1, **hour(0)), "Used", Decimal(1), id="held"),
        pytest.param(free(model="A100", free_idle=1, **hour(0)), "Unused", None, id="free"),
    ],
)
def test_reserved_price_draws_on_a_commitment(
    row: dict[str, object], status: str, consumed: Decimal | None
) -> None:
    told = one(exported(row))
    assert (told["PricingCategory"], told["CommitmentDiscountStatus"]) == ("Committed", status)
    assert told["CommitmentDiscountQuantity"] == 1
    assert told["ConsumedQuantity"] == consumed


def test_time_without_a_price_is_listed_and_not_written() -> None:
    found = exported(held(model="B200", used=2, **hour(0)), held(used=1, **hour(0)))
    assert found.frame.height == 1
    assert found.unpriced.to_dicts() == [{"cluster": "c", "model": "B200", "gpu_hours": 2.0}]


def test_price_of_zero_is_written_as_zero() -> None:
    frames = sample_frames(
        rows=ledger(held(used=1, **hour(0))),
        prices=(price(1, "H100", amount_micros_per_gpu_hour=0),),
        shared=False,
    )
    found = export(priced_rows(costing(frames, TWO_HOURS)), terms=Terms())
    assert one(found)["EffectiveCost"] == 0
    assert found.unpriced.is_empty()


@pytest.mark.parametrize("mode", ["internal", "split"])
@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_nothing_gives_the_columns_only(mode: str, version: str) -> None:
    found = exported(mode=mode, version=version)
    expected = schema(version=version, mode=mode)  # type: ignore[arg-type]  # parametrised over both
    assert found.frame.schema == expected
    assert found.frame.is_empty()
    assert found.total("USD") == 0


def test_thirds_add_up_to_the_whole() -> None:
    rows = [held(used=1 / 3, workload_uid=f"w{n}", **hour(0)) for n in range(3)]
    found = exported(*rows)
    assert found.total("USD") == Decimal("2.5")
    assert found.frame["PricingQuantity"].sum() == 1
    assert min(found.frame["EffectiveCost"]) == Decimal("0.833333333333")


def test_rows_do_not_depend_on_the_order_of_the_ledger() -> None:
    rows = [held(used=1 / 7, workload_uid=f"w{n}", **hour(n % 2)) for n in range(5)]
    assert exported(*rows).frame.equals(exported(*reversed(rows)).frame)


def test_node_is_split_among_its_workloads() -> None:
    found = exported(
        held(used=1, **hour(0)),
        held(used=0.5, idle=0.5, workload_uid="w2", tenant_id="team-b", **hour(0)),
        free(free_idle=1, **hour(0)),
        held(used=1, node="n2", **hour(0)),
        mode="split",
    ).frame
    assert found["SubAccountId"].null_count() == found.height
    assert found["AllocatedResourceId"].to_list() == ["w1", "w2", None, "w1"]
    assert found["ResourceId"].to_list() == ["c/n1"] * 3 + ["c/n2"]
    assert found["AllocatedMethodId"].unique().to_list() == ["gpu-time-share/v1"]
    ratios = [_element(text)["AllocatedRatio"] for text in found["AllocatedMethodDetails"]]
    assert sum(ratios[:3], Decimal(0)) == 1
    assert ratios[3] == 1
    assert found["HostProviderName"].unique().to_list() == ["GPU platform"]
    tags = json.loads(found["AllocatedTags"][1])
    assert tags["steward/tenant"] == "team-b"
    assert found["AllocatedTags"][2] is None


def _element(text: str) -> dict[str, Decimal]:
    (element,) = json.loads(text, parse_float=Decimal)["Elements"]
    return {key: value for key, value in element.items() if isinstance(value, Decimal)}


def test_credits_and_fees_cancel_out() -> None:
    found = exported(held(used=1, **hour(0)), entries=lending()).frame
    shown = found.filter(pl.col("x_CostLeaf").is_in(["fee", "credit"]))
    assert shown["ChargeCategory"].to_list() == ["Adjustment", "Credit"]
    assert shown["BilledCost"].sum() == 0
    assert shown["ListUnitPrice"].null_count() == shown["SkuId"].null_count() == 2


def test_correction_keeps_its_own_statement_and_month() -> None:
    entry = Entry(
        kind="correction",
        tenant_id="team-a",
        charged=TWO_HOURS,
        currency="USD",
        amount=Decimal("-1.25"),
        description="late data",
        invoice_id="CB-2",
        issued_at=datetime(2026, 7, 3, tzinfo=UTC),
    )
    terms = Terms(invoice_id="CB-1", billing=Period(START, START + timedelta(days=31)))
    found = exported(held(used=1, **hour(0)), entries=(entry,), terms=terms).frame
    usage, corrected = found.to_dicts()
    assert (usage["InvoiceId"], usage["ChargeClass"]) == ("CB-1", None)
    assert (corrected["InvoiceId"], corrected["ChargeClass"]) == ("CB-2", "Correction")
    assert usage["BillingPeriodEnd"] == START + timedelta(days=31)
    assert corrected["BillingPeriodStart"] == datetime(2026, 7, 1, tzinfo=UTC)
    assert corrected["EffectiveCost"] == Decimal("-1.25")


def test_billing_months_are_those_of_the_zone() -> None:
    row = one(exported(held(used=1, **hour(0)), terms=Terms(time_zone="America/New_York")))
    assert row["BillingPeriodStart"] == datetime(2026, 4, 1, 4, tzinfo=UTC)
    assert row["BillingPeriodEnd"] == datetime(2026, 5, 1, 4, tzinfo=UTC)


def test_names_are_written_as_they_are() -> None:
    assert one(exported(held(tenant_id="团队", used=1, **hour(0))))["SubAccountName"] == "团队"


def test_shared_costs_and_rounding_reach_the_printed_total() -> None:
    cost = costing(sample_frames(), TWO_HOURS)
    shared = shared_entries(cost)
    rounding = rounding_entry(cost, shared)
    assert sum((entry.amount for entry in shared), Decimal(0)) == 1
    assert rounding is not None
    assert abs(rounding.amount) < Decimal("0.01")
    found = export(priced_rows(cost), terms=Terms(), entries=(*shared, rounding))
    assert found.total("USD") == printed_total(cost)


def test_no_rounding_row_where_nothing_is_rounded() -> None:
    frames = sample_frames(rows=ledger(held(used=1, **hour(0))), shared=False)
    assert rounding_entry(costing(frames, TWO_HOURS), ()) is None


def test_no_rounding_row_without_prices() -> None:
    frames = sample_frames(prices=(), shared=False)
    assert rounding_entry(costing(frames, TWO_HOURS), ()) is None
    assert printed_total(costing(frames, TWO_HOURS)) == 0


def test_statement_of_the_period_is_found_with_its_corrections() -> None:
    closed = state(
        "closed_period",
        closed_row(1, "A", total="2.50"),
        closed_row(2, "B", total="3.00", until_at=START + HOUR),
        closed_row(
            3, "A-1", kind="correction", corrects_statement_id="A", total="0.10",
            bills=[
                {"team": "t", "total": "0.10"}, {"team": "u", "total": "0.00"},
                {"team": None, "total": "0.20"}, {"team": "not distributed", "total": "-0.20"},
            ],
        ),
    )  # fmt: skip
    found = statement_of(closed, TWO_HOURS)
    assert found is not None
    assert (found.statement_id, found.total) == ("A", Decimal("2.50"))
    assert [(entry.tenant_id, entry.amount) for entry in found.corrections] == [
        ("t", Decimal("0.10")),
        ("steward:unattributed", Decimal("0.20")),
        (None, Decimal("-0.20")),
    ]
    rows = exported(entries=found.corrections).frame
    assert set(rows.select("SubAccountId", "SubAccountType").rows()) == {
        ("t", "Team"),
        ("steward:unattributed", "Unattributed"),
        ("steward:pool", "Pool"),
    }
    assert statement_of(closed, Period(START, START + 3 * HOUR)) is None


@pytest.mark.parametrize(("total", "agrees"), [("2.50", True), ("2.51", False)])
def test_statement_that_says_otherwise_is_told(total: str, *, agrees: bool) -> None:
    cost = costing(sample_frames(rows=ledger(held(used=1, **hour(0))), shared=False), TWO_HOURS)
    found = statement_of(state("closed_period", closed_row(1, "A", total=total)), TWO_HOURS)
    assert found is not None
    assert is_of(found, cost) is agrees


def test_instants_are_utc() -> None:
    assert exported().frame.schema["ChargePeriodStart"] == INSTANT
