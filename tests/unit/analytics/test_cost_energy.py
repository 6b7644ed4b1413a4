"""Energy by the tariff of each local hour, rate cards of owned servers, and other currencies."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest

from analytics.cost.currency import Converted, ExchangeRate, converted, rate_between
from analytics.cost.energy import (
    JOULES_PER_KWH,
    Draw,
    Tariff,
    charged_energy,
    energy_cost,
    tariff_at,
)
from analytics.cost.tco import (
    RateCard,
    per_capacity_hour,
    per_sold_hour,
    per_year,
    rate_micros,
)
from tests.support.analytics_frames import HOUR, MINUTE, NOON
from tests.support.cost_cases import EARLY


def tariff(cents: int = 10, **given: object) -> Tariff:
    """Return a tariff in cents per kWh, all day, everywhere, at a PUE of 1."""
    told: dict[str, object] = {
        "cluster": None,
        "currency": "USD",
        "amount_micros_per_kwh": cents * 10_000,
        "pue_micros": 1_000_000,
        "host_factor_micros": 1_000_000,
        "kgco2e_micros_per_kwh": None,
        "time_zone": "UTC",
        "from_hour": 0,
        "until_hour": 24,
        "valid_from_at": EARLY,
        "valid_until_at": None,
        "energy_tariff_id": 1,
        **given,
    }
    return Tariff(**told)  # type: ignore[arg-type]  # fields by name


def draw(kwh: object = 1, *, start: datetime = NOON, length: timedelta = HOUR) -> Draw:
    """Return energy used in a span."""
    joules = None if kwh is None else Fraction(str(kwh)) * JOULES_PER_KWH
    return Draw(cluster="c", from_at=start, until_at=start + length, joules=joules)


def test_host_and_building_multiply_what_boards_use() -> None:
    around = tariff(
        pue_micros=1_500_000, host_factor_micros=1_200_000, kgco2e_micros_per_kwh=400_000
    )
    told = energy_cost([draw(10)], [around], currency="USD")
    assert (told.it_kwh, told.facility_kwh) == (10, 18)
    assert (told.cost, told.kgco2e) == (Fraction("1.80"), Fraction("7.2"))


def test_zero_null_and_both() -> None:
    measured, none, silent = draw(2), draw(0, start=NOON + HOUR), draw(None, start=NOON + 2 * HOUR)
    told = energy_cost([measured, none, silent], [tariff()], currency="USD")
    assert (told.it_kwh, told.cost, told.unknown_s) == (2, Fraction("0.20"), 3_600)
    nothing = energy_cost([silent], [tariff()], currency="USD")
    assert (nothing.it_kwh, nothing.cost, nothing.unknown_s) == (0, 0, 3_600)
    zero = energy_cost([none], [tariff()], currency="USD")
    assert (zero.it_kwh, zero.unknown_s) == (0, 0)


def test_energy_without_a_tariff_is_listed_not_free() -> None:
    told = energy_cost([draw(5)], [tariff(currency="CNY")], currency="USD")
    assert (told.cost, told.facility_kwh, told.unpriced_kwh) == (0, 0, 5)


def test_carbon_is_null_where_any_of_it_is_unknown() -> None:
    known = tariff(until_hour=13, kgco2e_micros_per_kwh=500_000)
    unknown = tariff(from_hour=13, energy_tariff_id=2)
    draws = [draw(1), draw(1, start=NOON + HOUR)]
    assert energy_cost(draws, [known, unknown], currency="USD").kgco2e is None
    assert energy_cost(draws[:1], [known, unknown], currency="USD").kgco2e == Fraction(1, 2)


@pytest.mark.parametrize(
    ("start", "cents"),
    [
        pytest.param(NOON - MINUTE, 1 + Fraction(59, 60) * 9, id="a minute before the peak"),
        pytest.param(NOON, 10, id="with the peak"),
        pytest.param(NOON + MINUTE, 10 - Fraction(1, 60) * 9, id="a minute past its end"),
    ],
)
def test_a_span_across_tariffs_is_cut_at_the_hour(start: datetime, cents: Fraction) -> None:
    tariffs = [
        tariff(10, from_hour=12, until_hour=13),
        tariff(1, until_hour=12, energy_tariff_id=2),
        tariff(1, from_hour=13, energy_tariff_id=3),
    ]
    told = energy_cost([draw(1, start=start)], tariffs, currency="USD")
    assert told.cost * 100 == cents


@pytest.mark.parametrize(
    ("zone", "at", "holds"),
    [
        pytest.param("Asia/Shanghai", "2026-05-03T23:59Z", False, id="before"),
        pytest.param("Asia/Shanghai", "2026-05-04T00:00Z", True, id="local eight"),
        pytest.param("Asia/Kolkata", "2026-05-04T02:30Z", True, id="half hours"),
        pytest.param("Asia/Kathmandu", "2026-05-04T02:14Z", False, id="quarters"),
        pytest.param("Asia/Kathmandu", "2026-05-04T02:15Z", True, id="at them"),
    ],
)
def test_hours_are_those_of_the_tariff_s_zone(zone: str, at: str, *, holds: bool) -> None:
    day = tariff(time_zone=zone, from_hour=8, until_hour=22)
    assert (tariff_at([day], "c", datetime.fromisoformat(at)) is not None) is holds


def test_a_span_is_cut_at_local_hours_that_are_no_utc_hours() -> None:
    """Eight in Kolkata is half past two: half of the hour from two is at the day's tariff."""
    zone = {"time_zone": "Asia/Kolkata"}
    tariffs = [tariff(10, from_hour=8, **zone), tariff(0, until_hour=8, energy_tariff_id=2, **zone)]
    two = datetime(2026, 5, 4, 2, tzinfo=UTC)
    assert energy_cost([draw(1, start=two)], tariffs, currency="USD").cost == Fraction("0.05")


