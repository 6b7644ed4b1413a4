"""What a hostile writer of state rows, or a hand in the file, may not do: hide, jump ahead, lie."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

import pytest

from sql.auditchain import AUDIT, ChainState, verified
from sql.state import StateStore, open_state
from sql.stateappend import DECISIONS, ENFORCER_TABLES, role_of
from sql.statedoor import STATE_FILE
from sql.tokens import Role
from steward.errors import InputError
from steward.ports import StateValue

LARGEST_KEY = 2**63 - 1
WORD: Mapping[str, StateValue] = {
    "occurred_at": "2026-05-01T12:00:00Z",
    "actor": "kim",
    "action": "freeze",
    "subject_kind": "cluster",
    "subject_uid": "prod",
    "body_json": "{}",
}
SWITCH: Mapping[str, StateValue] = {
    "cluster": None,
    "is_stopped": 1,
    "actor": "kim",
    "reason": "maintenance",
}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[StateStore]:
    with closing(open_state(tmp_path)) as found:
        yield found


@pytest.mark.parametrize("key", [LARGEST_KEY, 1, 0, -7])
def test_no_writer_names_the_key_of_a_row(store: StateStore, tmp_path: Path, key: int) -> None:
    """The newest word counts, and the newest has the largest key: nobody speaks for ever."""
    with closing(sqlite3.connect(tmp_path / STATE_FILE)) as file:
        counted = file.execute(
            "select m.name, c.name from sqlite_master as m, pragma_table_info(m.name) as c "
            "where m.type = 'table' and c.pk and lower(c.type) = 'integer'"
        ).fetchall()
    own = [pair for pair in counted if pair[0] in store.table_names]
    assert {"action", "audit", "exemption", "policy_version"} <= {table for table, _ in own}
    for table, column in own:
        with pytest.raises(InputError, match="by the warehouse"):
            store.append([(table, {column: key})], seen={})
    assert store.rows("enforcement_switch") == ()


def test_a_stop_is_the_newest_word_whatever_was_tried_before(store: StateStore) -> None:
    release = {**SWITCH, "is_stopped": 0}
    with pytest.raises(InputError):
        store.append(
            [("enforcement_switch", {**release, "enforcement_switch_id": LARGEST_KEY})], seen={}
        )
    store.append([("enforcement_switch", release)], seen={})
    store.append([("enforcement_switch", SWITCH)], seen={})
    assert store.rows("enforcement_switch", limit=1)[0]["is_stopped"] == 1


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("{}\0", id="SQLite stops reading at a NUL"),
        pytest.param("9" * 5_000, id="a number longer than readers take"),
        pytest.param("", id="nothing"),
        pytest.param("{'a': 1}", id="another language"),
    ],
)
def test_what_readers_could_not_read_is_not_stored(store: StateStore, text: str) -> None:
    with pytest.raises(InputError, match="no JSON"):
        store.append([(AUDIT, {**WORD, "body_json": text})], seen={})
    assert store.rows(AUDIT) == ()


def test_a_text_with_a_nul_is_none(store: StateStore) -> None:
    with pytest.raises(InputError, match="not a text"):
        store.append([(AUDIT, {**WORD, "actor": "kim\0eve"})], seen={})


@pytest.mark.parametrize("key", [0, -3])
def test_rows_below_the_first_key_are_not_hidden(
    store: StateStore, tmp_path: Path, key: int
) -> None:
    store.append([(AUDIT, WORD)], seen={})
    with closing(sqlite3.connect(tmp_path / STATE_FILE)) as file:
        file.execute(
            "insert into audit select ?, occurred_at, 'eve', action, subject_kind, subject_uid, "
            "body_json, printf('%064d', 7), printf('%064d', 8) from audit",
            (key,),
        )
        file.commit()
    found = store.rows_after(AUDIT, 0)
    assert [row["audit_id"] for row in found] == [key, 1]
    fault = verified(ChainState(), found).fault
    assert fault is not None
    assert fault.audit_id == key


@pytest.mark.parametrize("column", ["actor", "body_json", "subject_uid"])
@pytest.mark.parametrize("value", ["x'ff00'", "7", "x'6b696d'"])
def test_a_value_of_another_type_is_a_broken_word(
    store: StateStore, tmp_path: Path, column: str, value: str
) -> None:
    for _ in range(3):
        store.append([(AUDIT, WORD)], seen={})
    with closing(sqlite3.connect(tmp_path / STATE_FILE)) as file:
        file.execute("pragma ignore_check_constraints = on")
        file.execute(f"update audit set {column} = {value} where audit_id = 2")  # noqa: S608 - a test's own words
        file.commit()
    state = verified(ChainState(), store.rows_after(AUDIT, 0))
    assert state.fault is not None
    assert (state.fault.audit_id, state.row_count) == (2, 1)


@pytest.mark.parametrize("action", sorted(DECISIONS))
def test_the_enforcer_does_not_tell_the_audit_what_people_decided(action: str) -> None:
    assert role_of([(AUDIT, {**WORD, "action": action})]) is Role.ADMIN
    assert role_of([(AUDIT, {**WORD, "subject_kind": "policy"})]) is Role.ADMIN


@pytest.mark.parametrize("is_stopped", [0, None, True, "1"])
def test_who_is_stopped_does_not_release_itself(is_stopped: StateValue) -> None:
    switch = ("enforcement_switch", {**SWITCH, "is_stopped": is_stopped})
    assert role_of([switch]) is (Role.ENFORCER if is_stopped is True else Role.ADMIN)
    assert role_of([("enforcement_switch", SWITCH)]) is Role.ENFORCER


def test_the_enforcer_tells_the_audit_what_it_did() -> None:
    rows = [(table, {**WORD, "is_stopped": 1}) for table in sorted(ENFORCER_TABLES)]
    assert role_of(rows) is Role.ENFORCER
    assert role_of([*rows, ("exemption", {})]) is Role.ADMIN
