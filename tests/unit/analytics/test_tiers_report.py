"""Jobs on a tier above their need: named only where everything is known, and with what it costs."""

from __future__ import annotations

import polars as pl
import pytest

from analytics import need
from analytics.cost.costing import INPUTS as COST_INPUTS
from analytics.inputs import SCHEMAS
from analytics.reports.model import Question, Report
from analytics.reports.tiers import DEFINITION, build
from steward.errors import UsageError
from steward.units import TICKS_PER_GPU_HOUR
from tests.support.analytics_frames import ONE_HOUR, frames, rows
from tests.support.focus_sample import price, state
from tests.support.ledger_rows import free, held, ledger

GIB = 1_073_741_824
BIG, SMALL = "NVIDIA H100 80GB HBM3", "NVIDIA L40S"
SMALL_ROOM = 45 * GIB
JOB = {"model": BIG, "memory_peak_bytes": 10 * GIB, "used": 1, "idle": 1, "ineffective": 9}
"""A tenth of an H100 while active: 27 % of an L40S by compute, 39 % by bandwidth."""


def world(*given: dict[str, object], gpu_count: int | None = 1) -> dict[str, pl.DataFrame]:
    """Return frames with the given ledger rows, an L40S beside them, and prices of both."""
    prices = (
        price(1, BIG, amount_micros_per_gpu_hour=4_000_000),
        price(2, SMALL, amount_micros_per_gpu_hour=1_000_000),
    )
    made = {
        "ledger": ledger(*given, free(model=SMALL, free_idle=1)),
        "state.price": state("price", *prices),
        "workload_current": rows("workload_current", {"gpu_count": gpu_count}),
        "device_history": rows(
            "device_history",
            {"device_uuid": "a", "model": BIG, "memory_total_bytes": 80 * GIB},
            {"device_uuid": "b", "model": SMALL, "memory_total_bytes": 48 * GIB},
        ),
    }
    return frames(**made)


def job(**given: object) -> dict[str, object]:
    return held(**{**JOB, **given})


def answer(*given: dict[str, object], gpu_count: int | None = 1, by: str | None = None) -> Report:
    return build(world(*given, gpu_count=gpu_count), Question(period=ONE_HOUR, by=by))


def reason(report: Report) -> str:
    """Return what was said of the only job."""
    (found,) = table(report, "judged").filter(pl.col("job_count") > 0)["reason"]
    return str(found)


def table(report: Report, key: str) -> pl.DataFrame:
    return next(one.frame for one in report.tables if one.key == key)


def test_job_that_a_weaker_gpu_would_carry_is_named_with_its_money() -> None:
    report = answer(job())
    (row,) = table(report, "above_need").to_dicts()
    assert (row["model_there"], row["capability"], row["capability_there"]) == (SMALL, "S", "B")
    assert row["load_ratio"] == pytest.approx(0.1)
    assert row["load_there_ratio"] == pytest.approx(0.1 * 3350 / 864)
    assert (row["currency"], row["saving"]) == ("USD", "33.00")
    assert "33.00 USD less" in report.findings[0]
    figures = {one.key: one.value for one in report.figures}
    assert figures["above_need_gpu_hours"] == pytest.approx(11)
    assert figures["above_need_saving_usd"] == "33.00"


@pytest.mark.parametrize(
    ("load_there", "expected"),
    [
        pytest.param(0.69, need.ABOVE, id="below the limit"),
        pytest.param(0.70001, need.FITS, id="at the limit"),
        pytest.param(0.71, need.FITS, id="past the limit"),
    ],
)
def test_load_on_the_weaker_gpu(load_there: float, expected: str) -> None:
    load = load_there * 864 / 3350
    given = job(used=10 * load, ineffective=10 * (1 - load), idle=0)
    assert reason(answer(given)) == expected


