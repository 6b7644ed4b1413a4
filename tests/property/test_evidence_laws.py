"""Laws of evidence and verdicts, whatever is read, lost, repeated or told in whichever order."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.evidence.found import Found, evidence, readings
from analytics.evidence.stored import SCHEMAS, asks
from enforcer.decisions import Finding, Verdict
from enforcer.facts import DeviceEvidence, Evidence
from enforcer.judging import (
    MEMORY_CHANGE_BYTES,
    TRAFFIC_ACTIVE_BYTES_PER_S,
    judge,
)
from tests.support.enforcer_judged import HOUR, LIMITS, NOON, device, workload
from tests.support.enforcer_judged import evidence as told

START = datetime(2026, 5, 4, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
LENGTH = 40
"""Minutes of history: more than one window."""
WINDOW = 15 * MINUTE
USUAL = 10
"""Minutes that are read without a gap, where a law needs a usual interval."""

ratios = st.sampled_from([None, 0.0, 0.0199, 0.02, 0.5, 0.52, 1.0])
watts = st.sampled_from([None, 0.0, 70.0, 80.4, 80.5, 300.0])
bytes_told = st.sampled_from([None, 0, MEMORY_CHANGE_BYTES - 1, MEMORY_CHANGE_BYTES, 2**31])
traffic = st.sampled_from([None, 0.0, TRAFFIC_ACTIVE_BYTES_PER_S - 1.0, 1e9])
devices = st.builds(
    device,
    device_uuid=st.sampled_from(["GPU-a", "GPU-b"]),
    is_shared=st.booleans(),
    coverage_ratio=st.sampled_from([0.0, 0.89, 0.9, 1.0]),
    newest_at=st.sampled_from([None, NOON, NOON - 2 * MINUTE, NOON - 3 * MINUTE]),
    profiling_peak_ratio=ratios,
    busy_peak_ratio=ratios,
    disagreement_ratio=ratios,
    own_busy_peak_ratio=ratios,
    power_peak_w=watts,
    power_idle_w=st.sampled_from([None, 70.0]),
    memory_used_peak_bytes=bytes_told,
    memory_change_bytes=bytes_told,
    traffic_peak_bytes_per_s=traffic,
    process_count_peak=st.sampled_from([None, 0, 1]),
)


@st.composite
def evidences(draw: st.DrawFn) -> Evidence:
    """Draw evidence, more often whole than not."""
    shown = draw(st.lists(devices, min_size=1, max_size=2))
    return told(
        *shown,
        held_device_count=len(shown) + draw(st.sampled_from([0, 0, 0, 1])),
        observed_idle_s=draw(st.sampled_from([0.0, 7200.0, 7200.0])),
        idle_since_at=draw(st.sampled_from([None, NOON - 2 * HOUR, NOON - 2 * HOUR])),
        was_ever_active=draw(st.sampled_from([None, True, False])),
        request_rate_per_s=draw(st.sampled_from([None, 0.0, 1.0])),
        level_activity_s=draw(st.sampled_from([None, 0.0, 30_000.0])),
    )


def is_below(value: float | None, limit: float) -> bool:
    return value is None or value < limit


def is_wholly_seen_and_quiet(each: DeviceEvidence) -> bool:
    is_seen = each.coverage_ratio >= LIMITS.min_coverage_ratio and each.newest_at is not None
    if each.is_shared:
        return is_seen and each.own_busy_peak_ratio is not None and each.own_busy_peak_ratio < 0.02
    activity = (each.profiling_peak_ratio, each.busy_peak_ratio)
    return (
        is_seen
        and activity != (None, None)
        and all(is_below(one, LIMITS.below_ratio) for one in activity)
        and (each.power_peak_w is None or each.power_idle_w is not None)
        and is_below(each.power_peak_w, 80.5)
        and is_below(each.traffic_peak_bytes_per_s, TRAFFIC_ACTIVE_BYTES_PER_S)
        and is_below(each.memory_change_bytes, MEMORY_CHANGE_BYTES)
    )


@settings(max_examples=500)
@given(evidences(), st.sampled_from(["training", "inference", None]))
def test_idle_means_every_held_device_was_seen_and_every_signal_is_below_its_limit(
    found: Evidence, workload_class: str | None
) -> None:
    judgement = judge(workload(found, workload_class=workload_class), LIMITS, now=NOON)
    if judgement.verdict is Verdict.IDLE:
        assert found.held_device_count == len(found.devices)
        assert all(is_wholly_seen_and_quiet(each) for each in found.devices)
        assert found.request_rate_per_s in {None, 0.0}
        assert judgement.observed_idle_s == found.observed_idle_s > 0
        faults = {Finding.COUNTER_FAULT, Finding.GHOST_BUSY, Finding.SUSPECTED_HOLD}
        assert faults.isdisjoint(judgement.findings)
    else:
        assert judgement.observed_idle_s == 0
    assert judgement.reasons


@settings(max_examples=200)
@given(evidences(), st.randoms(use_true_random=False))
def test_the_order_of_devices_does_not_matter(found: Evidence, random: object) -> None:
    shuffled = list(found.devices)
    random.shuffle(shuffled)  # type: ignore[attr-defined] # Hypothesis' own random.Random
    other = told(
        *shuffled,
        **{
            name: getattr(found, name)
            for name in Evidence.__dataclass_fields__
            if name != "devices"
        },
    )
    assert judge(workload(found), LIMITS, now=NOON) == judge(workload(other), LIMITS, now=NOON)


Minute = tuple[int, float | None]
"""A minute with a reading, and what it tells of activity."""


def minutes() -> st.SearchStrategy[list[Minute]]:
    """Draw which minutes were read, mostly all, and what they told, mostly rest."""
    activity = st.sampled_from([0.0] * 9 + [None, 0.9])
    kept = st.lists(st.sampled_from([True] * 7 + [False]), min_size=LENGTH, max_size=LENGTH)
    values = st.lists(activity, min_size=LENGTH, max_size=LENGTH)
    return st.builds(
        lambda is_read, told_each: [
            (number, told_each[number]) for number in range(LENGTH) if is_read[number]
        ],
        kept,
        values,
    )


def samples(series: Sequence[Sequence[Minute]]) -> pl.DataFrame:
    schema = SCHEMAS["evidence_sample"]
    rows = [
        {
            "device_key": key,
            "source": "test",
            "first_at": START + number * MINUTE,
            "sampled_at": START + number * MINUTE,
            "reading_count": 1,
            "profiling_count": 0,
            "busy_count": 0 if ratio is None else 1,
            "busy_ratio": ratio,
        }
        for key, each in enumerate(series)
        for number, ratio in each
    ]
    columns = {name: [row.get(name) for row in rows] for name in schema}
    return pl.DataFrame(columns, schema=schema)


def filled(name: str, **columns: object) -> pl.DataFrame:
    schema = SCHEMAS[name]
    plain = pl.DataFrame(columns)
    nulls = [pl.lit(None, dtype=kind).alias(each) for each, kind in schema.items()]
    missing = [each for each in nulls if each.meta.output_name() not in plain.columns]
    return plain.with_columns(missing).select(list(schema)).cast(dict(schema))


def found_of(rows: pl.DataFrame, *, at: datetime, device_count: int) -> Found:
    uuids = [f"GPU-{number}" for number in range(device_count)]
    same = {"cluster": "c", "node": "n1", "device_uuid": uuids}
    frames = {
        "evidence_sample": rows,
        "evidence_process": pl.DataFrame(schema=SCHEMAS["evidence_process"]),
        "allocation_history": filled(
            "allocation_history",
            **same,
            started_at=START,
            sharing_mode="exclusive",
            gpu_share_ratio=1.0,
            namespace="ns",
            pod="p",
            workload_uid="w1",
        ),
        "device_history": filled(
            "device_history", **same, observed_at=START, device_key=range(device_count)
        ),
    }
    wanted = asks(
        [
            {
                "cluster": "c",
                "workload_uid": "w1",
                "window_s": WINDOW.total_seconds(),
                "below_ratio": 0.02,
                "power_margin_ratio": 0.15,
            }
        ]
    )
    return evidence(readings(frames), wanted, until_at=at)


def clock_s(found: Found) -> float:
    return float(found.workloads["observed_idle_s"].item())


histories = st.lists(minutes(), min_size=1, max_size=2)
END = START + LENGTH * MINUTE


@settings(max_examples=200, deadline=None)
@given(histories)
def test_the_clock_counts_no_more_than_was_read_since_the_last_work(
    series: list[list[Minute]],
) -> None:
    found = found_of(samples(series), at=END, device_count=len(series))
    worked = [number for each in series for number, ratio in each if ratio == 0.9]
    last = max(worked, default=-1)
    read = [sum(number > last and ratio == 0.0 for number, ratio in each) for each in series]
    assert clock_s(found) <= min(read) * MINUTE.total_seconds()


@settings(max_examples=200, deadline=None)
@given(histories, st.integers(min_value=1, max_value=LENGTH), st.randoms(use_true_random=False))
def test_neither_the_order_of_rows_nor_later_rows_matter(
    series: list[list[Minute]], length: int, random: object
) -> None:
    rows, at = samples(series), START + length * MINUTE
    order = list(range(rows.height))
    random.shuffle(order)  # type: ignore[attr-defined] # Hypothesis' own random.Random
    until = rows.filter(pl.col("sampled_at") < at)
    whole, early = (
        found_of(each, at=at, device_count=len(series)) for each in (rows[order], until)
    )
    assert whole.workloads.equals(early.workloads)
    assert whole.devices.drop("series").equals(early.devices.drop("series"))


@settings(max_examples=200, deadline=None)
@given(histories, st.integers(min_value=USUAL, max_value=LENGTH - 1))
def test_the_clock_never_gains_more_than_the_time_that_passed(
    series: list[list[Minute]], length: int
) -> None:
    """Once it is known how often a GPU is usually read."""
    usual: list[Minute] = [(number, 0.0) for number in range(USUAL)]
    rows = samples([[*usual, *(one for one in each if one[0] >= USUAL)] for each in series])
    before, after = (
        clock_s(found_of(rows, at=START + number * MINUTE, device_count=len(series)))
        for number in (length, length + 1)
    )
    assert after - before <= MINUTE.total_seconds()


def test_no_row_at_all_is_no_evidence_of_rest() -> None:
    found = found_of(samples([]), at=END, device_count=2)
    assert found.devices.is_empty()
    assert found.workloads.select("held_device_count", "observed_idle_s").rows() == [(2, 0.0)]
