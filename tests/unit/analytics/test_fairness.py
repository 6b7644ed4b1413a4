"""Quota over time, who borrowed from whom, who waited, and faded shares."""

from __future__ import annotations

from datetime import timedelta

import polars as pl
import pytest

from analytics.fairness import (
    HALF_LIFE_S,
    fair_shares,
    jain,
    lending,
    quota_by_day,
    quota_spans,
    quota_use,
    starvation,
)
from steward.period import Period
from tests.support.analytics_frames import HOUR, NOON
from tests.support.governance_rows import Row, told
from tests.support.ledger_rows import held, ledger

DAY = Period(NOON, NOON + 24 * HOUR)
TWO_HOURS = Period(NOON, NOON + 2 * HOUR)
WEEK = timedelta(seconds=HALF_LIFE_S)


def quota(tenant: str, at: float = 0, /, **given: object) -> Row:
    """One reading of a team's quota, hours after noon."""
    return {
        "tenant_id": tenant,
        "queue": f"{tenant}-queue",
        "observed_at": NOON + at * HOUR,
        **{f"{name}_gpu_count": value for name, value in given.items() if name != "pending"},
        "pending_workload_count": given.get("pending", 0),
    }


def spans(*readings: Row, period: Period = TWO_HOURS) -> pl.DataFrame:
    return quota_spans(told("quota_use", *readings), period)


def test_each_reading_holds_until_the_next() -> None:
    found = quota_use(
        spans(quota("a", -1, used=4.0), quota("a", 0.5, used=8.0), quota("a", 1, used=10.0)),
        "tenant_id",
    ).row(0, named=True)
    assert found["used_gpu_hours"] == 4 * 0.5 + 8 * 0.5 + 10
    assert found["guaranteed_gpu_hours"] == 16
    assert found["borrowed_gpu_hours"] == 2
    assert found["unused_gpu_hours"] == 4 * 0.5
    assert (found["used_of_guaranteed_ratio"], found["known_ratio"]) == (1.0, 1.0)


def test_before_the_first_reading_nothing_is_known() -> None:
    found = quota_use(spans(quota("a", 1.5, used=4.0)), "tenant_id")
    assert found["used_gpu_hours"].to_list() == [2.0]


@pytest.mark.parametrize(
    ("given", "used", "ratio", "known"),
    [
        pytest.param({"used": 0.0}, 0.0, 0.0, 1.0, id="zero"),
        pytest.param({"used": None}, None, None, 0.0, id="null"),
        pytest.param({"used": 4.0, "guaranteed": 0.0}, 8.0, None, 1.0, id="no guarantee"),
        pytest.param({"used": 4.0, "guaranteed": None}, 8.0, None, 0.0, id="guarantee unknown"),
    ],
)
def test_zero_is_not_unknown(
    given: dict[str, object], used: float | None, ratio: float | None, known: float
) -> None:
    found = quota_use(spans(quota("a", **given)), "tenant_id").row(0, named=True)
    assert (found["used_gpu_hours"], found["used_of_guaranteed_ratio"]) == (used, ratio)
    assert found["known_ratio"] == known


def test_zero_and_null_together() -> None:
    found = quota_use(spans(quota("a", 0, used=0.0), quota("a", 1, used=None)), "tenant_id")
    assert found.select("used_gpu_hours", "known_ratio").rows() == [(0.0, 0.5)]


@pytest.mark.parametrize(
    ("later", "ratio"),
    [
        pytest.param({"used": None}, 0.5, id="use unknown for half of the time"),
        pytest.param({"used": 4.0, "guaranteed": None}, 0.5, id="guarantee unknown for half"),
        pytest.param({"used": 0.0}, 0.25, id="zero for half"),
    ],
)
def test_use_is_compared_where_guarantee_and_use_are_told(
    later: dict[str, object], ratio: float
) -> None:
    found = quota_use(spans(quota("a", 0, used=4.0), quota("a", 1, **later)), "tenant_id")
    assert found["used_of_guaranteed_ratio"].to_list() == [ratio]


def test_two_models_of_one_queue_add_up() -> None:
    both = (quota("a", used=1.0), {**quota("a", used=2.0), "gpu_model": "T4"})
    assert quota_use(spans(*both), "queue")["used_gpu_hours"].to_list() == [6.0]


