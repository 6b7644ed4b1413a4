"""How values are printed for people: percent, durations, separators, dashes for what is unknown.

Base units come in, text goes out. A missing value is a dash, never 0; a measured value that is not
0 never prints as 0.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from typing import Final

from analytics.reports.model import Table
from steward.output import visible
from steward.period import Period
from steward.units import SECONDS_PER_DAY, SECONDS_PER_HOUR, SECONDS_PER_MINUTE

Printable = float | int | str | bool | date | datetime | timedelta | list[object] | None
"""What a figure or a frame's cell may hold."""

DASH: Final = "\u2013"
KWH_J: Final = 3_600_000
HUMAN_FROM_S: Final = 2 * SECONDS_PER_MINUTE
"""Durations from here on also read in minutes, hours and days."""
CURRENCY: Final = "currency"
"""Money: a decimal text such as ``1234.50``, printed digit for digit; the column ``currency`` of
its table, or its title, names the ISO 4217 code."""
AMOUNT: Final = re.compile(r"(?P<sign>-?)(?P<whole>[0-9]+)(?P<rest>(\.[0-9]+)?( [A-Z]{3})?)")
SELF_SCALED_UNITS: Final = frozenset({"ratio", "text", "bytes", "J", CURRENCY})
"""Units printed inside the cell, so that a column's header does not repeat them."""
SHORT_UNITS: Final = {"GPU-hours": "GPU-h", "milli-GPU": "mGPU", "celsius": "\u00b0C"}
"""Units on cards and in table headers, where there is little room."""
BINARY_PREFIXES: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
FINE_RATIO_DECIMALS: Final = {"fragmentation_ratio": 4, "fragmentation_of_total_ratio": 4}
"""Figures compared with published values, which print more digits than the usual two."""


FINEST_RATIO: Final = 1e-6
"""The smallest share printed as a number; nearer to 0 only the bound is said."""


def is_missing(value: Printable) -> bool:
    """Tell whether there is nothing to print: null, or a number that is none."""
    return value is None or (isinstance(value, float) and not math.isfinite(value))


def number(value: float, *, decimals: int = 2, is_whole_bare: bool = True) -> str:
    """Return the number with thousands separators; whole numbers without decimals.

    A number too small for the decimals prints with as many as its first digit needs.
    """
    if value == 0 or (is_whole_bare and value == int(value)):
        return f"{int(value):,}"
    rounded = f"{value:,.{decimals}f}"
    if float(rounded.replace(",", "")) != 0:
        return rounded
    return f"{value:.1g}" if abs(value) >= 1e-4 else f"{value:.0e}"


def percent(ratio: float, *, decimals: int = 2) -> str:
    """Return the ratio as a percentage with its sign; 0.4321 reads ``43.21 %``.

    A share of less than one in a million reads ``<0.0001 %``.
    """
    if 0 < abs(ratio) < FINEST_RATIO:
        return "<0.0001 %" if ratio > 0 else ">-0.0001 %"
    value_percent = round(ratio * 100, 12)  # 1e-6 * 100 falls just short of 1e-4
    return f"{number(value_percent, decimals=decimals, is_whole_bare=False)} %"


def duration(seconds: float) -> str:
    """Return the duration in its two largest units; 11,640 s reads ``3 h 14 min``."""
    if seconds < 0:
        return f"-{duration(-seconds)}"
    if seconds < HUMAN_FROM_S:
        return f"{number(seconds, decimals=1)} s"
    rest_s = round(seconds)
    parts: list[str] = []
    for length_s, name in (
        (SECONDS_PER_DAY, "d"),
        (SECONDS_PER_HOUR, "h"),
        (SECONDS_PER_MINUTE, "min"),
        (1, "s"),
    ):
        count, rest_s = divmod(rest_s, length_s)
        if count:
            parts.append(f"{count:,} {name}")
        elif parts:
            break
    return " ".join(parts[:2])


def size(size_bytes: float) -> str:
    """Return the size with a binary prefix; 1,610,612,736 reads ``1.50 GiB``."""
    scaled = float(size_bytes)
    for prefix in BINARY_PREFIXES[:-1]:
        if abs(scaled) < 1024:
            return f"{number(scaled)} {prefix}"
        scaled /= 1024
    return f"{number(scaled)} {BINARY_PREFIXES[-1]}"


def energy(energy_j: float) -> str:
    """Return the energy in kWh from 1 kWh on, else in joules."""
    if abs(energy_j) >= KWH_J:
        return f"{number(energy_j / KWH_J)} kWh"
    return f"{number(energy_j)} J"


