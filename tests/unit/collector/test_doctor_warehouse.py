"""The doctor's comparison of a warehouse's tables with those that the collector writes."""

from __future__ import annotations

from typing import Any

import pytest

from collector.doctor.warehouse import description_findings
from collector.tables import SCHEMAS
from steward.version import __version__
from tests.support.doctor_views import told

URL = "http://127.0.0.1:8420"


def description(version: str | None = __version__) -> dict[str, Any]:
    """Return what a server of this version says of its tables."""
    tables = {
        name: [{"name": field.name, "nullable": field.nullable} for field in schema]
        for name, schema in SCHEMAS.items()
    }
    return {"version": version, "tables": tables}


def test_the_same_version() -> None:
    (found,) = description_findings(description(), subject=URL)
    assert (found.code, found.message) == (
        "warehouse_ready",
        f"version {__version__} takes rows from this collector",
    )


@pytest.mark.parametrize(("version", "word"), [("0.0.1", "0.0.1"), (None, "unknown")])
def test_another_version_whose_tables_fit(version: str | None, word: str) -> None:
    (found,) = description_findings(description(version), subject=URL)
    assert (str(found.severity), found.code) == ("note", "warehouse_version")
    assert found.message.startswith(f"the warehouse is of version {word},")


def test_an_older_warehouse_lacks_a_column_and_a_table() -> None:
    older = description()
    older["tables"]["device_sample"] = older["tables"]["device_sample"][:-1]
    del older["tables"]["pod"]
    (found,) = description_findings(older, subject=URL)
    assert (str(found.severity), found.code) == ("fault", "warehouse_mismatch")
    assert found.message.startswith("the warehouse lacks device_sample.")
    assert "pod." in found.message


@pytest.mark.parametrize(
    ("may_be_null", "expected"),
    [(True, [("fine", "warehouse_ready")]), (False, [("fault", "warehouse_mismatch")])],
)
def test_a_newer_warehouse_has_a_column_more(
    *, may_be_null: bool, expected: list[tuple[str, str]]
) -> None:
    newer = description()
    newer["tables"]["scrape"].append({"name": "weight", "nullable": may_be_null})
    assert told(description_findings(newer, subject=URL)) == expected


@pytest.mark.parametrize(
    "answer",
    [{}, {"tables": []}, {"tables": {"scrape": 5}}, {"tables": {"scrape": [{"name": "x"}]}}],
    ids=["nothing", "a list", "a number", "half a column"],
)
def test_what_is_no_warehouse(answer: dict[str, Any]) -> None:
    assert told(description_findings(answer, subject=URL)) == [("fault", "warehouse_away")]
