"""State rows read from their beginning and appended as one: embedded, and through a real server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from sql.auditchain import ChainState, verified
from sql.client import RemoteWarehouse
from sql.stateappend import role_for
from sql.tokens import Tokens
from sql.warehouse import EmbeddedWarehouse, open_embedded
from steward.errors import AccessError, InputError, QueryError
from tests.support.warehouse_server import remote

Warehouse = EmbeddedWarehouse | RemoteWarehouse
STOP = {"is_stopped": 1, "actor": "kim", "reason": "maintenance"}
WORD = {
    "occurred_at": "2026-05-01T12:00:00.000Z",
    "actor": "kim",
    "action": "freeze",
    "subject_kind": "cluster",
    "subject_uid": "alpha",
    "body_json": json.dumps({"reason": "für Wartung"}),
}


@pytest.fixture(params=["embedded", "remote"])
def warehouse(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Warehouse]:
    data_dir = tmp_path_factory.mktemp("warehouse")
    opener = closing(open_embedded(data_dir)) if request.param == "embedded" else remote(data_dir)
    with opener as opened:
        yield opened


def keys(rows: object) -> list[object]:
    assert isinstance(rows, list)
    return [row["enforcement_switch_id"] for row in rows]


def test_rows_after_a_key_come_oldest_first(warehouse: Warehouse) -> None:
    for _ in range(3):
        warehouse.state_insert("enforcement_switch", STOP)
    assert keys(warehouse.state_after("enforcement_switch", 0)) == [1, 2, 3]
    assert keys(warehouse.state_after("enforcement_switch", 1)) == [2, 3]
    assert keys(warehouse.state_after("enforcement_switch", 3)) == []
    assert keys(warehouse.state_after("enforcement_switch", 0, limit=2)) == [1, 2]


def test_rows_of_several_tables_are_stored_together(warehouse: Warehouse) -> None:
    stored = warehouse.state_append([("enforcement_switch", STOP), ("audit", WORD)], seen={})
    assert stored is not None
    assert stored == [
        *warehouse.state_rows("enforcement_switch"),
        *warehouse.state_rows("audit"),
    ]


def test_one_faulty_row_stores_none(warehouse: Warehouse) -> None:
    faulty = {**STOP, "is_stopped": 2}
    with pytest.raises(InputError, match="breaks a rule"):
        warehouse.state_append([("audit", WORD), ("enforcement_switch", faulty)], seen={})
    assert list(warehouse.state_rows("audit")) == []


@pytest.mark.parametrize(
    ("seen", "is_stored"),
    [
        pytest.param(1, False, id="one row behind"),
        pytest.param(2, True, id="exactly up to date"),
        pytest.param(3, True, id="ahead"),
    ],
)
def test_a_writer_that_has_not_seen_all_stores_nothing(
    warehouse: Warehouse, seen: int, is_stored: bool
) -> None:
    warehouse.state_insert("enforcement_switch", STOP)
    warehouse.state_insert("enforcement_switch", STOP)
    rows = [("enforcement_switch", STOP), ("audit", WORD)]
    stored = warehouse.state_append(rows, seen={"enforcement_switch": seen})
    assert (stored is not None) is is_stored
    assert len(warehouse.state_rows("audit")) == int(is_stored)


def test_of_many_writers_that_saw_the_same_one_is_stored(warehouse: Warehouse) -> None:
    rows = [("enforcement_switch", STOP)]
    with ThreadPoolExecutor(8) as pool:
        answers = list(
            pool.map(
                lambda _n: warehouse.state_append(rows, seen={"enforcement_switch": 0}), range(8)
            )
        )
    assert sum(answer is not None for answer in answers) == 1


def test_the_audit_is_a_chain_however_rows_come(warehouse: Warehouse) -> None:
    warehouse.state_insert("audit", WORD)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _n: warehouse.state_append([("audit", WORD)], seen={}), range(20)))
    state = verified(ChainState(), warehouse.state_after("audit", 0))
    assert (state.row_count, state.fault) == (21, None)


@pytest.mark.parametrize(
    "row",
    [
        pytest.param({**WORD, "sha256": "0" * 64}, id="a hash of its own"),
        pytest.param({**WORD, "audit_id": 7}, id="a key of its own"),
        pytest.param({k: v for k, v in WORD.items() if k != "actor"}, id="a word missing"),
    ],
)
def test_the_warehouse_alone_seals_the_audit(warehouse: Warehouse, row: dict[str, str]) -> None:
    with pytest.raises(InputError, match="sealed by the warehouse"):
        warehouse.state_insert("audit", row)


def test_an_unknown_table_is_told(warehouse: Warehouse) -> None:
    with pytest.raises(QueryError, match="no state table"):
        warehouse.state_after("actions", 0)
    with pytest.raises(QueryError, match="no state table"):
        warehouse.state_append([("actions", {})], seen={})


def test_an_enforcers_token_records_acts_and_changes_no_rules() -> None:
    tokens = Tokens(enforcer=("e",), admin=("a",))
    tokens.refuse("Bearer e", needs=role_for(["action", "audit"]))
    tokens.refuse("Bearer a", needs=role_for(["exemption"]))
    for table in ("exemption", "policy_version", "request", "approval", "price"):
        with pytest.raises(AccessError):
            tokens.refuse("Bearer e", needs=role_for(["action", table]))
