"""What the warehouse server tells Prometheus about itself. Every name is in docs/warehouse.md."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from sql.engine import WAREHOUSE_FILE
from steward.ports import AppendReceipt
from steward.version import __version__

BUCKETS_S: Final = (0.002, 0.005, 0.01, 0.02, 0.03, 0.06, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0)


class ServerMetrics:
    """Counters of one server, in a registry of their own."""

    def __init__(self, data_dir: Path) -> None:
        """Start all counters at zero."""
        self.registry = CollectorRegistry()
        self._rows = Counter(
            "steward_warehouse_appended_rows",
            "Rows stored, without repeats.",
            ["table"],
            registry=self.registry,
        )
        self._batches = Counter(
            "steward_warehouse_batches",
            "Batches answered, by outcome: stored, repeat.",
            ["table", "outcome"],
            registry=self.registry,
        )
        self._failures = Counter(
            "steward_warehouse_failures",
            "Requests answered with an error, by exit code.",
            ["exit_code"],
            registry=self.registry,
        )
        self._duration = Histogram(
            "steward_warehouse_request_duration_seconds",
            "Time from the complete request to the answer, by kind: append, query, sql, state.",
            ["kind"],
            buckets=BUCKETS_S,
            registry=self.registry,
        )
        self._build = Gauge(
            "steward_warehouse_build_info", "Always 1.", ["version"], registry=self.registry
        )
        self._build.labels(__version__).set(1)
        self._tell_sizes(data_dir)

    def _tell_sizes(self, data_dir: Path) -> None:
        size = Gauge(
            "steward_warehouse_file_bytes",
            "Size of the warehouse's files, by part: file, write_ahead_log.",
            ["part"],
            registry=self.registry,
        )
        file, wal = data_dir / WAREHOUSE_FILE, data_dir / f"{WAREHOUSE_FILE}.wal"
        size.labels("file").set_function(lambda: size_bytes(file))
        size.labels("write_ahead_log").set_function(lambda: size_bytes(wal))

    def count_receipt(self, receipt: AppendReceipt) -> None:
        """Count an acknowledged batch."""
        outcome = "repeat" if receipt.is_repeat else "stored"
        self._batches.labels(receipt.table, outcome).inc()
        if not receipt.is_repeat:
            self._rows.labels(receipt.table).inc(receipt.row_count)

    def count_failure(self, exit_code: int) -> None:
        """Count a request answered with an error."""
        self._failures.labels(str(exit_code)).inc()

    @contextmanager
    def timed(self, kind: str) -> Iterator[None]:
        """Observe how long the block takes."""
        started_s = time.perf_counter()
        try:
            yield
        finally:
            self._duration.labels(kind).observe(time.perf_counter() - started_s)

    def text(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self.registry)


def size_bytes(path: Path) -> int:
    """Return the file's size, 0 where it does not exist."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