def test_quota_without_model() -> None:
    found = spans({**quota("a", 0, used=1.0), "gpu_model": None},
                  {**quota("a", 1, used=3.0), "gpu_model": None})  # fmt: skip
    assert quota_use(found, "tenant_id")["used_gpu_hours"].to_list() == [4.0]


def test_quota_day_by_day() -> None:
    """Midnight half an hour after the start, given twice; one outside the period."""
    given = spans(quota("a", used=4.0), quota("a", 1, used=8.0))
    edges = [NOON + HOUR / 2, NOON + HOUR / 2, NOON - HOUR]
    found = quota_by_day(given, "tenant_id", edges=edges, period=TWO_HOURS)
    assert found.select("starts_at", "used_gpu_hours").rows() == [
        (NOON, 2.0),
        (NOON + HOUR / 2, 10.0),
    ]


def test_loans_are_spread_over_what_is_unused() -> None:
    """Team b borrows 6; a leaves 2 and c leaves 4 unused: 2 and 4 are lent, for two hours."""
    found = lending(
        spans(quota("a", used=6.0), quota("b", used=14.0), quota("c", used=4.0)), "tenant_id"
    )
    assert found.rows() == [("b", "a", 4.0), ("b", "c", 8.0)]


def test_two_borrowers_share_in_proportion() -> None:
    """Team b borrows 2, c borrows 6; a leaves 4: half of what is borrowed has a lender."""
    found = lending(
        spans(quota("a", used=4.0), quota("b", used=10.0), quota("c", used=14.0)), "tenant_id"
    )
    assert found.rows() == [("b", "a", 2.0), ("c", "a", 6.0)]


@pytest.mark.parametrize(
    "readings",
    [
        pytest.param([quota("a", used=8.0), quota("b", used=10.0)], id="nothing unused"),
        pytest.param([quota("a", used=4.0), quota("b", used=8.0)], id="nothing borrowed"),
        pytest.param(
            [quota("a", used=4.0), {**quota("b", used=10.0), "cohort": "other"}],
            id="another cohort",
        ),
        pytest.param(
            [quota("a", used=4.0), {**quota("b", used=10.0), "gpu_model": "T4"}], id="another model"
        ),
        pytest.param(
            [quota("a", used=4.0), {**quota("b", used=10.0), "cluster": "d"}], id="another cluster"
        ),
        pytest.param(
            [{**quota("a", used=4.0), "cohort": None}, {**quota("b", used=10.0), "cohort": None}],
            id="no cohort",
        ),
        pytest.param([quota("a", used=None), quota("b", used=10.0)], id="use unknown"),
        pytest.param([], id="no quota"),
    ],
)
def test_no_loans(readings: list[Row]) -> None:
    assert lending(spans(*readings), "tenant_id").is_empty()


def test_loans_follow_the_readings() -> None:
    """For half an hour b borrows 2 of a's 4, then none."""
    found = lending(
        spans(quota("a", -2, used=4.0), quota("b", -1, used=10.0), quota("b", 0.5, used=8.0)),
        "tenant_id",
    )
    assert found.rows() == [("b", "a", 1.0)]


def test_a_team_does_not_lend_to_itself() -> None:
    two = [
        {**quota("a", used=4.0), "queue": "q1"},
        {**quota("a", used=10.0), "queue": "q2"},
    ]
    assert lending(spans(*two), "tenant_id").is_empty()
    assert lending(spans(*two), "queue").rows() == [("q2", "q1", 4.0)]


@pytest.mark.parametrize(
    ("pending", "used", "hours"),
    [
        pytest.param(1, 7.0, 2.0, id="one GPU of its own, lent"),
        pytest.param(1, 4.0, 4.0, id="no more than was borrowed"),
        pytest.param(1, 8.0, None, id="guarantee exactly used: waits for more than its own"),
        pytest.param(1, 9.0, None, id="beyond its guarantee"),
        pytest.param(0, 4.0, None, id="nobody waits"),
        pytest.param(None, 4.0, None, id="not told who waits"),
    ],
)
def test_waiting_within_the_own_guarantee(
    pending: int | None, used: float, hours: float | None
) -> None:
    found = starvation(
        spans(quota("a", used=used, pending=pending), quota("b", used=10.0)), "tenant_id"
    )
    assert found.rows() == ([] if hours is None else [("a", "b", hours)])


