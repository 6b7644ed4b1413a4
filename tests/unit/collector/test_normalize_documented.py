"""The metrics dictionary for people says what the code does, column by column and name by name."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import pytest

from collector.normalize.absence import Absence, Doubt
from collector.normalize.dictionary import MEASURES, METRICS
from collector.normalize.metric import Role
from collector.normalize.units import Unit
from collector.normalize.vendors import agent
from collector.normalize.vendors.amd import AFID
from collector.normalize.vendors.ascend import NPU_ERROR
from collector.sources.exposition import Fault

DOCUMENT = (Path(__file__).parents[3] / "docs" / "metrics.md").read_text("utf-8")
TABLES, NAMES = DOCUMENT.split("### Traps")[0].split("### Names by exporter")
VENDOR_UNITS = {
    "percent": "%",
    "ratio": "ratio",
    "degrees Celsius": "°C",
    "MB/s": "KiB/s ÷ 1,000",
    "uJ": "µJ",
}
EVENTS = [
    *("xid", "lost", "returned", "mig_changed", "profiling_lost", "profiling_returned"),
    *(AFID, NPU_ERROR),
]


def rows_of(tables: str) -> dict[str, list[list[str]]]:
    """The other cells of each row by the column that the row is about."""
    rows: dict[str, list[list[str]]] = defaultdict(list)
    for text in tables.splitlines():
        if text.startswith("| `"):
            first, *others = [cell.strip() for cell in text.split("|")[1:-1]]
            rows[first.strip("`")].append(others)
    return rows


def family(name: str) -> str:
    """The name as the document spells it: lanes and numbers stand for many."""
    return re.sub(r"error_code_[0-9]+$", "error_code_{n}", re.sub(r"_L[0-9]+", "_L{lane}", name))


def shown(unit: Unit) -> str:
    return VENDOR_UNITS.get(unit.name, unit.name)


def test_every_measure_has_one_row_in_stored_order() -> None:
    rows = rows_of(TABLES)
    assert list(rows) == list(MEASURES)
    assert all(len(told) == 1 for told in rows.values())


@pytest.mark.parametrize("column", MEASURES)
def test_row_has_meaning_unit_and_scope(column: str) -> None:
    ((meaning, unit, scope),) = rows_of(TABLES)[column]
    metric = next(metric for metric in agent.METRICS.values() if metric.column == column)
    assert meaning
    assert unit
    assert scope == ("board" if metric.is_board_wide else "instance")


@pytest.mark.parametrize("name", sorted({family(name) for name in METRICS}))
def test_vendor_name_stands_in_a_row_of_its_column(name: str) -> None:
    metric = next(metric for key, metric in METRICS.items() if family(key) == name)
    if metric.role is not Role.MEASURE:
        assert f"`{name}`" in NAMES
        return
    fields = " ".join(cell for cells in rows_of(NAMES)[metric.column] for cell in cells)
    assert f"`{name}`" in fields
    if metric.unit.name != "count" and not metric.may_be_percent:
        assert f"`{name}` [{shown(metric.unit)}]" in fields


def test_document_names_nothing_that_the_code_does_not_know() -> None:
    told = {
        name
        for rows in rows_of(NAMES).values()
        for cells in rows
        for name in re.findall(r"`([^`]+)`", cells[0])
    }
    assert told - {family(name) for name in METRICS} == {Doubt.LOW_TRUST}


@pytest.mark.parametrize("word", [*Absence, *Doubt, *Fault, *EVENTS])
def test_reason_or_event_is_explained(word: str) -> None:
    assert f"`{word}`" in DOCUMENT.split("## Absences")[1]
