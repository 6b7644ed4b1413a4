"""Report: the energy that GPUs used, at the building's meter, its cost and its carbon."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import polars as pl

from analytics.cost.days import with_day
from analytics.cost.energy import JOULES_PER_KWH, EnergyCost, Tariff, added, energy_cost
from analytics.cost.energy_use import draws, hourly_energy, tariffs
from analytics.cost.rounding import money_text, parts_of
from analytics.inputs import conform
from analytics.reports.cost_tables import framed, titled
from analytics.reports.model import Figure, Question, Report, ReportDefinition, Table
from analytics.reports.shape import column, figure, percent, ratio, table, total

READINGS: Final = "energy_by_hour"
BUILT: Final = ("energy_days", "energy_hours")
"""What is kept of days whose energy is built; readings tell the rest."""
TARIFF: Final = "state.energy_tariff"
MEMO: Final = "Beside the cost of device-time, not in it: most rates contain energy."


def build(frames: Mapping[str, pl.DataFrame], question: Question) -> Report:
    """Return the energy of the period."""
    hourly = hourly_energy(*(conform(name, frames[name]) for name in (READINGS, *BUILT)))
    known = tariffs(conform(TARIFF, frames[TARIFF]))
    code = question.currency or min((one.currency for one in known), default="")
    told = with_day(
        hourly.rename({"hour_at": "started_at"}), question.period, question.time_zone
    ).rename({"started_at": "hour_at"})
    parts = _parts(told, known, code=code)
    whole = added(part.cost for part in parts)
    return Report(
        name=DEFINITION.name,
        title="Energy",
        period=question.period,
        figures=_figures(whole, code, coverage=_coverage(hourly)),
        tables=(
            _table(parts, lambda part: part.cluster, key="cluster", title="Cluster", code=code),
            _table(parts, lambda part: part.day, key="day", title="Day", code=code),
        ),
        findings=tuple(_findings(whole, hourly, known=known)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """The energy of one cluster on one day."""

    cluster: str
    day: str
    cost: EnergyCost
    known_s: float
    told_s: float


def _parts(told: pl.DataFrame, known: Sequence[Tariff], *, code: str) -> list[_Part]:
    """Return what each cluster used on each day: all tables add these up."""
    return [
        _Part(
            cluster=str(cluster),
            day=str(day),
            cost=energy_cost(draws(part), known, currency=code),
            known_s=float(part["known_s"].sum()),
            told_s=float(part["told_s"].sum()),
        )
        for (cluster, day), part in told.partition_by("cluster", "day", as_dict=True).items()
    ]


def _coverage(hourly: pl.DataFrame) -> float | None:
    return ratio(total(hourly, "known_s"), total(hourly, "told_s"))


def _figures(whole: EnergyCost, code: str, *, coverage: float | None) -> tuple[Figure, ...]:
    is_known = coverage is not None and coverage > 0
    metered = is_known and whole.unpriced_kwh < whole.it_kwh
    cost = money_text(parts_of(whole.cost), code) if metered else None
    carbon = None if whole.kgco2e is None or not metered else float(whole.kgco2e)
    facts = (
        ("gpu_energy_j", "Energy of GPUs", _joules(whole.it_kwh) if is_known else None, "J",
         "Growth of each board's energy counter between readings that can both be right."),
        ("facility_energy_j", "Energy at the meter",
         _joules(whole.facility_kwh) if metered else None, "J",
         "Energy of GPUs x host factor x PUE of the tariff in force, where there is one."),
        ("energy_cost", titled("Energy cost", code), cost, "currency",
         "Energy at the meter x the tariff of each local hour; beside the cost of device-time."),
        ("carbon_kg", "Carbon (kg CO2e)", carbon, "count",
         "Energy at the meter x the grid's factor; null where a factor is unknown."),
        ("untariffed_energy_j", "Without a tariff",
         _joules(whole.unpriced_kwh) if is_known else None, "J",
         "Energy of GPUs for which no tariff in the currency was in force."),
    )  # fmt: skip
    return tuple(
        figure(
            key, title, value=value, unit=unit, definition=text, rows=READINGS,
            coverage_ratio=coverage,
        )
        for key, title, value, unit, text in facts
    )  # fmt: skip


def _table(
    parts: Sequence[_Part], name_of: Callable[[_Part], str], *, key: str, title: str, code: str
) -> Table:
    groups: dict[str, list[_Part]] = {}
    for part in parts:
        groups.setdefault(name_of(part), []).append(part)
    rows = []
    for name, group in groups.items():
        one = added(part.cost for part in group)
        metered = one.unpriced_kwh < one.it_kwh
        told_s = sum(part.told_s for part in group)
        rows.append(
            {
                key: name,
                "gpu_energy_j": _joules(one.it_kwh),
                "facility_energy_j": _joules(one.facility_kwh) if metered else None,
                "energy_cost": money_text(parts_of(one.cost), code) if metered else None,
                "carbon_kg": None if one.kgco2e is None or not metered else float(one.kgco2e),
                "coverage_ratio": ratio(sum(part.known_s for part in group), told_s),
            }
        )
    rows.sort(key=lambda row: str(row[key]))
    columns = (
        column(key, title, "text"),
        column("gpu_energy_j", "GPUs", "J"),
        column("facility_energy_j", "At the meter", "J"),
        column("energy_cost", "Cost", "currency"),
        column("carbon_kg", "kg CO2e", "count"),
        column("coverage_ratio", "Coverage", "ratio", "board-time between usable readings"),
    )
    return table(
        f"by_{key}",
        titled(f"Energy by {title.lower()}", code),
        frame=framed(rows, columns),
        columns=columns,
        rows=READINGS,
        note=MEMO,
    )


def _findings(whole: EnergyCost, hourly: pl.DataFrame, *, known: Sequence[Tariff]) -> list[str]:
    told = []
    if hourly.is_empty():
        told.append("No energy counter was read: power is not guessed from it.")
    elif not known:
        told.append("No tariff is recorded, so energy has no cost: steward price energy --help.")
    elif whole.unpriced_kwh:
        share = percent(ratio(float(whole.unpriced_kwh), float(whole.it_kwh)))
        told.append(f"{share} of the energy has no tariff in force.")
    return told


def _joules(kwh: Fraction) -> float:
    return float(kwh * JOULES_PER_KWH)


DEFINITION = ReportDefinition(
    name="energy",
    summary="kWh at the meter, their cost by tariff, and carbon",
    inputs=(READINGS, *BUILT, TARIFF),
    build=build,
)
