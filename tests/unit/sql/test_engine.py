"""The engine folds its write-ahead log in the background, and closes in any state."""

from __future__ import annotations

import threading
import time
from contextlib import closing
from pathlib import Path

from sql.engine import CHECKPOINT_ROWS, open_engine
from sql.limits import Limits
from sql.warehouse import open_embedded
from steward.ids import BatchId
from tests.support.warehouse_rows import samples

WAIT_LIMIT_S = 20.0


def test_the_log_is_folded_when_enough_rows_have_come(tmp_path: Path) -> None:
    log = tmp_path / "warehouse.duckdb.wal"
    with closing(open_embedded(tmp_path)) as warehouse:
        warehouse.append("device_sample", samples(1_000), batch_id=BatchId("a"))
        grown_bytes = log.stat().st_size
        warehouse.engine.count_appended(CHECKPOINT_ROWS)
        until_s = time.monotonic() + WAIT_LIMIT_S
        while log.exists() and log.stat().st_size >= grown_bytes:
            assert time.monotonic() < until_s
            time.sleep(0.01)
        (row,) = warehouse.sql("select count(*) as row_count from device_sample").to_pylist()
    assert row == {"row_count": 1_000}


def test_the_writer_may_close_while_a_fold_waits_for_it(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    engine = open_engine(tmp_path, limits=Limits())
    folds = set(threading.enumerate()) - before
    with engine.write_lock:
        engine.count_appended(CHECKPOINT_ROWS)
        engine.close()
    for fold in folds:
        fold.join(timeout=WAIT_LIMIT_S)
        assert not fold.is_alive()
    with closing(open_embedded(tmp_path)) as warehouse:
        warehouse.ping()
