"""One value that fits no column costs that value, never the rows beside it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from collector.tables import rows_table

NOON = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
WEST = timezone(timedelta(hours=-14))
EAST = timezone(timedelta(hours=14))


def node(name: str, **columns: object) -> dict[str, object]:
    return {"observed_at": NOON, "cluster": "c", "node": name, "source": "kubernetes", **columns}


@pytest.mark.parametrize(
    ("column", "value", "kept"),
    [
        ("gpu_count", 2**31 - 1, 2**31 - 1),
        ("gpu_count", 2**31, None),
        ("gpu_count", -(2**31), -(2**31)),
        ("gpu_count", -(2**31) - 1, None),
        ("memory_bytes", 2**63 - 1, 2**63 - 1),
        ("memory_bytes", 2**63, None),
        ("memory_bytes", 10**400, None),
        ("gpu_count", 0, 0),
        ("gpu_count", None, None),
        ("gpu_count", "eight", None),
        ("rack", "\ud800", None),
        ("rack", 7, None),
        ("rack", "", ""),
    ],
)
def test_a_value_that_does_not_fit_is_null(column: str, value: object, kept: object) -> None:
    rows = [node("a", gpu_count=8), node("b", **{column: value}), node("c", gpu_count=0)]
    table = rows_table("node", rows)
    assert table["node"].to_pylist() == ["a", "b", "c"]
    assert table[column].to_pylist()[1] == kept
    assert table["gpu_count"].to_pylist()[::2] == [8, 0]


@pytest.mark.parametrize(
    "misfit",
    [
        {"observed_at": datetime(1, 1, 1, tzinfo=EAST)},
        {"observed_at": datetime(9999, 12, 31, 23, tzinfo=WEST)},
        {"node": "\ud800"},
        {"node": 5},
    ],
)
def test_a_row_whose_identity_does_not_fit_is_left_out_and_told(
    misfit: dict[str, object], caplog: pytest.LogCaptureFixture
) -> None:
    table = rows_table("node", [node("a"), {**node("b"), **misfit}, node("c")])
    assert table["node"].to_pylist() == ["a", "c"]
    (column,) = misfit
    assert caplog.messages == [f"node.{column} cannot hold what a source says: the row is left out"]


def test_rows_of_nothing_but_misfits_leave_an_empty_table() -> None:
    assert rows_table("node", [node("\ud800")]).num_rows == 0
    assert rows_table("node", []).num_rows == 0
