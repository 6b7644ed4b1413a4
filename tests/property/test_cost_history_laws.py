"""The laws of cost that speak of histories, numbered as in ``docs/cost-rules.md``.

Stored rows are random; books are kept of them as for the ledger.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from fractions import Fraction
from itertools import pairwise
from random import Random
from typing import Final

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from analytics.bookkeeping import keep_books
from analytics.usage import totals
from steward.period import Period
from steward.units import MICROS_PER_SECOND, TICKS_PER_GPU_HOUR
from tests.support.analytics_frames import HOUR, MINUTE, NOON, Row
from tests.support.cost_cases import EARLY, at_rate, booked, charged, history, money, money_by
from tests.support.cost_worlds import IN_CI

pytestmark = pytest.mark.timeout(600)
WINDOW: Final = Period(NOON, NOON + 2 * HOUR)
SECONDS: Final = st.integers(-600, 7_800)
TEAMS: Final = st.sampled_from(["a", "b", None])
RATIOS: Final = st.one_of(st.none(), st.sampled_from([0.0, 0.25, 0.5, 1.0]))


Prices = Mapping[str, object]
Holding = tuple[datetime, datetime, str | None]
Lives = list[tuple[str, datetime, list[Holding]]]
"""Devices by name, each with its birth and its holders."""


def second(number: int) -> datetime:
    """Return an instant by seconds since noon."""
    return NOON + timedelta(seconds=number)


def clipped(start: datetime, end: datetime, period: Period = WINDOW) -> Fraction:
    """Return the hours of a span inside the period."""
    length = min(end, period.until_at) - max(start, period.from_at)
    return max(
        Fraction(length // timedelta(microseconds=1), 3_600 * MICROS_PER_SECOND), Fraction(0)
    )


@st.composite
def lives(
    draw: st.DrawFn,
) -> Lives:
    """Draw devices, each with its birth and who held it when, one after the other."""
    found = []
    for number in range(draw(st.integers(1, 2))):
        born = second(draw(SECONDS))
        ends = [second(s) for s in sorted(draw(st.sets(SECONDS, max_size=4)))]
        held = [(start, end, draw(TEAMS)) for start, end in pairwise(ends) if start >= born]
        found.append((f"GPU-{number}", born, held))
    return found


def stored_of(fleet: Lives, readings: Sequence[Row] = ()) -> dict[str, pl.DataFrame]:
    """Return the stored rows of a fleet."""
    held = [
        {
            "device_uuid": name,
            "started_at": start,
            "ended_at": end,
            "tenant_id": team,
            "pod": "same-name",
            "workload_uid": f"{name}-{number}",
        }
        for name, _, holders in fleet
        for number, (start, end, team) in enumerate(holders)
    ]
    devices = [{"device_uuid": name, "observed_at": born} for name, born, _ in fleet]
    return history(devices=devices, held=held, readings=readings)


READINGS = st.lists(
    st.builds(
        lambda device, step, ratio: {
            "device_uuid": f"GPU-{device}",
            "sampled_at": NOON + step * 5 * MINUTE,
            "sm_active_ratio": ratio,
            "tensor_active_ratio": ratio,
            "dram_active_ratio": ratio,
        },
        st.integers(0, 1),
        st.integers(-2, 26),
        RATIOS,
    ),
    max_size=12,
    unique_by=lambda row: (row["device_uuid"], row["sampled_at"]),
)


@given(st.integers(1, 8), st.sampled_from([0.0, 0.25, 0.714, 1.0]), st.booleans())
@IN_CI
def test_invariant_05_a_shared_device_is_used_once(
    sharers: int, ratio: float, is_read: bool
) -> None:
    held = [
        {
            "pod": f"p{number}",
            "workload_uid": f"p{number}",
            "started_at": EARLY,
            "gpu_share_ratio": 1 / sharers,
            "sharing_mode": "shared_equal",
            "replica": number,
        }
        for number in range(sharers)
    ]
    values = {f"{name}_ratio": ratio for name in ("sm_active", "tensor_active", "dram_active")}
    readings = [{"sampled_at": NOON + n * MINUTE, **values} for n in range(-2, 62)]
    stored = history(
        devices=[{"observed_at": EARLY}], held=held, readings=readings if is_read else ()
    )
    told = booked(stored, NOON, NOON + HOUR)
    by_pod = charged(told, at_rate("1.00"))
    used = {
        pod: units for pod, units in money_by(by_pod, "workload_uid", "used_parts").items() if pod
    }
    once = Fraction(str(ratio)) if is_read else Fraction(0)
    assert sum(used.values()) == once
    assert set(used.values()) <= {once / sharers}
    capacity = money(by_pod.rows, "capacity_parts")
    assert capacity == 1
    unknown = money(by_pod.rows, "unknown_use_parts")
    assert unknown == (0 if is_read else 1)
    assert sum(used.values()) <= capacity


@given(lives(), READINGS, st.sets(st.integers(1, 7_199), max_size=3))
@IN_CI
def test_invariant_07_lifetimes(fleet: Lives, readings: list[Row], borders: set[int]) -> None:
    told = booked(
        stored_of(fleet, readings), WINDOW.from_at, WINDOW.until_at, *map(second, borders)
    )
    priced = charged(told, at_rate("1.00")).rows
    life = sum(clipped(born, WINDOW.until_at) for _, born, _ in fleet)
    assert money(priced, "capacity_parts") == life
    held = sum(clipped(start, end) for _, _, holders in fleet for start, end, _ in holders)
    assert money(priced.filter("is_held"), "capacity_parts") >= held
    named = priced.filter(pl.col("workload_uid").is_not_null())
    assert money(named, "capacity_parts") == held
    by_pod = totals(named, "workload_uid")
    expected = {
        f"{name}-{number}": clipped(start, end) * TICKS_PER_GPU_HOUR
        for name, _, holders in fleet
        for number, (start, end, _) in enumerate(holders)
        if clipped(start, end)
    }
    assert dict(by_pod.select("workload_uid", "wall_ticks").iter_rows()) == expected


@given(st.lists(st.tuples(st.integers(0, 7_200), TEAMS), min_size=1, max_size=6))
@IN_CI
def test_invariant_09_labels(changes: list[tuple[int, str | None]]) -> None:
    ends = sorted({0, 7_200, *(cut for cut, _ in changes)})
    teams = [changes[number % len(changes)][1] for number in range(len(ends) - 1)]
    held = [
        {"started_at": second(start), "ended_at": second(end), "tenant_id": team}
        for (start, end), team in zip(pairwise(ends), teams, strict=True)
    ]
    stored = history(devices=[{"observed_at": EARLY}], held=held)
    told = charged(booked(stored, WINDOW.from_at, WINDOW.until_at), at_rate("3.60"))
    expected: dict[str | None, Fraction] = {}
    for (start, end), team in zip(pairwise(ends), teams, strict=True):
        expected[team] = expected.get(team, Fraction(0)) + Fraction(end - start, 1_000)
    assert money_by(told, "tenant_id") == expected
    assert sum(expected.values()) == Fraction("7.2")
    assert told.rows["is_held"].all()


@given(lives(), READINGS, st.integers(0, 9_999))
@IN_CI
def test_invariant_16_order_and_duplication_do_not_matter(
    fleet: Lives, readings: list[Row], seed: int
) -> None:
    stored = stored_of(fleet, readings)
    random = Random(seed)  # noqa: S311  # shuffles rows
    one, other = keep_books(stored, WINDOW), keep_books(_shuffled(stored, random), WINDOW)
    assert_frame_equal(one.rows, other.rows)
    assert_frame_equal(one.rest, other.rest)


def _shuffled(stored: Mapping[str, pl.DataFrame], random: Random) -> dict[str, pl.DataFrame]:
    """Return the rows in another order, some of them twice."""
    found = {}
    for name, frame in stored.items():
        order = [*range(frame.height), *(n for n in range(frame.height) if random.random() < 0.3)]
        random.shuffle(order)
        found[name] = frame[order] if order else frame
    return found