def money(amount: str) -> str:
    """Return the decimal text with thousands separators; what is no amount stays as it is."""
    match = AMOUNT.fullmatch(amount)
    if match is None:
        return amount
    return f"{match['sign']}{int(match['whole']):,}{match['rest']}"


def instant(at: datetime) -> str:
    """Return the instant in UTC, to the minute, or to the second where it has seconds."""
    utc = at.astimezone(UTC) if at.tzinfo else at
    return f"{utc:%Y-%m-%d %H:%M:%S}" if utc.second else f"{utc:%Y-%m-%d %H:%M}"


def period(span: Period) -> str:
    """Return both ends in UTC with the length between them."""
    ends = f"{instant(span.from_at)} {DASH} {instant(span.until_at)} UTC"
    return f"{ends} ({duration(round(span.length_s))})" if span.length_s >= 1 else ends


def cell(value: Printable, unit: str) -> str:
    """Return a table cell: the column's header carries the unit, unless it scales itself."""
    if value is None or is_missing(value):
        return DASH
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return _numeric(value, unit)
    return money(value) if unit == CURRENCY and isinstance(value, str) else _other(value)


def cells(values: Iterable[Printable], unit: str) -> list[str]:
    """Return a column's cells; numbers of one column share their decimals, so that they align."""
    column = list(values)
    numbers = [value for value in column if isinstance(value, int | float)]
    is_whole = all(is_missing(value) or value == int(value) for value in numbers)
    if is_whole or unit in SELF_SCALED_UNITS:
        return [cell(value, unit) for value in column]
    return [
        number(value, is_whole_bare=False)
        if isinstance(value, int | float) and not is_missing(value)
        else cell(value, unit)
        for value in column
    ]


def figure(value: Printable, unit: str, *, key: str = "") -> str:
    """Return a headline value with its unit; long durations also in human units."""
    if isinstance(value, int | float) and not isinstance(value, bool) and not is_missing(value):
        if unit == "ratio":
            return percent(value, decimals=FINE_RATIO_DECIMALS.get(key, 2))
        if unit == "s" and abs(value) >= HUMAN_FROM_S:
            return f"{number(value)} s ({duration(value)})"
    return _with_unit(cell(value, unit), unit)


def brief(value: Printable, unit: str) -> str:
    """Return a headline for a card: one decimal of percent, human durations, no small change."""
    if not isinstance(value, int | float) or isinstance(value, bool) or is_missing(value):
        return cell(value, unit)
    if unit == "ratio":
        return percent(value, decimals=1)
    if unit == "s":
        return duration(value)
    decimals = 0 if abs(value) >= 100 else 1
    shown = number(value, decimals=decimals) if unit not in SELF_SCALED_UNITS else cell(value, unit)
    return _with_unit(shown, SHORT_UNITS.get(unit, unit))


def table_cells(table: Table) -> list[tuple[str, ...]]:
    """Return the table's rows as printed cells."""
    columns = [
        _priced(cells(table.frame[column.name], column.unit), table)
        if column.unit == CURRENCY
        else cells(table.frame[column.name], column.unit)
        for column in table.columns
    ]
    return list(zip(*columns, strict=True))


def header(title: str, unit: str) -> str:
    """Return a column's title with the unit its cells do not show."""
    if unit in SELF_SCALED_UNITS or unit == "count":
        return title
    words = title.lower().replace("(", " ").replace(")", " ").split()
    if unit.lower() in words or f"{unit.lower()}s" in words:
        return title
    return f"{title} ({SHORT_UNITS.get(unit, unit)})"


def _priced(shown: list[str], table: Table) -> list[str]:
    """Return cells of money with the code that the column ``currency`` of their row names."""
    if CURRENCY not in table.frame.columns:
        return shown
    codes = table.frame[CURRENCY].to_list()
    return [
        cell if code is None or cell == DASH else f"{cell} {code}"
        for cell, code in zip(shown, codes, strict=True)
    ]


def coverage(ratio: float | None) -> str:
    """Return the known share; blank where coverage does not apply."""
    return "" if ratio is None else percent(ratio, decimals=1)


def _with_unit(shown: str, unit: str) -> str:
    is_bare = shown == DASH or unit in SELF_SCALED_UNITS or unit == "count"
    return shown if is_bare else f"{shown} {unit}"


def _numeric(value: float, unit: str) -> str:
    if unit == "ratio":
        return percent(value)
    if unit == "bytes":
        return size(value)
    if unit == "J":
        return energy(value)
    return number(value)


def _other(value: str | date | datetime | timedelta | list[object]) -> str:
    if isinstance(value, datetime):
        return instant(value)
    if isinstance(value, timedelta):
        return duration(value.total_seconds())
    if isinstance(value, list):
        return visible(", ".join(str(item) for item in value))
    return visible(str(value))
