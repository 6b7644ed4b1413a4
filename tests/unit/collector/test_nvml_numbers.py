"""From the driver's numbers to base units, and from counters to rates."""

from __future__ import annotations

import pytest

from collector.sources.nvml import scales
from collector.sources.nvml.rates import RateMeter
from collector.sources.nvml.records import Absence, Measure, Readings
from collector.sources.nvml.scales import Scale

UINT_MAX, ULLONG_MAX = 2**32 - 1, 2**64 - 1


@pytest.mark.parametrize(
    ("scale", "number", "value"),
    [
        pytest.param(scales.PERCENT, 0, 0.0, id="zero is a reading"),
        pytest.param(scales.PERCENT, 100, 1.0, id="all"),
        pytest.param(scales.PERCENT, 105, 1.05, id="slightly above"),
        pytest.param(scales.PERCENT, 106, None, id="no percent"),
        pytest.param(scales.PERCENT, -1, None, id="negative"),
        pytest.param(scales.PERCENT, UINT_MAX, None, id="not available, 32 bits"),
        pytest.param(scales.PERCENT, float("nan"), None, id="not a number"),
        pytest.param(scales.PROFILING_PERCENT, 200, 2.0, id="twice"),
        pytest.param(scales.PROFILING_PERCENT, 200.1, None, id="more than twice"),
        pytest.param(scales.MILLIWATTS, 412_345, 412.345, id="power"),
        pytest.param(scales.MILLIWATTS, UINT_MAX, None, id="no power"),
        pytest.param(scales.MILLIJOULES, 57_585_599, 57_585.599, id="energy"),
        pytest.param(scales.MILLIJOULES, ULLONG_MAX, None, id="no energy"),
        pytest.param(scales.MILLIJOULES, ULLONG_MAX - 600, None, id="energy below zero"),
        pytest.param(scales.BYTES, 85_899_345_920, 85_899_345_920, id="memory"),
        pytest.param(scales.BYTES, ULLONG_MAX, None, id="no memory"),
        pytest.param(scales.CELSIUS, 150, 150, id="hot"),
        pytest.param(scales.CELSIUS, 151, None, id="no temperature"),
        pytest.param(scales.MEGAHERTZ, 1_980, 1_980_000_000, id="clock"),
        pytest.param(scales.NANOSECONDS, 2_500_000_000, 2.5, id="throttled"),
        pytest.param(scales.MIB_PER_S, 1_024, 1_073_741_824, id="traffic"),
    ],
)
def test_base_unit(scale: Scale, number: float, value: float | None) -> None:
    assert scale.base(number) == value


def test_whole_numbers_stay_whole() -> None:
    assert isinstance(scales.BYTES.base(2**60 // 2**20), int)
    assert isinstance(scales.MEGAHERTZ.base(1), int)


@pytest.mark.parametrize(
    ("first", "second", "rate"),
    [
        pytest.param((1_000, 0.0), (1_500, 10.0), 50.0, id="increase"),
        pytest.param((1_000, 0.0), (1_000, 10.0), 0.0, id="nothing moved"),
        pytest.param((1_000, 0.0), (999, 10.0), None, id="reset"),
        pytest.param((0, 0.0), (600, 599.9), 600 / 599.9, id="just before the longest gap"),
        pytest.param((0, 0.0), (600, 600.0), 1.0, id="at the longest gap"),
        pytest.param((0, 0.0), (600, 600.1), None, id="past it"),
        pytest.param((0, 5.0), (600, 5.0), None, id="no time between"),
    ],
)
def test_rate(first: tuple[float, float], second: tuple[float, float], rate: float | None) -> None:
    meter = RateMeter()
    assert meter.rate(Measure.NVLINK, first[0], now_s=first[1]) is None
    assert meter.rate(Measure.NVLINK, second[0], now_s=second[1]) == rate


def test_a_reset_costs_one_interval() -> None:
    meter = RateMeter()
    rates = [
        meter.rate(Measure.NVLINK, count, now_s=at_s)
        for count, at_s in ((100, 0.0), (10, 1.0), (30, 2.0))
    ]
    assert rates == [None, None, 20.0]


def test_counters_are_kept_apart() -> None:
    meter = RateMeter()
    meter.rate(Measure.NVLINK, 5, now_s=0.0)
    assert meter.rate(Measure.PCIE_RECEIVE, 9, now_s=1.0) is None


def test_a_value_wins_over_an_absence() -> None:
    readings = Readings()
    readings.miss(Measure.POWER, Absence.NOT_SUPPORTED)
    readings.put(Measure.POWER, 0.0)
    readings.miss(Measure.POWER, Absence.TIMEOUT)
    assert (readings.values, readings.absences) == ({Measure.POWER: 0.0}, {})
