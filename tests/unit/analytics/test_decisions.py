"""What is worth deciding, and in which order."""

from __future__ import annotations

from fractions import Fraction

import polars as pl
import pytest

from analytics import decisions
from analytics.inputs import SCHEMAS
from analytics.spells import idle_spells
from analytics.stakes import Candidate, Charged, Stake, ranked
from steward.units import TICKS_PER_GPU_HOUR
from tests.support.analytics_frames import HOUR, NOON, Row
from tests.support.ledger_rows import free, held, ledger

USD_2 = 2_000_000
WORTH = {"USD": Fraction(1), "CNY": Fraction(1, 7)}


def charged(*rows: Row, rate: int | None = USD_2, currency: str = "USD") -> Charged:
    frame = ledger(*rows).with_columns(
        rate_micros=pl.lit(rate, dtype=pl.Int64),
        currency=pl.lit(None if rate is None else currency, dtype=pl.String),
        job=pl.col("workload_uid"),
    )
    return Charged(rows=frame, factors=WORTH)


def together(*parts: Charged) -> Charged:
    return Charged(rows=pl.concat([each.rows for each in parts]), factors=WORTH)


def rests(*jobs: str, minutes: int = 30) -> pl.DataFrame:
    schema = SCHEMAS["rest"]
    found = [
        {"cluster": "c", "node": "n1", "device_uuid": f"GPU-{job}", "tenant_id": "team-a",
         "workload_uid": job, "is_idle": True, "started_at": NOON,
         "ended_at": NOON + HOUR * minutes / 60, "gpu_share_ratio": 1.0}
        for job in jobs
    ]  # fmt: skip
    return idle_spells(pl.DataFrame(found, schema=schema))


def candidate(key: str, *, hours: float, money: int | None, is_last: bool = False) -> Candidate:
    ticks = round(hours * TICKS_PER_GPU_HOUR)
    return Candidate(
        key=key,
        text=key,
        stake=Stake(ticks=ticks, priced_ticks=0 if money is None else ticks, parts=money),
        evidence="",
        row_count=1,
        coverage_ratio=None,
        rows="ledger",
        is_last=is_last,
    )


def order(*given: Candidate, wall_hours: float = 100) -> list[str]:
    return [one.key for one in ranked(given, round(wall_hours * TICKS_PER_GPU_HOUR))]


def test_only_jobs_with_a_long_rest_are_reclaimed() -> None:
    rows = charged(held(idle=2), held(idle=9, workload_uid="w2"), free(free_idle=5))
    found = decisions.reclaim(rows, rests("w1"))
    assert found.text == "Reclaim GPUs that 1 job held idle"
    assert found.evidence == (
        "1 spell of 10 minutes or more at rest; most: team-a/w1 2.0 GPU-hours"
    )  # fmt: skip
    assert found.stake.hours == 2
    assert found.stake.parts == 2 * TICKS_PER_GPU_HOUR * USD_2


@pytest.mark.parametrize(
    ("rate", "parts", "priced"),
    [
        pytest.param(USD_2, TICKS_PER_GPU_HOUR * USD_2, 1.0, id="priced"),
        pytest.param(0, 0, 1.0, id="a price of zero is money of zero"),
        pytest.param(None, None, 0.0, id="no price is no money"),
    ],
)
def test_money_of_what_is_at_stake(rate: int | None, parts: int | None, priced: float) -> None:
    rows = charged(free(stranded=1, reason="mig_geometry"), rate=rate)
    (mig, shapes) = decisions.unstrand(rows)
    assert (mig.stake.parts, mig.stake.priced_ratio) == (parts, priced)
    assert (shapes.stake.ticks, shapes.stake.priced_ratio) == (0, None)


def test_a_part_without_a_price_is_told_apart() -> None:
    rows = together(
        charged(free(reserved_unused=1, tenant_id="a", queue="q")),
        charged(free(reserved_unused=3, tenant_id="b", queue="r"), rate=None),
    )
    found = decisions.lend(rows)
    assert found.stake.priced_ratio == 0.25
    assert found.stake.parts == TICKS_PER_GPU_HOUR * USD_2
    assert found.evidence.endswith("most: b/r 3.0 GPU-hours, a/q 1.0 GPU-hours")
    assert decisions.record_prices(rows).stake.ticks == 3 * TICKS_PER_GPU_HOUR


