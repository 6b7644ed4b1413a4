"""Energy of days that are built beside that of readings: the same figures, however it is parted."""

from __future__ import annotations

from datetime import timedelta
from fractions import Fraction

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from analytics.cost.energy import Draw, EnergyCost, added, energy_cost
from analytics.cost.energy_use import daily_energy, hourly_energy, tariffs
from analytics.inputs import SCHEMAS, empty
from tests.support.analytics_frames import HOUR, MINUTE, NOON
from tests.support.price_rows import rows, tariff

MIDNIGHT = NOON - 12 * HOUR
DAY = timedelta(days=1)


def reading(hour: int, first_j: float, last_j: float, *, board: str = "a") -> dict[str, object]:
    """Return a board's first and last reading of an hour, 59 minutes apart."""
    at = MIDNIGHT + hour * HOUR
    return {
        "cluster": "c", "node": "n", "device_uuid": board, "hour_at": at,
        "first_at": at, "first_j": first_j, "last_at": at + 59 * MINUTE, "last_j": last_j,
    }  # fmt: skip


def told(*given: dict[str, object]) -> pl.DataFrame:
    return pl.DataFrame(list(given), schema=SCHEMAS["energy_by_hour"])


STEADY = told(*[reading(hour, 60.0 * hour, 60.0 * hour + 59) for hour in range(72)])
GAPS = told(
    reading(3, 10, 20),
    reading(20, 90, 95),
    reading(50, 300, 320),
    reading(23, 1, 2, board="b"),
    reading(24, 5, 9, board="b"),
)
RESET = told(reading(22, 900, 950), reading(25, 7, 30), reading(47, 31, 31), reading(48, 2, 1e15))
ONCE = told({**reading(5, 3, 3), "last_at": MIDNIGHT + 5 * HOUR}, reading(30, 4, 6))


def of(readings: pl.DataFrame, *days: int) -> pl.DataFrame:
    """Return the energy by hour where these days are built, and the others are read."""
    day = (pl.col("hour_at") - MIDNIGHT).dt.total_days()
    built = [daily_energy(readings.filter(day == number)) for number in days]
    return hourly_energy(
        readings.filter(~day.is_in(days)),
        pl.concat([empty("energy_days"), *(found for found, _ in built)]),
        pl.concat(
            [empty("energy_hours"), *(found.select(*SCHEMAS["energy_hours"]) for _, found in built)]
        ),
    )


@pytest.mark.parametrize("days", [(0,), (1,), (2,), (0, 1), (1, 2), (0, 2), (0, 1, 2)])
@pytest.mark.parametrize(
    "readings",
    [
        pytest.param(STEADY, id="steady"),
        pytest.param(GAPS, id="gaps over midnight"),
        pytest.param(RESET, id="counters that restart or lie"),
        pytest.param(ONCE, id="one reading of an hour"),
        pytest.param(told(), id="none"),
    ],
)
def test_built_days_and_readings_tell_the_same(
    readings: pl.DataFrame, days: tuple[int, ...]
) -> None:
    assert_frame_equal(of(readings, *days), of(readings), check_exact=True)


def test_energy_over_midnight_is_that_of_the_day_before() -> None:
    found = of(GAPS, 0, 1, 2)
    kept = dict(found.select("hour_at", "used_j").iter_rows())
    assert kept[MIDNIGHT + 20 * HOUR] == 5 + 205
    assert kept[MIDNIGHT + 23 * HOUR] == 1 + 3


def test_a_day_keeps_the_first_and_last_reading_of_each_board() -> None:
    days, _hours = daily_energy(GAPS.filter(pl.col("hour_at") < MIDNIGHT + DAY))
    assert days.select("device_uuid", "first_j", "last_j").rows() == [("a", 10, 95), ("b", 1, 2)]


@pytest.mark.parametrize(
    ("zone", "minute", "cost"),
    [
        pytest.param("UTC", 0, Fraction(0), id="a whole hour: not yet in its hours"),
        pytest.param("Asia/Kolkata", 0, Fraction(1, 2), id="half an hour off: half of it is"),
        pytest.param("Asia/Kathmandu", 0, Fraction(3, 4), id="a quarter off: three quarters are"),
        pytest.param("UTC", 30, Fraction(1, 2), id="begins in the midst of an hour"),
    ],
)
def test_a_local_hour_begins_where_its_zone_says(zone: str, minute: int, cost: Fraction) -> None:
    """Cheap until the local hour changes, then 1 a kWh."""
    local_hour = {"UTC": 6, "Asia/Kolkata": 11, "Asia/Kathmandu": 11}[zone]
    at = MIDNIGHT + 5 * HOUR + minute * MINUTE
    (one,) = tariffs(
        rows("energy_tariff", tariff("1", from_hour=local_hour, until_hour=24, time_zone=zone))
    )
    draw = Draw(cluster="c", from_at=at, until_at=at + HOUR, joules=3_600_000)
    assert energy_cost([draw], [one], currency=one.currency).it_kwh == 1
    assert energy_cost([draw], [one], currency=one.currency).unpriced_kwh == 1 - cost


def test_costs_add_up_and_an_unknown_carbon_stays_unknown() -> None:
    def cost(kgco2e: Fraction | None) -> EnergyCost:
        one = Fraction(1, 3)
        return EnergyCost(
            it_kwh=one, facility_kwh=one, cost=one, kgco2e=kgco2e, unpriced_kwh=one, unknown_s=one
        )

    assert added([cost(Fraction(1)), cost(Fraction(2))]).kgco2e == 3
    assert added([cost(Fraction(1)), cost(None)]).kgco2e is None
    assert added([cost(None)] * 3).it_kwh == 1
    assert added([]).kgco2e == 0
