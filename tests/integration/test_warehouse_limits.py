"""What one question may cost, and that it does not stop the others."""

from __future__ import annotations

import threading
from contextlib import closing
from pathlib import Path

import pytest

from sql.limits import Limits
from sql.warehouse import open_embedded
from steward.errors import InputError, QueryError
from tests.support.warehouse_rows import samples

ENDLESS = (
    "select count(*) as n from range(100000000) a, range(100000) b where a.range + b.range = -1"
)


def test_an_endless_statement_is_stopped(tmp_path: Path) -> None:
    limits = Limits(query_timeout_s=0.2)
    with closing(open_embedded(tmp_path, limits=limits)) as warehouse:
        with pytest.raises(QueryError, match=r"stopped after 0\.2 s"):
            warehouse.sql(ENDLESS)
        assert warehouse.sql("select 1 as one").to_pylist() == [{"one": 1}]


def test_appends_and_readers_go_on_beside_an_endless_statement(tmp_path: Path) -> None:
    with closing(open_embedded(tmp_path, limits=Limits(query_timeout_s=3.0))) as warehouse:
        failures: list[QueryError] = []

        def ask() -> None:
            try:
                warehouse.sql(ENDLESS)
            except QueryError as error:
                failures.append(error)

        thread = threading.Thread(target=ask)
        thread.start()
        for number in range(5):
            warehouse.append("device_sample", samples(100), batch_id=f"b{number}")
        found = warehouse.sql("select count(*) as n from device_sample").to_pylist()
        went_on_beside_it = thread.is_alive()
        thread.join(timeout=30)
        assert found == [{"n": 500}]
        assert went_on_beside_it
        assert len(failures) == 1


@pytest.mark.parametrize("statement", [
    "select range as n, repeat('x', 1000) as text from range(100000)",
    "select list(range) as n from range(100000000)",
])  # fmt: skip
def test_a_result_beyond_the_memory_is_refused(tmp_path: Path, statement: str) -> None:
    limits = Limits(query_memory_bytes=20_000_000)
    with closing(open_embedded(tmp_path, limits=limits)) as warehouse:
        with pytest.raises(QueryError, match=r"larger than|more memory"):
            warehouse.sql(statement)
        receipt = warehouse.append("device_sample", samples(100), batch_id="after")
        assert receipt.row_count == 100


def test_a_batch_needs_an_id(tmp_path: Path) -> None:
    with closing(open_embedded(tmp_path)) as warehouse, pytest.raises(InputError, match="no id"):
        warehouse.append("device_sample", samples(1), batch_id="")
