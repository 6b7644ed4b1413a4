"""When targets are scraped: spread over the interval, the same after every restart."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.loop import first_delay_s, next_slot_s

URLS = [f"http://node-{n}:9400/metrics" for n in range(1_000)]


def delays(interval_s: float) -> list[float]:
    return [first_delay_s(u, interval_s=interval_s, target_count=len(URLS)) for u in URLS]


def test_a_thousand_targets_fill_the_interval_evenly() -> None:
    per_second = Counter(int(delay) for delay in delays(15))
    assert sorted(per_second) == list(range(15))
    assert min(per_second.values()) > 40
    assert max(per_second.values()) < 95


def test_the_place_of_a_target_is_its_own_and_stays() -> None:
    assert delays(15) == delays(15)
    assert len(set(delays(15))) == len(URLS)
    assert first_delay_s(URLS[0], interval_s=15, target_count=1_000) == pytest.approx(
        first_delay_s(URLS[0], interval_s=30, target_count=2_000) / 2
    )


@pytest.mark.parametrize(("target_count", "longest_s"), [(1, 0.02), (10, 0.2), (750, 15.0)])
def test_few_targets_start_almost_at_once(target_count: int, longest_s: float) -> None:
    assert all(
        0 <= first_delay_s(url, interval_s=15, target_count=target_count) < longest_s
        for url in URLS
    )


@pytest.mark.parametrize(
    ("now_s", "slot_s"),
    [
        pytest.param(90, 115, id="done before the slot itself"),
        pytest.param(100, 115, id="done at once"),
        pytest.param(114.9, 115, id="just before the next slot"),
        pytest.param(115, 115, id="exactly at the next slot"),
        pytest.param(115.1, 130, id="just past it: that slot is left out"),
        pytest.param(1_000, 1_000, id="long asleep"),
    ],
)
def test_the_next_slot_is_in_rhythm_and_not_past(now_s: float, slot_s: float) -> None:
    assert next_slot_s(100, now_s=now_s, interval_s=15) == slot_s


@given(
    now_s=st.floats(0, 1e6),
    interval_s=st.floats(0.01, 1e4),
)
def test_the_next_slot_is_always_ahead(now_s: float, interval_s: float) -> None:
    slot_s = next_slot_s(0.0, now_s=now_s, interval_s=interval_s)
    assert slot_s >= interval_s
    assert slot_s >= now_s or slot_s == pytest.approx(now_s)
    assert slot_s - now_s <= interval_s * (1 + 1e-6) or slot_s == interval_s
