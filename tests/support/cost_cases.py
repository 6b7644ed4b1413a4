"""Cases of known cost: exact comparison, prices, and ledgers whose money is known by hand."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, time
from fractions import Fraction
from pathlib import Path
from typing import TypeAlias

import polars as pl
import pytest

from analytics.bookkeeping import keep_books
from analytics.cost.charge import PARTS, PRICES, Charged, charge, costs
from analytics.cost.rounding import money_text, parts_of, units_of
from steward.period import Period
from tests.support.analytics_frames import NOON, Row, frames, rows

Found: TypeAlias = "Fraction | int | str | Mapping[str, Found] | None"
EARLY = datetime(2020, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What the product says of a case."""

    found: Mapping[str, Found]
    """In the shape of what is expected, without the wrong answers."""
    beside: Mapping[str, Found] = field(default_factory=dict)
    """What each listed wrong answer was given for: it must differ."""


Runner: TypeAlias = Callable[[Mapping[str, object]], Outcome]


def cases_of(path: Path) -> dict[str, dict[str, object]]:
    """Return the cases of a file by id."""
    found = {case["id"]: case for case in json.loads(path.read_text())["cases"]}
    assert found, path
    return found


def assert_told(expected: Mapping[str, object], outcome: Outcome) -> None:
    """Compare every expected value, and see that no listed wrong answer was given."""
    right = dict(_leaves({k: v for k, v in expected.items() if not k.startswith("wrong")}))
    found = dict(_leaves(outcome.found))
    assert found.keys() == right.keys()
    for path, value in right.items():
        _assert_leaf(path, found[path], value)
    wrong = {key: value for key, value in expected.items() if key.startswith("wrong")}
    assert outcome.beside.keys() == wrong.keys()
    for key, value in wrong.items():
        assert _plain(outcome.beside[key]) != _plain(value), f"gave the wrong answer {key}"


def prices(*told: Mapping[str, object]) -> pl.DataFrame:
    """Return prices with harmless defaults; ``rate`` is decimal text in currency units."""
    defaults: dict[str, object] = {
        "gpu_model": "H100",
        "cluster": None,
        "purchase_type": "on_demand",
        "currency": "USD",
        "valid_from_at": EARLY,
        "valid_until_at": None,
        "book_version": "v1",
    }
    filled = [
        {
            **defaults,
            "price_id": number,
            "rate_micros": int(Fraction(str(one["rate"])) * 1_000_000),
            **{name: value for name, value in one.items() if name != "rate"},
        }
        for number, one in enumerate(told, start=1)
    ]
    return pl.DataFrame(filled, schema=PRICES)


def at_rate(rate: object) -> pl.DataFrame:
    """Return one price that always holds."""
    return prices({"rate": rate})


def at(clock: str) -> datetime:
    """Return an instant of the day of noon."""
    return datetime.combine(NOON.date(), time.fromisoformat(clock), tzinfo=UTC)


def history(
    *,
    devices: Iterable[Row],
    held: Iterable[Row] = (),
    readings: Iterable[Row] = (),
    nodes: Iterable[Row] = ({"observed_at": EARLY},),
) -> dict[str, pl.DataFrame]:
    """Return stored rows of one node: its devices, who held them, and what was read."""
    return frames(
        node_history=rows("node_history", *nodes),
        device_history=rows("device_history", *devices),
        allocation_history=rows("allocation_history", *held),
        utilization_sample=rows("utilization_sample", *readings),
    )


def booked(
    stored: Mapping[str, pl.DataFrame], start: datetime, end: datetime, *borders: datetime
) -> pl.DataFrame:
    """Return the ledger that is kept of stored rows."""
    return keep_books(stored, Period(start, end), borders=borders).rows


def money(frame: pl.DataFrame, column: str) -> Fraction:
    """Return the sum of one column of parts, in currency units."""
    return units_of(int(frame[column].sum()))


def money_by(charged: Charged, key: str, column: str = "capacity_parts") -> dict[str, Fraction]:
    """Return currency units by key, exactly; nobody is ``None``."""
    told = costs(charged.rows, key)
    assert set(PARTS) <= set(told.columns)
    return {name: units_of(parts) for name, parts in told.select(key, column).iter_rows()}


def charged(ledger: pl.DataFrame, book: pl.DataFrame) -> Charged:
    """Return a charged ledger whose leaves add up to its capacity."""
    found = charge(ledger, book)
    leaves = found.rows.select(pl.sum_horizontal(PARTS[1:])).to_series()
    assert leaves.to_list() == found.rows["capacity_parts"].to_list()
    return found


def _leaves(told: object, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], object]]:
    if isinstance(told, Mapping) and "exact" not in told:
        for key, value in told.items():
            yield from _leaves(value, (*path, str(key)))
    else:
        yield path, told


def _assert_leaf(path: tuple[str, ...], found: object, expected: object) -> None:
    if not isinstance(expected, dict):
        assert found == expected, path
        return
    assert isinstance(found, int | Fraction), path
    assert found == Fraction(expected["exact"]), path
    assert money_text(parts_of(found), "USD") == expected["cents"], path
    assert float(found) == pytest.approx(expected["value"], rel=1e-9), path


def _plain(told: object) -> object:
    if isinstance(told, Mapping):
        return (
            Fraction(told["exact"])
            if "exact" in told
            else {key: _plain(value) for key, value in told.items()}
        )
    return told