def test_the_repeated_hour_of_a_clock_change_is_paid_twice() -> None:
    """01:00 to 02:00 in New York happens twice on the first of November 2026."""
    night = tariff(10, time_zone="America/New_York", from_hour=1, until_hour=2)
    midnight = datetime(2026, 11, 1, 4, tzinfo=UTC)
    told = energy_cost([draw(25, start=midnight, length=25 * HOUR)], [night], currency="USD")
    assert (told.facility_kwh, told.unpriced_kwh) == (2, 23)


def test_a_cluster_s_own_tariff_and_the_last_recorded_count() -> None:
    common, own = tariff(1), tariff(2, cluster="c", energy_tariff_id=2)
    newer, elsewhere = tariff(3, energy_tariff_id=9), tariff(4, cluster="d", energy_tariff_id=10)
    everything = [common, own, newer, elsewhere]
    found = tariff_at(everything, "c", NOON)
    assert found is own
    assert tariff_at([common, newer, elsewhere], "c", NOON) is newer
    assert tariff_at([elsewhere], "c", NOON) is None


def test_a_span_is_cut_where_a_tariff_s_validity_ends() -> None:
    change = NOON + 20 * MINUTE
    tariffs = [tariff(30, valid_until_at=change), tariff(60, valid_from_at=change)]
    assert energy_cost([draw(1)], tariffs, currency="USD").cost == Fraction("0.50")


def test_energy_is_a_memo_where_the_rate_contains_it() -> None:
    assert charged_energy(5, rate_includes_energy=True) == 0
    assert charged_energy(5, rate_includes_energy=False) == 5


def card(**given: object) -> RateCard:
    """Return a server of 8 GPUs that costs 8,760 a year and nothing else."""
    told: dict[str, object] = {
        "gpus": 8,
        "server": 43_800,
        "residual_ratio": 0,
        "life_years": 5,
        "network_and_storage": 0,
        "network_life_years": 5,
        "colocation_kw": 0,
        "colocation_per_kw_month": 0,
        "load_ratio": 0,
        "pue": 1,
        "energy_per_kwh": 0,
        "support_per_year": 0,
        "staff_per_year": 0,
        **given,
    }
    return RateCard(**told)  # type: ignore[arg-type]  # fields by name