@pytest.mark.parametrize(
    ("placeable", "ticks"),
    [
        pytest.param([2.0, 2.0], 2.0, id="two GPUs all the time"),
        pytest.param([1.0, 0.0], 0.5, id="one for half of it"),
        pytest.param([1.0, None], 0.5, id="one, and not known"),
        pytest.param([9.0, 9.0], 4.0, id="never more than was free and usable"),
        pytest.param([0.0, 0.0], 0.0, id="none"),
        pytest.param([None, None], 0.0, id="not known what is free"),
        pytest.param([], 0.0, id="no instant"),
    ],
)
def test_waiting_beside_free(placeable: list[float | None], ticks: float) -> None:
    points = pl.DataFrame(
        {"placeable_gpu_count": placeable}, schema={"placeable_gpu_count": pl.Float64}
    )
    rows = charged(free(free_idle=4))
    found = decisions.place_waiting(rows, points, step_s=1800, waiting_count=1)
    assert found.stake.hours == ticks
    assert found.stake.parts == round(ticks * TICKS_PER_GPU_HOUR) * USD_2


@pytest.mark.parametrize(
    ("unknown", "is_told"),
    [
        pytest.param(0.199, False, id="enough known"),
        pytest.param(0.2, False, id="exactly enough"),
        pytest.param(0.201, True, id="too little"),
    ],
)
def test_readings_are_restored_where_too_little_is_known(unknown: float, *, is_told: bool) -> None:
    rows = charged(held(used=1 - unknown), held(unknown=unknown, reason="unobserved"))
    assert (decisions.know_use(rows) is not None) is is_told


def test_money_ranks_where_all_of_it_is_known() -> None:
    many_cheap = candidate("many cheap", hours=9, money=1)
    few_dear = candidate("few dear", hours=1, money=5)
    assert order(many_cheap, few_dear) == ["few dear", "many cheap"]


def test_hours_rank_where_some_money_is_not_known() -> None:
    few_dear = candidate("few dear", hours=1, money=5)
    unpriced = candidate("unpriced", hours=9, money=None)
    prices = candidate("prices", hours=50, money=None, is_last=True)
    assert order(prices, few_dear, unpriced) == ["unpriced", "few dear", "prices"]


@pytest.mark.parametrize(
    ("hours", "kept"),
    [
        pytest.param(0.0999, [], id="just less than a thousandth"),
        pytest.param(0.1, [], id="exactly a thousandth"),
        pytest.param(0.1001, ["a"], id="just more"),
    ],
)
def test_little_is_not_worth_deciding(hours: float, kept: list[str]) -> None:
    assert order(candidate("a", hours=hours, money=1)) == kept


def test_ties_go_by_name() -> None:
    same = [candidate(key, hours=1, money=1) for key in "cab"]
    assert order(*same) == ["a", "b", "c"]


def test_money_of_two_currencies_is_told_in_one_or_not_at_all() -> None:
    given = free(reserved_unused=7, tenant_id="a", queue="q")
    yuan, yen = charged(given, currency="CNY"), charged(given, currency="JPY")
    found = decisions.lend(together(yuan, yen))
    assert (found.stake.hours, found.stake.priced_ratio) == (14, 0.5)
    assert found.stake.parts == TICKS_PER_GPU_HOUR * USD_2


@pytest.mark.parametrize(
    ("saving", "kept"),
    [
        pytest.param(-1, 0, id="would cost more"),
        pytest.param(0, 0, id="would cost the same"),
        pytest.param(1, 1, id="would cost less"),
        pytest.param(None, 0, id="not known without prices"),
    ],
)
def test_a_weaker_model_is_worth_it_where_it_saves(saving: int | None, kept: int) -> None:
    above = pl.DataFrame(
        {"tenant_id": ["a"], "job": ["w1"], "model": ["H100"], "model_there": ["T4"],
         "gpu_hours": [3.0], "currency": ["CNY"], "saving_parts": [saving]},
        schema_overrides={"saving_parts": pl.Int128},
    )  # fmt: skip
    found = decisions.move_down(above, charged(held(used=3)))
    assert (found.row_count, found.stake.hours) == (kept, 3.0 * kept)
    assert found.stake.parts == (Fraction(1, 7) if kept else None)