@pytest.mark.parametrize(
    ("peak_bytes", "expected"),
    [
        pytest.param(round(43.1 * GIB), need.ABOVE, id="fits"),
        pytest.param(int(48 * GIB * need.MEMORY_LIMIT_RATIO), need.ABOVE, id="just fits"),
        pytest.param(round(43.3 * GIB), need.FITS, id="too large"),
        pytest.param(None, "memory not known", id="unknown"),
        pytest.param(0, need.ABOVE, id="measured zero"),
    ],
)
def test_memory_on_the_weaker_gpu(peak_bytes: int | None, expected: str) -> None:
    assert reason(answer(job(memory_peak_bytes=peak_bytes))) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({"tier": 2}, "use not measured", id="an upper bound is no measure"),
        pytest.param({"used": 0.4, "idle": 0, "ineffective": 3.6, "unknown": 0.9}, need.ABOVE,
                     id="enough is measured"),
        pytest.param({"used": 0.4, "idle": 0, "ineffective": 3.6, "unknown": 1}, need.ABOVE,
                     id="just enough is measured"),
        pytest.param({"used": 0.4, "idle": 0, "ineffective": 3.6, "unknown": 1.1},
                     "use not measured", id="too little is measured"),
        pytest.param({"used": 0, "ineffective": 0}, "did no measured work", id="at rest"),
        pytest.param({"used": 0.05, "ineffective": 0.4, "idle": 0.54}, "held too little",
                     id="short"),
        pytest.param({"model": "G2"}, "GPU model not known", id="unknown model"),
        pytest.param({"cluster": "other"}, need.FITS, id="no weaker GPU in its cluster"),
    ],
)  # fmt: skip
def test_job_is_never_named_on_what_is_not_known(given: dict[str, object], expected: str) -> None:
    assert reason(answer(job(**given))) == expected


@pytest.mark.parametrize(
    ("gpu_count", "expected"),
    [
        pytest.param(1, need.ABOVE, id="one GPU needs no links"),
        pytest.param(2, need.FITS, id="several keep their links"),
        pytest.param(None, need.FITS, id="not known: keeps its links"),
    ],
)
def test_fast_links_are_kept(gpu_count: int | None, expected: str) -> None:
    assert reason(answer(job(), gpu_count=gpu_count)) == expected


def test_difference_without_a_price_is_not_known() -> None:
    made = world(job())
    only = state("price", price(1, BIG))
    report = build({**made, "state.price": only}, Question(period=ONE_HOUR))
    (row,) = table(report, "above_need").to_dicts()
    assert (row["currency"], row["saving"]) == (None, None)


@pytest.mark.parametrize(
    ("rate_micros", "expected"),
    [
        pytest.param(3_999_999, need.ABOVE, id="costs less"),
        pytest.param(4_000_000, need.DEARER, id="costs the same"),
        pytest.param(4_000_001, need.DEARER, id="costs more"),
    ],
)
def test_weaker_gpu_that_costs_no_less_is_no_saving(rate_micros: int, expected: str) -> None:
    prices = state(
        "price",
        price(1, BIG, amount_micros_per_gpu_hour=4_000_000),
        price(2, SMALL, amount_micros_per_gpu_hour=rate_micros),
    )
    report = build({**world(job()), "state.price": prices}, Question(period=ONE_HOUR))
    assert reason(report) == expected


def test_use_by_tier_adds_up() -> None:
    report = answer(job(), held(model="G2", unknown=2))
    found = table(report, "tiers")
    assert found["capability"].to_list() == ["S", "B", None]
    assert found["gpu_hours"].sum() == pytest.approx(14)
    assert found["used_ratio"].to_list() == [pytest.approx(1 / 11), None, None]
    assert found["cost"].to_list() == ["44.00", "1.00", None]
    assert report.findings[-1].startswith("No tier is known of G2: record one")


def test_tiers_by_another_word() -> None:
    report = answer(job(), by="user")
    assert table(report, "tiers_by_user")["owner"].to_list() == ["ann"]
    with pytest.raises(UsageError):
        answer(job(), by="capability")


def test_nothing_is_no_finding() -> None:
    empty = {name: pl.DataFrame(schema=SCHEMAS[name]) for name in DEFINITION.inputs}
    report = build(empty, Question(period=ONE_HOUR))
    assert report.findings == ()
    values = {one.key: one.value for one in report.figures}
    assert values["above_need_gpu_hours"] is None
    assert values["above_need_ratio"] is None


def test_inputs_hold_what_cost_needs() -> None:
    assert set(COST_INPUTS) <= set(DEFINITION.inputs)


def test_jobs_are_summed_over_spans_and_rows() -> None:
    two = ledger(job(workload_class="x"), job(workload_class="y", used=0, idle=0, ineffective=1))
    (row,) = need.jobs(two, rows("workload_current")).to_dicts()
    assert row["gpu_hours"] == pytest.approx(12)
    assert row["workload_class"] == "x"
    assert row["load_ratio"] == pytest.approx(1 / 11)
    assert two["wall_ticks"].sum() == 12 * TICKS_PER_GPU_HOUR
