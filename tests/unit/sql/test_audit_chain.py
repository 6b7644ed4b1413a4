"""The audit's chain shows every change, removal and exchange of rows before its head."""

from __future__ import annotations

from itertools import pairwise

import pytest

from sql.auditchain import FIRST, SEALED, ChainState, sealed, verified


def chain(length: int) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    previous = FIRST
    for number in range(1, length + 1):
        row = sealed({name: f"{name} {number}" for name in SEALED}, previous=previous)
        rows.append({"audit_id": number, **row})
        previous = str(row["sha256"])
    return rows


def test_each_row_holds_the_hash_of_the_one_before() -> None:
    rows = chain(4)
    assert rows[0]["previous_sha256"] == FIRST
    assert all(later["previous_sha256"] == row["sha256"] for row, later in pairwise(rows))


@pytest.mark.parametrize("length", [0, 1, 5])
def test_an_untouched_chain_is_whole(length: int) -> None:
    state = verified(ChainState(), chain(length))
    assert (state.row_count, state.fault) == (length, None)


def test_portions_verify_as_the_whole() -> None:
    rows = chain(5)
    whole = verified(ChainState(), rows)
    assert verified(verified(ChainState(), rows[:2]), rows[2:]) == whole


@pytest.mark.parametrize("column", [*SEALED, "sha256", "previous_sha256"])
def test_a_changed_word_is_found_where_it_is(column: str) -> None:
    rows = chain(5)
    rows[2] = {**rows[2], column: "other"}
    state = verified(ChainState(), rows)
    assert state.fault is not None
    assert (state.row_count, state.fault.audit_id) == (2, 3)


def test_a_removed_row_is_found_at_the_next() -> None:
    rows = chain(5)
    del rows[1]
    state = verified(ChainState(), rows)
    assert state.fault is not None
    assert state.fault.audit_id == 3


def test_exchanged_rows_are_found() -> None:
    rows = chain(5)
    rows[1], rows[2] = rows[2], rows[1]
    assert verified(ChainState(), rows).fault is not None


@pytest.mark.parametrize("shift", [1, 100, 2**62], ids=["by one", "by a hundred", "far away"])
def test_renumbered_rows_are_found_where_they_begin(shift: int) -> None:
    rows = chain(5)
    for row in rows[3:]:
        row["audit_id"] = int(str(row["audit_id"])) + shift
    state = verified(ChainState(), rows)
    assert state.fault is not None
    assert (state.row_count, state.fault.audit_id) == (3, 4 + shift)
