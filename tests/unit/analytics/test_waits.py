"""How long workloads waited, and what they then held."""

from __future__ import annotations

from datetime import datetime, timedelta

import polars as pl
import pytest

from analytics.survival import survival, survival_quantile_s
from analytics.waits import attempts, gpu_hours_by, wait_summary
from tests.support.analytics_frames import HOUR, MINUTE, NOON, ONE_HOUR, Row, rows


def told(*events: tuple[str, datetime], attempt: int = 1, uid: str = "w1") -> list[Row]:
    return [
        {"transition": name, "occurred_at": at, "attempt": attempt, "workload_uid": uid}
        for name, at in events
    ]


def seen(events: list[Row], *workloads: Row) -> dict[str, object]:
    found = attempts(
        rows("transition_history", *events),
        rows("workload_current", *(workloads or ({},))),
        ONE_HOUR,
    )
    return found.row(0, named=True)


def test_scheduled_and_finished() -> None:
    row = seen(told(("created", NOON), ("scheduled", NOON + MINUTE), ("finished", NOON + HOUR / 2)))
    assert (row["is_scheduled"], row["wait_s"]) == (True, 60.0)
    assert row["gpu_hours"] == pytest.approx(29 / 60)


def test_scheduled_at_once_waited_zero() -> None:
    row = seen(told(("created", NOON), ("scheduled", NOON)))
    assert (row["wait_s"], row["gpu_hours"]) == (0.0, 1.0)


def test_gave_up_is_censored_at_its_end() -> None:
    row = seen(told(("created", NOON), ("finished", NOON + MINUTE)))
    assert (row["is_scheduled"], row["wait_s"], row["gpu_hours"]) == (False, 60.0, 0.0)


def test_still_waiting_is_censored_at_the_end_of_the_period() -> None:
    row = seen(told(("created", NOON + HOUR / 2)))
    assert (row["is_scheduled"], row["wait_s"], row["ended_at"]) == (False, 1800.0, None)


def test_what_happens_after_the_period_is_not_known_yet() -> None:
    events = told(("created", NOON), ("scheduled", NOON + HOUR), ("finished", NOON + 2 * HOUR))
    row = seen(events)
    assert (row["is_scheduled"], row["wait_s"]) == (False, 3600.0)


def test_work_from_before_holds_but_is_not_of_the_period() -> None:
    row = seen(told(("created", NOON - HOUR), ("scheduled", NOON - HOUR / 2)))
    assert (row["is_in_period"], row["gpu_hours"]) == (False, 1.0)


def test_a_requeue_starts_a_new_wait() -> None:
    events = [
        *told(("created", NOON), ("scheduled", NOON + MINUTE), ("preempted", NOON + 10 * MINUTE)),
        *told(("requeued", NOON + 10 * MINUTE), ("scheduled", NOON + 15 * MINUTE), attempt=2),
    ]
    found = attempts(rows("transition_history", *events), rows("workload_current", {}), ONE_HOUR)
    assert found["wait_s"].to_list() == [60.0, 300.0]
    assert found["gpu_hours"].to_list() == pytest.approx([9 / 60, 45 / 60])


@pytest.mark.parametrize(
    ("count", "milli", "size", "gpu_hours"),
    [
        (0, 0, "no GPU", 0.0),
        (1, 500, "part of a GPU", 0.5),
        (1, 1000, "1 GPU", 1.0),
        (1, None, "1 GPU", 1.0),
        (4, 1000, "2 or more GPUs", 4.0),
        (None, None, None, None),
    ],
)
def test_size(
    *, count: int | None, milli: int | None, size: str | None, gpu_hours: float | None
) -> None:
    row = seen(
        told(("created", NOON), ("scheduled", NOON)), {"gpu_count": count, "gpu_milli": milli}
    )
    assert (row["size_class"], row["gpu_hours"]) == (size, gpu_hours)


def curve_of(*waits: tuple[float, bool]) -> pl.DataFrame:
    frame = pl.DataFrame(
        {"wait_s": [wait for wait, _ in waits], "is_scheduled": [ended for _, ended in waits]},
        schema={"wait_s": pl.Float64, "is_scheduled": pl.Boolean},
    )
    return survival(frame)


def test_kaplan_meier_textbook_case() -> None:
    # Kaplan & Meier (1958): 6 patients; censored ones leave the risk set after their time.
    curve = curve_of((1, True), (3, True), (4, False), (5, True), (5, True), (6, False))
    assert curve["at_risk_count"].to_list() == [6, 5, 3]
    assert curve["waiting_ratio"].to_list() == pytest.approx([5 / 6, 4 / 6, 4 / 6 * 1 / 3])


def test_censored_at_a_time_is_at_risk_there() -> None:
    assert curve_of((2, True), (2, False))["waiting_ratio"].to_list() == [0.5]


@pytest.mark.parametrize(
    ("quantile", "expected"),
    [(0.49, 1.0), (0.5, 1.0), (0.51, None), (0.0, 1.0)],
)
def test_quantile_that_is_never_reached_is_unknown(quantile: float, expected: float | None) -> None:
    assert survival_quantile_s(curve_of((1, True), (2, False)), quantile) == expected


def test_nobody_waited() -> None:
    assert survival_quantile_s(curve_of(), 0.5) is None


def test_summary_counts_and_quantiles() -> None:
    frame = pl.DataFrame(
        {
            "wait_s": [0.0, 10.0, 100.0, 50.0],
            "is_scheduled": [True, True, True, False],
            "queue": ["a", "a", "a", "b"],
        }
    )
    found = wait_summary(frame, "queue")
    first, second = found.rows(named=True)
    assert (first["attempt_count"], first["never_scheduled_count"]) == (3, 0)
    assert first["p50_wait_s"] == 10.0
    assert first["p75_wait_s"] == 55.0
    assert (first["zero_wait_count"], first["over_60_s_count"]) == (1, 1)
    assert (second["never_scheduled_count"], second["mean_wait_s"]) == (1, None)
    assert second["km_p50_wait_s"] is None


def test_hours_by_key_say_what_they_leave_out() -> None:
    found = attempts(
        rows(
            "transition_history",
            *told(("created", NOON), ("scheduled", NOON)),
            *told(("created", NOON), ("scheduled", NOON), uid="w2"),
        ),
        rows("workload_current", {}, {"workload_uid": "w2", "gpu_count": None}),
        ONE_HOUR,
    )
    row = gpu_hours_by(found, "qos_class").row(0, named=True)
    assert row == {
        "qos_class": "LS",
        "attempt_count": 2,
        "gpu_hours": 1.0,
        "share_ratio": 1.0,
        "unknown_count": 1,
    }


def test_observation_ends_with_the_period_not_with_the_wall_clock() -> None:
    assert ONE_HOUR.length == timedelta(hours=1)
    row = seen(told(("created", NOON), ("scheduled", NOON)))
    assert row["gpu_hours"] == 1.0
