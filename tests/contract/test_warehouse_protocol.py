"""One contract, two warehouses: embedded, and remote through a real owner process."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import datetime
from itertools import count
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from sql.client import RemoteWarehouse
from sql.sandbox import is_truncated
from sql.warehouse import EmbeddedWarehouse, open_embedded
from steward.errors import InputError, QueryError
from steward.ids import BatchId, new_batch_id
from tests.support.warehouse_rows import NOON, samples
from tests.support.warehouse_server import remote

CLUSTER = count()
Warehouse = EmbeddedWarehouse | RemoteWarehouse


@pytest.fixture(scope="module", params=["embedded", "remote"])
def warehouse(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Warehouse]:
    data_dir = tmp_path_factory.mktemp("warehouse")
    opener = closing(open_embedded(data_dir)) if request.param == "embedded" else remote(data_dir)
    with opener as opened:
        yield opened


@pytest.fixture
def cluster() -> str:
    return f"cluster-{next(CLUSTER)}"


def stored(warehouse: Warehouse, cluster: str, column: str = "busy_ratio") -> list[Any]:
    statement = (
        f"select {column} from device_sample where cluster = '{cluster}' order by sampled_at"  # noqa: S608  # our own names
    )
    return pl.DataFrame(warehouse.sql(statement))[column].to_list()


def test_zero_null_and_nan_are_kept_apart(warehouse: Warehouse, cluster: str) -> None:
    rows = samples(3, cluster=[cluster] * 3, busy_ratio=[0.0, None, float("nan")])
    receipt = warehouse.append("device_sample", rows, batch_id=new_batch_id())
    assert (receipt.row_count, receipt.is_repeat) == (3, False)
    assert stored(warehouse, cluster) == [0.0, None, None]


def test_a_repeated_batch_is_stored_once(warehouse: Warehouse, cluster: str) -> None:
    batch_id = new_batch_id()
    rows = samples(2, cluster=[cluster] * 2)
    first = warehouse.append("device_sample", rows, batch_id=batch_id)
    again = warehouse.append("device_sample", samples(9), batch_id=batch_id)
    assert (first.is_repeat, again.is_repeat, again.row_count) == (False, True, 2)
    assert len(stored(warehouse, cluster)) == 2


def test_racing_appends_of_one_batch_store_it_once(warehouse: Warehouse, cluster: str) -> None:
    batch_id = new_batch_id()
    rows = samples(500, cluster=[cluster] * 500)
    with ThreadPoolExecutor(8) as pool:
        receipts = list(
            pool.map(lambda _: warehouse.append("device_sample", rows, batch_id=batch_id), range(8))
        )
    assert sorted(receipt.is_repeat for receipt in receipts) == [False] + [True] * 7
    assert len(stored(warehouse, cluster)) == 500


def test_a_batch_id_belongs_to_one_table(warehouse: Warehouse) -> None:
    batch_id = new_batch_id()
    warehouse.append("device_sample", samples(1), batch_id=batch_id)
    node = pa.table({"observed_at": [NOON], "cluster": ["c"], "node": ["n"], "source": ["s"]})
    with pytest.raises(InputError, match="was stored in table device_sample"):
        warehouse.append("node", node, batch_id=batch_id)


def test_a_polars_frame_may_be_appended(warehouse: Warehouse, cluster: str) -> None:
    frame = pl.DataFrame(samples(2, cluster=[cluster] * 2, power_w=[0.0, 1.5]))
    warehouse.append("device_sample", frame, batch_id=new_batch_id())
    assert stored(warehouse, cluster, "power_w") == [0.0, 1.5]


def test_an_empty_batch_is_a_batch(warehouse: Warehouse) -> None:
    receipt = warehouse.append(
        "device_sample", samples(1).slice(0, 0), batch_id=BatchId(new_batch_id())
    )
    assert receipt.row_count == 0


@pytest.mark.parametrize(
    ("table", "rows", "words"),
    [
        pytest.param("device_samples", samples(), "no table", id="unknown table"),
        pytest.param("append_batch", samples(), "no table", id="the warehouse's own table"),
        pytest.param("device_sample", samples(power=[1.0] * 3), "no column", id="unknown column"),
        pytest.param(
            "device_sample", samples().drop_columns(["node"]), "needs the columns", id="absent key"
        ),
        pytest.param(
            "device_sample", samples(node=["n", None, "n"]), "1 nulls", id="null in a key"
        ),
        pytest.param(
            "device_sample", samples(busy_ratio=["a", "b", "c"]), "does not fit", id="text"
        ),
        pytest.param(
            "device_sample", samples(instance_id=[1, 2, 2**40]), "does not fit", id="overflow"
        ),
        pytest.param(
            "device_sample",
            samples(sampled_at=[datetime(2026, 5, 1)] * 3),  # noqa: DTZ001  # the case
            "no time zone",
            id="naive instant",
        ),
        pytest.param(
            "device_sample", samples(sampled_at=[1, 2, 3]), "no time zone", id="number as instant"
        ),
    ],
)
def test_rows_that_do_not_fit_are_refused_whole(
    warehouse: Warehouse, table: str, rows: pa.Table, words: str
) -> None:
    before = pl.DataFrame(warehouse.sql("select count(*) as n from append_batch")).item()
    with pytest.raises(InputError, match=words):
        warehouse.append(table, rows, batch_id=new_batch_id())
    assert pl.DataFrame(warehouse.sql("select count(*) as n from append_batch")).item() == before


@pytest.mark.parametrize(
    ("name", "parameters", "words"),
    [
        pytest.param("data_extend", {}, "no query named", id="unknown name"),
        pytest.param("data_extent", {"a": 1}, r"\$a is unknown", id="extra parameter"),
        pytest.param("node_history", {}, r"\$from_at is missing", id="missing parameter"),
        pytest.param(
            "node_history",
            {"from_at": "2026-05-01", "until_at": NOON},
            "no instant",
            id="naive parameter",
        ),
        pytest.param(
            "node_history", {"from_at": 3, "until_at": NOON}, "no instant", id="wrong type"
        ),
    ],
)
def test_a_query_insists_on_its_parameters(
    warehouse: Warehouse, name: str, parameters: dict[str, Any], words: str
) -> None:
    with pytest.raises(QueryError, match=words):
        warehouse.query(name, parameters)


def test_the_nearest_query_is_named(warehouse: Warehouse) -> None:
    with pytest.raises(QueryError) as caught:
        warehouse.query("data_extend")
    assert "data_extent" in caught.value.hint


@pytest.mark.parametrize(
    "statement",
    [
        "select * from read_text('/etc/passwd')",
        "select * from read_csv('/etc/passwd')",
        "select * from '/etc/passwd'",
        "select * from glob('/*')",
        "copy node to '/tmp/stolen.csv'",
        "attach '/tmp/other.duckdb'",
        "install httpfs",
        "load httpfs",
        "pragma database_list",
        "set memory_limit = '100GB'",
        "call pragma_version()",
        "checkpoint",
        "create table t (a integer)",
        "insert into node select * from node",
        "with x as (insert into append_batch values (now(), 'x', 'x', 1) returning *) from x",
        "explain analyze delete from node",
        "delete from append_batch",
        "drop table node",
        "begin",
        "select 1; select 2",
        "",
        "selec 1",
        "select * from nodes",
        "select 1 // 0",
    ],
)
def test_only_reading_is_answered(warehouse: Warehouse, statement: str) -> None:
    with pytest.raises(QueryError) as caught:
        warehouse.sql(statement)
    assert caught.value.hint


@pytest.mark.parametrize(
    "statement", ["explain select 1", "describe node", "from node", "values (1)"]
)
def test_reading_in_other_words_is_answered(warehouse: Warehouse, statement: str) -> None:
    assert pl.DataFrame(warehouse.sql(statement)).width > 0


@pytest.mark.parametrize(
    ("row_limit", "row_count", "truncated"),
    [
        pytest.param(0, 0, True, id="none of them"),
        pytest.param(9, 9, True, id="one short"),
        pytest.param(10, 10, False, id="exactly all"),
        pytest.param(11, 10, False, id="more than there are"),
        pytest.param(None, 10, False, id="no limit"),
    ],
)
def test_a_row_limit_cuts_and_says_so(
    warehouse: Warehouse, row_limit: int | None, row_count: int, truncated: bool
) -> None:
    rows = warehouse.sql("select * from range(10)", row_limit=row_limit)
    assert (rows.num_rows, is_truncated(rows)) == (row_count, truncated)


def test_too_many_rows_without_a_limit_are_refused(warehouse: Warehouse) -> None:
    with pytest.raises(QueryError, match="more than 1000000 rows"):
        warehouse.sql("select * from range(1000001)")


PRICE: dict[str, str | int | float | None] = {
    "gpu_model": "H100",
    "amount_micros_per_gpu_hour": 0,
    "currency": "USD",
    "valid_from_at": "2026-05-01T00:00:00Z",
    "source": "test",
    "approver": "ann",
}


def test_state_rows_come_newest_first_as_they_were_stored(warehouse: Warehouse) -> None:
    before = warehouse.state_rows("price")
    first = warehouse.state_insert("price", PRICE)
    second = warehouse.state_insert("price", {**PRICE, "amount_micros_per_gpu_hour": 2_500_000})
    assert list(warehouse.state_rows("price")) == [second, first, *before]
    assert (first["amount_micros_per_gpu_hour"], first["tenant_id"]) == (0, None)


def test_a_state_table_without_rows_is_empty(warehouse: Warehouse) -> None:
    assert list(warehouse.state_rows("budget")) == []


def test_an_unknown_state_table_is_refused(warehouse: Warehouse) -> None:
    with pytest.raises(QueryError, match="no state table 'prices'"):
        warehouse.state_rows("prices")


def test_a_state_row_that_breaks_a_rule_is_refused(warehouse: Warehouse) -> None:
    with pytest.raises(InputError):
        warehouse.state_insert("price", {**PRICE, "amount_micros_per_gpu_hour": -1})