def test_a_rate_card_by_hand() -> None:
    assert per_year(card()) == 8_760
    assert per_capacity_hour(card()) == Fraction(1, 8)
    assert per_capacity_hour(card(), is_leap=True) == Fraction(8_760, 8 * 8_784)
    assert rate_micros(per_capacity_hour(card())) == 125_000
    assert rate_micros(Fraction(1, 3)) == 333_333
    assert per_year(card(residual_ratio=1)) == 0


@pytest.mark.parametrize("wrong", [{"gpus": 0}, {"life_years": 0}, {"network_life_years": 0}])
def test_a_card_that_cannot_be_divided_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="at least one GPU"):
        card(**wrong)


@pytest.mark.parametrize(
    ("sold", "rate"),
    [
        pytest.param(1, Fraction(1, 8), id="all sold"),
        pytest.param(Fraction(1, 2), Fraction(1, 4), id="half sold"),
        pytest.param(0, None, id="none sold"),
        pytest.param(Fraction(11, 10), None, id="more than there is"),
    ],
)
def test_per_sold_hour(sold: Fraction, rate: Fraction | None) -> None:
    if rate is None:
        with pytest.raises(ValueError, match="above 0 and at most 1"):
            per_sold_hour(card(), sold_ratio=sold, is_idle_charged=False)
    else:
        assert per_sold_hour(card(), sold_ratio=sold, is_idle_charged=False) == rate


def test_a_sold_hour_rate_and_charged_idle_exclude_each_other() -> None:
    with pytest.raises(ValueError, match="recovers it twice"):
        per_sold_hour(card(), sold_ratio=1, is_idle_charged=True)


def exchange(micros: int = 7_100_000, **given: object) -> ExchangeRate:
    """Return what one USD is worth in CNY."""
    told: dict[str, object] = {
        "from_currency": "USD",
        "to_currency": "CNY",
        "rate_micros": micros,
        "valid_from_at": NOON,
        "valid_until_at": NOON + HOUR,
        "exchange_rate_id": 1,
        **given,
    }
    return ExchangeRate(**told)  # type: ignore[arg-type]  # fields by name


@pytest.mark.parametrize(
    ("at", "rate"),
    [
        pytest.param(NOON - MINUTE, None, id="before it is valid"),
        pytest.param(NOON, Fraction("7.1"), id="from its start"),
        pytest.param(NOON + HOUR - MINUTE, Fraction("7.1"), id="to just before its end"),
        pytest.param(NOON + HOUR, None, id="no longer at its end"),
    ],
)
def test_a_rate_is_dated(at: datetime, rate: Fraction | None) -> None:
    assert rate_between("USD", "CNY", at=at, rates=[exchange()]) == rate


def test_rates_back_and_within() -> None:
    rates = [exchange(), exchange(8_000_000, exchange_rate_id=2)]
    assert rate_between("USD", "CNY", at=NOON, rates=rates) == 8
    assert rate_between("CNY", "USD", at=NOON, rates=rates) == Fraction(1, 8)
    assert rate_between("EUR", "EUR", at=NOON, rates=()) == 1
    own = exchange(120_000, from_currency="CNY", to_currency="USD", exchange_rate_id=0)
    assert rate_between("CNY", "USD", at=NOON, rates=[*rates, own]) == Fraction("0.12")


@pytest.mark.parametrize(
    ("amounts", "told"),
    [
        pytest.param({}, Converted(total=Fraction(0), missing=()), id="nothing"),
        pytest.param({"USD": 0}, Converted(total=Fraction(0), missing=()), id="zero"),
        pytest.param({"USD": 1, "CNY": 71}, Converted(total=Fraction(11), missing=()), id="both"),
        pytest.param({"USD": 1, "EUR": 1}, Converted(total=None, missing=("EUR",)), id="no rate"),
    ],
)
def test_converted(amounts: dict[str, int], told: Converted) -> None:
    assert converted(amounts, "USD", at=NOON, rates=[exchange()]) == told
