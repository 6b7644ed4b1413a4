"""Appends through the owner process while three reader processes ask, in one run with a baseline.

Prints rows appended per second (steady, saturated with scrape-sized batches, saturated with
batches of one DuckDB row group as a bulk writer sends them), latencies of appends and readers,
errors, torn reads, bytes per stored sample; and the baseline that needs no owner: open, write,
close for each batch, with the same table and no readers. One append warms up the owner before.
Takes about 90 s.
"""

from __future__ import annotations

import multiprocessing
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from multiprocessing.synchronize import Event
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

from sql.client import RemoteWarehouse, connect
from sql.ownership import read_card
from steward.errors import StewardError
from steward.ids import BatchId

SCRAPE_ROWS = 8_000
"""One scrape of 1,000 nodes of 8 GPUs."""
ROW_GROUP_ROWS = 122_880
"""DuckDB's unit of storage: whole ones go straight into the file, past the write-ahead log."""
SCRAPE_INTERVAL_S = 15
SATURATED_S = 10.0
STEADY_S = 20.0
BASELINE_S = 6.0
STEADY_INTERVAL_S = 1.0
READER_PAUSE_S = 0.25
READER_COUNT = 3
PACES = (
    (STEADY_INTERVAL_S, SCRAPE_ROWS),
    (STEADY_INTERVAL_S / 4, SCRAPE_ROWS // 4),
    (0.0, SCRAPE_ROWS),
    (0.0, ROW_GROUP_ROWS),
)
TABLE_SQL = next(
    statement
    for path in sorted((Path(__file__).parents[1] / "sql/migrations/warehouse").glob("*.sql"))
    for statement in path.read_text(encoding="utf-8").split(";")
    if "create table device_sample" in statement
)
START_AT = datetime(2026, 5, 1, tzinfo=UTC)
DASHBOARD = """
select
    time_bucket(interval '1 minute', sampled_at) as bucket_at,
    node,
    avg(busy_ratio) as busy_ratio,
    max(power_w) as power_w,
    count(*) as sample_count
from device_sample
where sampled_at >= (select max(sampled_at) - interval 5 minute from device_sample)
group by bucket_at, node
order by bucket_at, node
limit 2000
"""
TORN = """
select count(*) as torn_count
from (
    select namespace, container from device_sample
    where sampled_at >= (select max(sampled_at) - interval 5 minute from device_sample)
    group by namespace, container having count(*) <> container::integer
)
"""
"""Batches of which a reader sees a part; each row names its batch and the batch's row count."""


def batch(number: int, row_count: int = SCRAPE_ROWS) -> pa.Table:
    """Return the rows of 8-GPU nodes, with a dozen measurements."""
    draw = np.random.default_rng(number)
    gpus = range(row_count)
    at = START_AT + timedelta(seconds=number * SCRAPE_INTERVAL_S)
    columns: dict[str, object] = {
        "sampled_at": pa.array([at] * row_count, pa.timestamp("us", tz="UTC")),
        "cluster": ["c"] * row_count,
        "namespace": [str(number)] * row_count,
        "container": [str(row_count)] * row_count,
        "node": [f"node-{gpu // 8:04d}" for gpu in gpus],
        "device_uuid": [f"GPU-{gpu:08x}-0000-4000-8000-000000000000" for gpu in gpus],
        "source": ["dcgm"] * row_count,
    }
    for name in ("busy_ratio", "sm_active_ratio", "tensor_active_ratio", "dram_active_ratio"):
        columns[name] = draw.random(row_count).round(3)
    for name in ("power_w", "energy_j", "temperature_celsius", "memory_temperature_celsius"):
        columns[name] = (draw.random(row_count) * 700).round(1)
    for name in ("memory_used_bytes", "memory_free_bytes"):
        columns[name] = draw.integers(0, 81_920, row_count) * 1_048_576
    return pa.table(columns)


def read(
    url: str, stop: Event, results: multiprocessing.Queue[tuple[list[float], int, int]]
) -> None:
    """Ask the dashboard's aggregation until told to stop; put latencies, errors, torn reads."""
    latencies: list[float] = []
    error_count = torn_count = 0
    with closing(connect(url)) as warehouse:
        while not stop.is_set():
            started_s = time.perf_counter()
            try:
                warehouse.sql(DASHBOARD)
                latencies.append(time.perf_counter() - started_s)
                if len(latencies) % 10 == 0:
                    torn_count += warehouse.sql(TORN).to_pylist()[0]["torn_count"]
            except StewardError:
                error_count += 1
            stop.wait(READER_PAUSE_S)
    results.put((latencies, error_count, torn_count))


@contextmanager
def readers(url: str) -> Iterator[list[tuple[list[float], int, int]]]:
    """Run the reader processes while the block lasts; the list is filled at its end."""
    context = multiprocessing.get_context("spawn")
    stop, results = context.Event(), context.Queue()
    workers = [context.Process(target=read, args=(url, stop, results)) for _ in range(READER_COUNT)]
    for worker in workers:
        worker.start()
    time.sleep(2.0)
    found: list[tuple[list[float], int, int]] = []
    yield found
    stop.set()
    found += [results.get(timeout=60) for _ in workers]
    for worker in workers:
        worker.join()


def dated(rows: pa.Table, number: int) -> pa.Table:
    """Return the rows as those of another batch."""
    at = START_AT + timedelta(seconds=number * SCRAPE_INTERVAL_S)
    dates = pa.repeat(pa.scalar(at, pa.timestamp("us", "UTC")), rows.num_rows)
    marks = pa.repeat(pa.scalar(str(number)), rows.num_rows)
    dated_rows = rows.set_column(0, "sampled_at", dates)
    return dated_rows.set_column(rows.column_names.index("namespace"), "namespace", marks)


def append(
    warehouse: RemoteWarehouse, *, first: int, interval_s: float, row_count: int
) -> tuple[int, float, list[float]]:
    """Append for a while; return batches, elapsed seconds and latencies."""
    latencies: list[float] = []
    prepared = [batch(number, row_count) for number in range(3)]
    length_s = STEADY_S if interval_s else SATURATED_S
    began_s = time.perf_counter()
    while (elapsed_s := time.perf_counter() - began_s) < length_s:
        if len(latencies) * interval_s > elapsed_s:
            time.sleep(len(latencies) * interval_s - elapsed_s)
        number = first + len(latencies)
        rows = dated(prepared[number % len(prepared)], number)
        started_s = time.perf_counter()
        warehouse.append("device_sample", rows, batch_id=BatchId(f"b{number}"))
        latencies.append(time.perf_counter() - started_s)
    return len(latencies), time.perf_counter() - began_s, latencies


def spread(latencies: list[float]) -> str:
    """Return p50 and p95 in milliseconds."""
    cuts = statistics.quantiles(latencies, n=20)
    return f"p50 {cuts[9] * 1000:.1f} ms, p95 {cuts[18] * 1000:.1f} ms (n={len(latencies)})"


def phase(
    warehouse: RemoteWarehouse, url: str, *, first: int, interval_s: float, row_count: int
) -> int:
    """Measure one pace and print it; return the number of batches."""
    with readers(url) as found:
        count, elapsed_s, latencies = append(
            warehouse, first=first, interval_s=interval_s, row_count=row_count
        )
    pace = "saturated" if interval_s == 0 else f"steady, one batch per {interval_s:g} s"
    print(f"{pace}, batches of {row_count:,} rows: {count * row_count / elapsed_s:,.0f} rows/s; "
          f"append {spread(latencies)}")  # fmt: skip
    print(f"  readers {spread([took for result in found for took in result[0]])}, "
          f"errors {sum(result[1] for result in found)}, "
          f"torn reads {sum(result[2] for result in found)}")  # fmt: skip
    return count


def baseline() -> None:
    """Open, write and close the file for each batch, without owner and without readers."""
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "baseline.duckdb")
        rows = batch(0)
        names = ", ".join(rows.column_names)
        with duckdb.connect(file) as connection:
            connection.register("incoming", rows)
            connection.execute(TABLE_SQL)
        count, began_s = 0, time.perf_counter()
        while time.perf_counter() - began_s < BASELINE_S:
            with duckdb.connect(file) as connection:
                connection.register("incoming", rows)
                connection.execute(
                    f"insert into device_sample ({names}) select {names} from incoming"  # noqa: S608  # constants
                )
            count += 1
        pace = count * SCRAPE_ROWS / (time.perf_counter() - began_s)
        print(f"baseline, open-write-close for each scrape, no readers: {pace:,.0f} rows/s")


def main() -> None:
    """Run both paces against one owner process, then the baseline."""
    with tempfile.TemporaryDirectory() as folder:
        data_dir = Path(folder)
        command = [sys.executable, "-m", "steward", "warehouse", "--port", "0"]
        with subprocess.Popen([*command, "--data-dir", folder]) as owner:
            while (card := read_card(data_dir)) is None:
                time.sleep(0.05)
            with closing(connect(card.url)) as warehouse:
                warehouse.append("device_sample", dated(batch(0), -1), batch_id=BatchId("warm-up"))
                batch_count, row_total = 0, SCRAPE_ROWS
                for interval_s, row_count in PACES:
                    count = phase(
                        warehouse,
                        card.url,
                        first=batch_count,
                        interval_s=interval_s,
                        row_count=row_count,
                    )
                    batch_count, row_total = batch_count + count, row_total + count * row_count
            owner.terminate()
        stored_bytes = (data_dir / "warehouse.duckdb").stat().st_size
        print(f"bytes per stored sample: {stored_bytes / row_total:.1f} ({row_total:,} rows)")
    baseline()


if __name__ == "__main__":
    main()
