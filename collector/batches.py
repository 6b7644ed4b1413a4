"""A batch: rows for one table under an id that is the same whenever the same rows are made."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import pyarrow as pa

from steward.ids import BatchId


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Rows for one table; appending it twice stores it once."""

    table: str
    rows: pa.Table
    batch_id: BatchId


def derived_batch_id(*parts: str) -> BatchId:
    """Return the id that these parts, in this order, always lead to."""
    text = "\x1f".join(parts)
    return BatchId(hashlib.sha256(text.encode()).hexdigest()[:32])
