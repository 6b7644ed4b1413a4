"""Jobs as recorded: created, held, still holding, never started; shares, models and the edges."""

from __future__ import annotations

from datetime import timedelta

import polars as pl
import pytest

from analytics.recorded_jobs import recorded_jobs
from steward.period import Period
from tests.support.analytics_frames import HOUR, NOON, frames, rows

PERIOD = Period(NOON, NOON + 10 * HOUR)
Row = dict[str, object]


def jobs(
    *,
    created: timedelta | None = HOUR,
    holds: tuple[Row, ...] = (),
    asked: int | None = 2,
    models: str | None = None,
) -> list[Row]:
    """Return the recorded jobs of one workload."""
    steps: list[Row] = []
    if created is not None:
        steps.append({"occurred_at": NOON + created, "workload_uid": "w", "transition": "created"})
    given = frames(
        workload_current=rows(
            "workload_current", {"workload_uid": "w", "gpu_count": asked, "gpu_models": models}
        ),
        transition_history=rows("transition_history", *steps),
        allocation_history=rows(
            "allocation_history", *[{"workload_uid": "w", **one} for one in holds]
        ),
        device_history=rows("device_history", {"device_uuid": "g1"}, {"device_uuid": "g2"}),
    )
    found = recorded_jobs(given, PERIOD)
    return found.select(
        "gpu_count", "gpu_models", "created_at", "held_at", "held_s", "is_open"
    ).to_dicts()


def hold(device: str = "g1", *, start: float, end: float | None) -> Row:
    return {
        "device_uuid": device,
        "started_at": NOON + start * HOUR,
        "ended_at": None if end is None else NOON + end * HOUR,
    }


def test_a_job_that_waited_and_held() -> None:
    (found,) = jobs(holds=(hold(start=2, end=5), hold("g2", start=2, end=6)))
    assert found == {
        "gpu_count": 2.0,
        "gpu_models": ["H100"],
        "created_at": NOON + HOUR,
        "held_at": NOON + 2 * HOUR,
        "held_s": 4 * 3600.0,
        "is_open": False,
    }


def test_a_job_that_never_held_is_known_by_what_it_asks_for() -> None:
    (found,) = jobs(models="L40S|H100")
    assert (found["gpu_count"], found["gpu_models"]) == (2.0, ["H100", "L40S"])
    assert (found["held_at"], found["held_s"], found["is_open"]) == (None, 0.0, False)


def test_one_device_taken_twice_is_one_device() -> None:
    (found,) = jobs(holds=(hold(start=2, end=3), hold(start=4, end=5)), asked=1)
    assert (found["gpu_count"], found["held_s"]) == (1.0, 3 * 3600.0)


@pytest.mark.parametrize(
    ("end", "held_h", "is_open"),
    [
        pytest.param(9.5, 7.5, False, id="ends before the period does"),
        pytest.param(10, 8, False, id="ends with the period"),
        pytest.param(10.5, 8, True, id="ends after it"),
        pytest.param(None, 8, True, id="has not ended"),
    ],
)
def test_what_still_holds_counts_to_the_end(
    end: float | None, held_h: float, is_open: bool
) -> None:
    (found,) = jobs(holds=(hold(start=2, end=end),))
    assert (found["held_s"], found["is_open"]) == (held_h * 3600, is_open)


@pytest.mark.parametrize(
    ("created", "end", "count"),
    [
        pytest.param(-3, -1, 0, id="over before the period"),
        pytest.param(-3, 0, 0, id="over as it begins"),
        pytest.param(-3, 1, 1, id="reaches into it"),
        pytest.param(10, None, 0, id="created at its end"),
    ],
)
def test_only_jobs_of_the_period_count(created: float, end: float | None, count: int) -> None:
    holds = () if end is None else (hold(start=created, end=end),)
    assert len(jobs(created=created * HOUR, holds=holds)) == count


@pytest.mark.parametrize("asked", [0, None], ids=["none", "not told"])
def test_a_job_without_gpus_is_no_job(asked: int | None) -> None:
    assert jobs(asked=asked) == []


def test_a_holder_nobody_told_the_beginning_of_begins_when_it_held() -> None:
    (found,) = jobs(created=None, holds=(hold(start=2, end=3),))
    assert found["created_at"] == found["held_at"] == NOON + 2 * HOUR


def test_nothing_at_all() -> None:
    empty = frames()
    assert recorded_jobs(empty, PERIOD).schema["gpu_models"] == pl.List(pl.String)
    assert recorded_jobs(empty, PERIOD).is_empty()