def test_waiting_is_laid_to_borrowers_in_proportion() -> None:
    found = starvation(
        spans(quota("a", used=4.0, pending=3), quota("b", used=10.0), quota("c", used=14.0)),
        "tenant_id",
    )
    assert found.rows() == [("a", "b", 2.0), ("a", "c", 6.0)]


def shares(*rows: dict[str, object], promised: tuple[Row, ...] = ()) -> pl.DataFrame:
    given = spans(*promised, period=DAY)
    return fair_shares(ledger(*rows), given, DAY, entity="tenant_id")


def at(end_before: timedelta, **given: object) -> dict[str, object]:
    """Held time in the last instant before a moment, so that its age is that moment's."""
    end = DAY.until_at - end_before
    return held(started_at=end - timedelta(milliseconds=1), ended_at=end, **given)


@pytest.mark.parametrize(
    ("age", "weight"),
    [
        pytest.param(timedelta(0), 1.0, id="now"),
        pytest.param(WEEK / 2, 0.5**0.5, id="half a half-life"),
        pytest.param(WEEK, 0.5, id="a half-life"),
        pytest.param(2 * WEEK, 0.25, id="two half-lives"),
    ],
)
def test_use_fades(age: timedelta, weight: float) -> None:
    found = shares(at(age, used=4))
    assert found["allocated_gpu_hours"][0] == pytest.approx(4 * weight, rel=1e-8)
    assert found["effective_gpu_hours"][0] == pytest.approx(4 * weight, rel=1e-8)


def test_dividing_a_span_changes_nothing() -> None:
    whole = shares(held(started_at=NOON, ended_at=NOON + 24 * HOUR, used=24))
    parts = shares(
        *[
            held(started_at=NOON + n * HOUR, ended_at=NOON + (n + 1) * HOUR, used=1)
            for n in range(24)
        ]
    )
    column = "allocated_gpu_hours"
    assert whole[column][0] == pytest.approx(parts[column].sum(), rel=1e-9)


def test_allocation_and_effective_use_are_two_shares() -> None:
    found = shares(
        at(timedelta(0), tenant_id="a", used=1, idle=3),
        at(timedelta(0), tenant_id="b", used=3, idle=1),
        promised=(quota("a"), quota("b")),
    )
    assert found["allocated_share_ratio"].to_list() == pytest.approx([0.5, 0.5])
    assert found["effective_share_ratio"].to_list() == pytest.approx([0.25, 0.75])
    assert found["entitled_share_ratio"].to_list() == [0.5, 0.5]
    assert found["allocated_factor_ratio"].to_list() == pytest.approx([0.5, 0.5])
    assert found["effective_factor_ratio"].to_list() == pytest.approx([2**-0.5, 2**-1.5])
    assert jain(found, "allocated_share_ratio") == pytest.approx(1.0)
    assert jain(found, "effective_share_ratio") == pytest.approx(1 / (2 * (0.25**2 + 0.75**2)))


def test_unknown_use_is_told_and_not_effective() -> None:
    found = shares(at(timedelta(0), tenant_id="a", used=1, unknown=3)).row(0, named=True)
    assert found["known_use_ratio"] == pytest.approx(0.25)
    assert found["effective_gpu_hours"] == pytest.approx(1.0)


def test_promised_and_unused_is_zero_held_and_unpromised_is_null() -> None:
    found = shares(at(timedelta(0), tenant_id="b", used=1), promised=(quota("a"),))
    rows = found.select("tenant_id", "allocated_share_ratio", "entitled_share_ratio").rows()
    assert rows == [("a", 0.0, 1.0), ("b", pytest.approx(1.0), None)]
    assert found["allocated_factor_ratio"].to_list() == [1.0, None]


def test_nobody_holds_anything() -> None:
    found = shares(promised=(quota("a"), quota("b")))
    assert found["allocated_share_ratio"].to_list() == [None, None]
    assert jain(found, "allocated_share_ratio") is None


def test_one_has_everything() -> None:
    everything = at(timedelta(0), tenant_id="a", used=1)
    found = shares(everything, promised=(quota("a"), quota("b")))
    assert jain(found, "allocated_share_ratio") == pytest.approx(0.5)


def test_nothing_at_all() -> None:
    assert shares().is_empty()
    assert jain(shares(), "allocated_share_ratio") is None
