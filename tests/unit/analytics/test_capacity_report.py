"""Demand by day and tier, what to buy or retire, and the report that tells it."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import polars as pl
import pytest

from analytics.capability import with_capability
from analytics.demand import ALL, ANY, UNKNOWN, daily, wanted_tiers
from analytics.inputs import SCHEMAS
from analytics.planning import outlook
from analytics.renewal import BUY, KEEP, NOT_JUDGED, RETIRE, TierDemand, verdicts
from analytics.reports.capacity import DEFINITION, build
from analytics.reports.model import Question, Report
from analytics.waits import attempts
from steward.period import Period
from tests.support.analytics_frames import frames, rows
from tests.support.focus_sample import price, state
from tests.support.ledger_rows import free, held, ledger

START = datetime(2026, 5, 4, tzinfo=UTC)
DAY = timedelta(days=1)
HOUR = timedelta(hours=1)
MODEL, OTHER = "NVIDIA A100-SXM4-40GB", "NVIDIA A100-SXM4-80GB"
TWO_DAYS = Period(START, START + 2 * DAY)


def day(number: int) -> dict[str, object]:
    """Return the ends of one day."""
    return {"started_at": START + number * DAY, "ended_at": START + (number + 1) * DAY}


def waits(*given: tuple[datetime, datetime | None, str | None], period: Period) -> pl.DataFrame:
    """Return attempts that asked for two GPUs: created, scheduled, models."""
    moved = [
        {"workload_uid": f"w{number}", "occurred_at": at, "transition": name}
        for number, (created, scheduled, _) in enumerate(given)
        for name, at in (("created", created), ("scheduled", scheduled))
        if at is not None
    ]
    asked = [
        {"workload_uid": f"w{number}", "gpu_count": 2, "gpu_models": models}
        for number, (_, _, models) in enumerate(given)
    ]
    found = attempts(
        rows("transition_history", *[{"cluster": "c", **row} for row in moved]),
        rows("workload_current", *asked),
        period,
    )
    return wanted_tiers(found, None)


def series(found: pl.DataFrame, tier: str, name: str) -> list[float]:
    return found.filter(pl.col("capability") == tier)[name].to_list()


def test_held_and_waiting_gpus_are_means_of_the_day() -> None:
    given = ledger(
        held(model=MODEL, used=36, idle=12, **day(0)),
        free(model=MODEL, free_idle=24, down=24, **day(0)),
        free(model=MODEL, free_idle=96, **day(1)),
    )
    waiting = waits((START + 18 * HOUR, START + DAY + 12 * HOUR, MODEL), period=TWO_DAYS)
    found = daily(with_capability(given), waiting, TWO_DAYS, zone="UTC")
    assert found["day"].unique().sort().to_list() == [date(2026, 5, 4), date(2026, 5, 5)]
    assert series(found, "A", "capacity_gpu_count") == [4, 4]
    assert series(found, "A", "usable_gpu_count") == [3, 4]
    assert series(found, "A", "allocated_gpu_count") == [2, 0]
    assert series(found, "A", "waiting_gpu_count") == [0.5, 1]
    assert series(found, "A", "demand_gpu_count") == [2.5, 1]
    assert series(found, ALL, "demand_gpu_count") == [2.5, 1]
    assert found["is_whole"].all()


@pytest.mark.parametrize(
    ("models", "tier"),
    [
        pytest.param(None, ANY, id="any GPU"),
        pytest.param("", ANY, id="no model named"),
        pytest.param(MODEL, "A", id="one model"),
        pytest.param(f"{MODEL}|Tesla T4", "C", id="the weakest of several"),
        pytest.param("G2", UNKNOWN, id="a model that nobody knows"),
    ],
)
def test_tier_that_work_waits_for(models: str | None, tier: str) -> None:
    found = waits((START, None, models), period=TWO_DAYS)
    assert found["capability"].to_list() == [tier]


def test_work_for_any_gpu_counts_in_the_whole_only() -> None:
    given = with_capability(ledger(held(model=MODEL, used=24, **day(0))))
    waiting = waits((START, START + 12 * HOUR, None), period=TWO_DAYS)
    found = daily(given, waiting, TWO_DAYS, zone="UTC")
    assert found["capability"].unique().sort().to_list() == ["A", ALL]
    assert series(found, "A", "waiting_gpu_count") == [0, 0]
    assert series(found, ALL, "waiting_gpu_count") == [1, 0]


def test_wait_that_goes_on_counts_to_the_end_of_the_period() -> None:
    waiting = waits((START - DAY, None, MODEL), period=TWO_DAYS)
    found = daily(with_capability(ledger()), waiting, TWO_DAYS, zone="UTC")
    assert series(found, "A", "waiting_gpu_count") == [2, 2]


def test_part_of_a_day_is_no_whole_day() -> None:
    period = Period(START + HOUR, START + DAY)
    ends = {"started_at": period.from_at, "ended_at": period.until_at}
    given = with_capability(ledger(held(model=MODEL, used=23, **ends)))
    found = daily(given, waits(period=period), period, zone="UTC")
    assert found["is_whole"].to_list() == [False, False]
    assert series(found, "A", "allocated_gpu_count") == [1]


def test_days_are_those_of_the_zone() -> None:
    given = with_capability(ledger(held(model=MODEL, used=24, **day(0))))
    found = daily(given, waits(period=TWO_DAYS), TWO_DAYS, zone="Asia/Shanghai")
    assert found.filter(pl.col("capability") == "A")["day"].to_list() == [
        date(2026, 5, 4),
        date(2026, 5, 5),
        date(2026, 5, 6),
    ]
    assert series(found, "A", "is_whole") == [False, True, False]


def model(**given: object) -> pl.DataFrame:
    """Return one model of tier A that half is held of, and another that has two free GPUs."""
    usual: dict[str, object] = {
        "cluster": "c",
        "model": MODEL,
        "capability": "A",
        "gpu_count": 4.0,
        "held_gpu_count": 2.0,
        "free_gpu_count": 2.0,
        "held_ratio": 0.5,
        "used_ratio": 0.6,
        "coverage_ratio": 1.0,
        "down_ratio": 0.0,
    }
    other = {**usual, "model": OTHER, "free_gpu_count": 2.0, "held_ratio": 0.5}
    return pl.DataFrame([{**usual, **given}, other])


def demand(*, growth: float = 0.0, count: int = 14, **given: float) -> dict[str, TierDemand]:
    """Return a demand of tier A of 4 GPUs against 8, growing so much per day."""
    days = [4 + growth * (number - count + 1) for number in range(count)]
    usual = {"usable": 8.0, "demand": 4.0, "waiting": 0.0, "held_ratio": 0.5} | given
    tier = TierDemand(
        capability="A",
        day_count=count,
        outlook=outlook(days),
        usable=usual["usable"],
        demand=usual["demand"],
        waiting=usual["waiting"],
        held_ratio=usual["held_ratio"],
    )
    return {"A": tier}


def judged(models: pl.DataFrame, tiers: dict[str, TierDemand]) -> str:
    return str(verdicts(models, tiers)["verdict"][0])


@pytest.mark.parametrize(
    ("growth", "expected"),
    [
        pytest.param(4 / 55, BUY, id="full within the reach of the forecast"),
        pytest.param(4 / 57, KEEP, id="beyond what two weeks can tell"),
        pytest.param(0.0, KEEP, id="flat"),
        pytest.param(-1.0, KEEP, id="falling"),
    ],
)
def test_growing_demand_asks_for_more(growth: float, expected: str) -> None:
    assert judged(model(), demand(growth=growth)) == expected


@pytest.mark.parametrize(
    ("count", "growth", "expected"),
    [
        pytest.param(28, 4 / 89, BUY, id="full sooner than hardware comes"),
        pytest.param(28, 4 / 90, BUY, id="full when hardware comes"),
        pytest.param(28, 4 / 91, KEEP, id="full later"),
    ],
)
def test_when_to_buy(count: int, growth: float, expected: str) -> None:
    assert judged(model(), demand(count=count, growth=growth)) == expected


@pytest.mark.parametrize(
    ("waiting", "held_ratio", "expected"),
    [
        pytest.param(0.9, 0.85, BUY, id="waits and full"),
        pytest.param(0.8, 0.85, BUY, id="just waits and full"),
        pytest.param(0.7, 0.85, KEEP, id="hardly waits"),
        pytest.param(0.9, 0.84, KEEP, id="waits beside free GPUs"),
    ],
)
def test_waiting_asks_for_more_only_where_all_is_held(
    waiting: float, held_ratio: float, expected: str
) -> None:
    found = judged(model(), demand(waiting=waiting, held_ratio=held_ratio))
    assert found == expected


@pytest.mark.parametrize(
    ("used_ratio", "expected"),
    [(0.39, KEEP), (0.4, BUY), (0.41, BUY), (None, BUY), (0.0, KEEP)],
)
def test_idle_gpus_are_reclaimed_before_more_are_bought(
    used_ratio: float | None, expected: str
) -> None:
    found = verdicts(model(used_ratio=used_ratio), demand(waiting=2.0, held_ratio=0.9))
    assert found["verdict"][0] == expected
    assert ("reclaim before buying" in found["reason"][0]) is (expected == KEEP)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({"held_ratio": 0.24}, RETIRE, id="hardly held, and others have room"),
        pytest.param({"held_ratio": 0.25}, KEEP, id="held enough"),
        pytest.param({"held_ratio": 0.1, "held_gpu_count": 2.1}, KEEP, id="others lack room"),
        pytest.param({"held_ratio": 0.1, "down_ratio": 0.2}, KEEP, id="down: repair first"),
        pytest.param({"held_ratio": None}, KEEP, id="never usable"),
        pytest.param({"held_ratio": 0.0, "held_gpu_count": 0.0}, RETIRE, id="never held"),
    ],
)
def test_what_may_go(given: dict[str, object], expected: str) -> None:
    assert judged(model(**given), demand()) == expected


def hardly_held(name: str, *, held: float, free: float) -> pl.DataFrame:
    return model(
        model=name, held_ratio=held / (held + free), held_gpu_count=held, free_gpu_count=free
    ).head(1)


@pytest.mark.parametrize(
    ("free", "expected"),
    [
        pytest.param(
            (9.0, 8.0, 0.0), [RETIRE, KEEP, KEEP], id="two do not stand in for each other"
        ),
        pytest.param((9.0, 8.0, 2.9), [RETIRE, KEEP, KEEP], id="a third has room for one of them"),
        pytest.param((9.0, 8.0, 3.0), [RETIRE, RETIRE, KEEP], id="a third has room for both"),
    ],
)
def test_what_goes_first_leaves_no_room_for_the_next(
    free: tuple[float, float, float], expected: list[str]
) -> None:
    least, less, full = free
    given = pl.concat(
        [
            hardly_held("one", held=1.0, free=least),
            hardly_held("two", held=2.0, free=less),
            hardly_held("three", held=50.0, free=full),
        ]
    )
    assert verdicts(given, demand())["verdict"].to_list() == expected
    backwards = verdicts(given.reverse(), demand())["verdict"].to_list()
    assert backwards[::-1] == expected


def test_models_are_not_judged_without_tier_or_days() -> None:
    assert judged(model(capability=None), demand()) == NOT_JUDGED
    assert judged(model(), demand(count=13)) == NOT_JUDGED
    assert judged(model(), {}) == NOT_JUDGED


def fortnight(count: int = 14) -> Report:
    """Return the report over days on which demand grows by one GPU each."""
    period = Period(START, START + count * DAY)
    given = [
        row
        for number in range(count)
        for row in (
            held(model=MODEL, used=24 * (number + 1), **day(number)),
            free(model=MODEL, free_idle=24 * (39 - number), **day(number)),
        )
    ]
    made = frames(
        **{
            "ledger": ledger(*given),
            "state.price": state("price", price(1, MODEL, amount_micros_per_gpu_hour=1_000_000)),
            "device_history": rows("device_history", {"model": MODEL}),
            "node_history": rows("node_history", {}),
        }
    )
    return build(made, Question(period=period))


def test_report_tells_when_it_is_full() -> None:
    report = fortnight()
    figures = {one.key: one.value for one in report.figures}
    assert figures["usable_gpu_count"] == 40
    assert figures["demand_gpu_count"] == 11
    assert figures["left_expected_s"] == pytest.approx(26 * 86_400)
    tables = {one.key: one.frame for one in report.tables}
    row = tables["demand"].filter(pl.col("capability") == "A").row(0, named=True)
    assert row["weekly_change_gpu_count"] == pytest.approx(7)
    assert row["ahead_middle_gpu_count"] == pytest.approx(44)
    assert row["short_gpu_count"] == pytest.approx(4)
    (verdict,) = tables["models"].to_dicts()
    assert (verdict["verdict"], verdict["cost"]) == (BUY, "13440.00")
    assert verdict["cost_per_used_gpu_hour"] == "5.33"
    assert report.findings[0].startswith(f"Buy {MODEL} in c: demand of tier A")
    assert tables["daily"].height == 28


def test_too_few_days_are_said() -> None:
    report = fortnight(13)
    figures = {one.key: one.value for one in report.figures}
    assert figures["left_expected_s"] is None
    assert report.findings == ("A forecast needs 14 whole days, the period has 13.",)
    tables = {one.key: one.frame for one in report.tables}
    assert set(tables["demand"]["basis"]) == {"needs 14 whole days, has 13"}
    assert tables["models"]["verdict"].to_list() == [NOT_JUDGED]


def test_nothing_stored_gives_empty_tables() -> None:
    empty = {name: pl.DataFrame(schema=SCHEMAS[name]) for name in DEFINITION.inputs}
    report = build(empty, Question(period=TWO_DAYS))
    values = {one.key: one.value for one in report.figures}
    assert values["usable_gpu_count"] in {None, 0.0}
    assert values["left_expected_s"] is None
