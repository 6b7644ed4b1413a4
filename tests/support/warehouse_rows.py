"""Rows for warehouse tests: harmless defaults, a case shows only what it is about."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


def samples(row_count: int = 3, *, at: datetime = NOON, **columns: object) -> pa.Table:
    """Return device samples, one device each; named columns are added or replaced."""
    content: dict[str, object] = {
        "sampled_at": [at + timedelta(seconds=number) for number in range(row_count)],
        "cluster": ["c"] * row_count,
        "node": ["n"] * row_count,
        "device_uuid": [f"GPU-{number}" for number in range(row_count)],
        "source": ["test"] * row_count,
    }
    content.update(columns)
    return pa.table(content)
