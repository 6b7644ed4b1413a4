"""Laws of the outlook on demand, and of jobs on a tier above their need."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics import need
from analytics.inputs import empty
from analytics.planning import REACH, outlook
from tests.support.analytics_frames import rows
from tests.support.ledger_rows import free, held, ledger

DAYS = st.lists(st.integers(0, 500).map(float), min_size=14, max_size=60)
GIB = 1_073_741_824
MODELS = ("NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-40GB", "NVIDIA L40S", "Tesla T4", "G2")


@settings(max_examples=200)
@given(DAYS, st.integers(1, 100))
def test_the_range_holds_the_middle(daily: list[float], ahead: int) -> None:
    found = outlook(daily)
    assert found is not None
    told = found.ahead(ahead)
    assert told.low is not None
    assert told.middle is not None
    assert told.high is not None
    assert 0 <= told.low <= told.middle <= told.high


@settings(max_examples=200)
@given(DAYS, st.integers(0, 1_000))
def test_full_sooner_with_the_steeper_end_of_the_range(daily: list[float], limit: int) -> None:
    found = outlook(daily)
    assert found is not None
    until = found.days_until(limit)
    reach = REACH * len(daily)
    soonest, expected, latest = (
        reach + 1 if end is None else end for end in (until.low, until.middle, until.high)
    )
    assert 0 <= soonest <= expected <= latest


@settings(max_examples=200)
@given(DAYS, st.integers(0, 100), st.integers(1, 9))
def test_the_trend_moves_and_grows_with_its_days(daily: list[float], more: int, times: int) -> None:
    plain, moved = outlook(daily), outlook([times * day + more for day in daily])
    assert plain is not None
    assert moved is not None
    assert moved.slope.middle == pytest.approx(times * (plain.slope.middle or 0.0))


@settings(max_examples=200)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(MODELS),
            st.integers(0, 20),
            st.integers(0, 20),
            st.integers(0, 20),
            st.none() | st.integers(0, 80).map(lambda size: size * GIB),
            st.sampled_from([1, 2, None]),
        ),
        max_size=8,
    ),
    st.sampled_from([1, 2, None]),
)
def test_only_what_is_known_is_named_and_never_a_stronger_gpu(
    told: list[tuple[str, int, int, int, int | None, int | None]], gpu_count: int | None
) -> None:
    given_rows = [
        held(
            model=model, workload_uid=f"w{number}", used=used, ineffective=ineffective,
            unknown=unknown, memory_peak_bytes=peak, tier=tier,
        )
        for number, (model, used, ineffective, unknown, peak, tier) in enumerate(told)
    ]  # fmt: skip
    frame = ledger(*given_rows, *[free(model=model, free_idle=1) for model in MODELS])
    asked = [{"workload_uid": f"w{number}", "gpu_count": gpu_count} for number in range(len(told))]
    jobs = need.jobs(frame, rows("workload_current", *asked))
    memory = frame.select("model").unique().with_columns(memory_bytes=None)
    overrides = empty("state.capability")
    models = need.models_here(frame, overrides, memory)
    for row in need.alternatives(jobs, models).iter_rows(named=True):
        assert row["capability"] < row["capability_there"] or row["capability"] == "S"
        assert row["memory_peak_bytes"] <= row["memory_there_bytes"]
        assert row["load_there_ratio"] < need.LOAD_LIMIT_RATIO
        assert row["coverage_ratio"] >= need.COVERAGE_FLOOR_RATIO
        assert row["capability_there"] != "S"
