"""Energy from counters, its cost by local hour, and what is not known."""

from __future__ import annotations

from datetime import timedelta

import polars as pl
import pytest

from analytics.inputs import SCHEMAS, empty
from analytics.reports.energy import DEFINITION
from analytics.reports.model import Question, Report
from steward.period import Period
from tests.support.analytics_frames import HOUR, MINUTE, NOON
from tests.support.price_rows import rows, tariff

MIDNIGHT = NOON - 12 * HOUR
DAY = Period(MIDNIGHT, MIDNIGHT + 24 * HOUR)
WATTS = 412.5


def reading(hour: int, first_j: float, last_j: float, **given: object) -> dict[str, object]:
    """Return a board's first and last reading of an hour, 59 minutes apart."""
    at = MIDNIGHT + hour * HOUR
    return {
        "cluster": "c", "node": "n1", "device_uuid": "GPU-a", "hour_at": at,
        "first_at": at, "first_j": first_j, "last_at": at + 59 * MINUTE, "last_j": last_j,
        **given,
    }  # fmt: skip


def steady(boards: int = 8, hours: int = 25) -> list[dict[str, object]]:
    """Return readings of boards that draw ``WATTS`` for a day; the last one closes the day."""
    return [
        reading(hour, WATTS * 3600 * hour, WATTS * (3600 * hour + 59 * 60), device_uuid=f"g{board}")
        for board in range(boards)
        for hour in range(hours)
    ]


def report(
    readings: list[dict[str, object]], *tariffs: dict[str, object], zone: str = "UTC"
) -> Report:
    schema = SCHEMAS["energy_by_hour"]
    frame = pl.DataFrame({name: [row[name] for row in readings] for name in schema}, schema=schema)
    frames = {
        "energy_by_hour": frame,
        "energy_days": empty("energy_days"),
        "energy_hours": empty("energy_hours"),
        "state.energy_tariff": rows("energy_tariff", *tariffs),
    }
    return DEFINITION.build(frames, Question(period=DAY, time_zone=zone))


def value(found: Report, key: str) -> object:
    return {one.key: one.value for one in found.figures}[key]


def kwh(found: Report, key: str) -> float:
    return float(str(value(found, key))) / 3_600_000


def test_a_day_of_eight_boards_at_two_tariffs() -> None:
    around = {"pue_micros": 1_320_000, "kgco2e_micros_per_kwh": 400_000}
    found = report(
        [row for row in steady() if row["hour_at"] != DAY.until_at]
        + [{**row, "last_at": row["first_at"], "last_j": row["first_j"]} for row in steady()
           if row["hour_at"] == DAY.until_at],
        tariff("0.12", from_hour=8, until_hour=22, **around),
        tariff("0.06", from_hour=0, until_hour=8, **around),
        tariff("0.06", from_hour=22, **around),
    )  # fmt: skip
    assert kwh(found, "gpu_energy_j") == pytest.approx(79.2)
    assert kwh(found, "facility_energy_j") == pytest.approx(104.544)
    assert value(found, "energy_cost") == "9.93"
    assert value(found, "carbon_kg") == pytest.approx(41.8176)
    assert value(found, "untariffed_energy_j") == 0


def test_no_reading_is_no_energy() -> None:
    found = report([], tariff("0.12"))
    assert value(found, "gpu_energy_j") is None
    assert value(found, "energy_cost") is None
    assert "No energy counter was read" in found.findings[0]


def test_a_board_at_rest_used_none() -> None:
    found = report([reading(0, 5.0, 5.0)], tariff("0.12"))
    assert value(found, "gpu_energy_j") == 0
    assert found.figures[0].coverage_ratio == 1


def test_without_a_tariff_energy_has_no_cost() -> None:
    found = report([reading(0, 0.0, 3_600_000.0)])
    assert kwh(found, "gpu_energy_j") == 1
    assert value(found, "facility_energy_j") is None
    assert value(found, "energy_cost") is None
    assert "No tariff is recorded" in found.findings[0]


def test_a_counter_that_cannot_be_right_is_unknown() -> None:
    found = report([reading(0, 0.0, 1e12), reading(0, 0.0, 3_600_000.0, device_uuid="b")])
    assert kwh(found, "gpu_energy_j") == 1
    assert found.figures[0].coverage_ratio == 0.5


def test_a_tariff_of_its_own_comes_before_the_common_one() -> None:
    both = [reading(0, 0.0, 3_600_000.0), reading(0, 0.0, 3_600_000.0, cluster="d")]
    found = report(both, tariff("0.10"), tariff("0.50", cluster="d"))
    costs = found.tables[0].frame
    assert dict(costs.select("cluster", "energy_cost").iter_rows()) == {"c": "0.10", "d": "0.50"}
    assert value(found, "energy_cost") == "0.60"


def test_days_are_those_of_the_zone() -> None:
    found = report(steady(1, 24), tariff("0.10"), zone="Asia/Shanghai")
    assert found.tables[1].frame["day"].to_list() == ["2026-05-04", "2026-05-05"]


def test_part_of_the_energy_without_a_tariff_is_told() -> None:
    some = tariff("0.10", valid_until_at=MIDNIGHT + timedelta(hours=12))
    found = report(steady(1, 24), some)
    assert any("has no tariff in force" in finding for finding in found.findings)
    assert kwh(found, "untariffed_energy_j") > 0
