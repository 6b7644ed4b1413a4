"""What one question may cost."""

from __future__ import annotations

from dataclasses import dataclass

from steward.settings import WarehouseSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Time, rows and memory of a question."""

    query_timeout_s: float = 30.0
    """A statement that runs longer is stopped."""
    query_row_limit: int = 1_000_000
    """Rows of an ad-hoc statement; named queries are not limited in rows."""
    query_memory_bytes: int = 1024**3
    """Bytes of one result, and of memory all statements may use before they spill or fail."""


def limits_of(settings: WarehouseSettings) -> Limits:
    """Return what one question may cost by these settings."""
    return Limits(
        query_timeout_s=settings.query_timeout_s,
        query_row_limit=settings.query_row_limit,
        query_memory_bytes=settings.query_memory_bytes,
    )
