"""The metrics dictionary for people says what the code does, column by column and name by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from collector.normalize.dictionary import MEASURES, METRICS, XID
from collector.normalize.sentinels import Absence
from collector.normalize.units import Unit
from collector.sources.exposition import Fault

DOCUMENT = Path(__file__).parents[3] / "docs" / "metrics.md"
VENDOR_UNITS = {
    "percent": "%",
    "ratio": "ratio",
    "degrees Celsius": "°C",
    "MB/s": "KiB/s ÷ 1,000",
}


def table_rows() -> dict[str, list[str]]:
    """The cells of the first table by column name."""
    lines = DOCUMENT.read_text("utf-8").split("### Traps")[0].splitlines()
    rows = [[cell.strip() for cell in text.split("|")[1:-1]] for text in lines if "| `" in text]
    return {cells[0].strip("`"): cells for cells in rows}


def test_every_measure_has_one_row_in_stored_order() -> None:
    assert list(table_rows()) == list(MEASURES)


@pytest.mark.parametrize("column", MEASURES)
def test_row_has_meaning_unit_and_scope(column: str) -> None:
    _, meaning, unit, scope, *_ = table_rows()[column]
    metric = next(metric for metric in METRICS.values() if metric.column == column)
    assert meaning
    assert unit
    assert scope == ("board" if metric.is_board_wide else "instance")


@pytest.mark.parametrize("name", METRICS)
def test_vendor_name_stands_in_the_row_of_its_column(name: str) -> None:
    metric = METRICS[name]
    if metric.column == XID:
        assert f"`{name}`" in DOCUMENT.read_text("utf-8")
        return
    fields = " ".join(table_rows()[metric.column][4:])
    assert f"`{name}`" in fields
    if metric.unit.name != "count" and not metric.may_be_percent:
        assert f"`{name}` [{shown(metric.unit)}]" in fields


def shown(unit: Unit) -> str:
    return VENDOR_UNITS.get(unit.name, unit.name)


@pytest.mark.parametrize("word", [*Absence, *Fault, "xid", "lost", "returned", "mig_changed"])
def test_reason_or_event_is_explained(word: str) -> None:
    assert f"`{word}`" in DOCUMENT.read_text("utf-8").split("## Absences")[1]
