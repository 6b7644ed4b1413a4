"""All rows of a state table that grows, portion by portion."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from steward.ports import StateLog

PAGE: Final = 10_000


def pages(log: StateLog, table: str) -> Iterator[Sequence[Mapping[str, object]]]:
    """Yield all rows of a table, oldest first; its key is named after it, ``action_id``."""
    newest = 0
    while page := log.state_after(table, newest, limit=PAGE):
        yield page
        newest = int(str(page[-1][f"{table}_id"]))
