"""The audit's chain: each row holds the SHA-256 of the row before it and of its own words.

Pure, so that whoever has the rows can verify them without the database.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

AUDIT: Final = "audit"
"""The state table whose rows are chained."""
FIRST: Final = "0" * 64
"""What the first row holds in the place of a row before it."""
SEALED: Final = ("occurred_at", "actor", "action", "subject_kind", "subject_uid", "body_json")
"""The columns that a row's hash covers, beside the hash of the row before it."""
HASHES: Final = ("previous_sha256", "sha256")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainFault:
    """The first row that does not follow from the one before it."""

    audit_id: object
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainState:
    """Where a verification stands: rows may come in several portions."""

    row_count: int = 0
    head: str = FIRST
    """Hash of the newest row verified."""
    fault: ChainFault | None = None


def sealed(row: Mapping[str, object], *, previous: str) -> dict[str, object]:
    """Return the row with the hash of the row before it and its own."""
    return {**row, "previous_sha256": previous, "sha256": _hash(row, previous=previous)}


def verified(state: ChainState, rows: Iterable[Mapping[str, object]]) -> ChainState:
    """Return the state after further rows, ascending by id; it stops at the first fault."""
    for row in rows:
        if state.fault is not None:
            break
        state = _after(state, row)
    return state


def _after(state: ChainState, row: Mapping[str, object]) -> ChainState:
    words = None
    if row["previous_sha256"] != state.head:
        words = "it does not follow the row before it: a row was removed, inserted or moved"
    elif not all(isinstance(row[name], str) for name in SEALED) or (
        row["sha256"] != _hash(row, previous=state.head)
    ):
        words = "its words are not those that were sealed"
    elif row["audit_id"] != state.row_count + 1:
        words = "its number does not follow that of the row before it"
    if words is None:
        return ChainState(row_count=state.row_count + 1, head=str(row["sha256"]))
    fault = ChainFault(audit_id=row["audit_id"], words=words)
    return ChainState(row_count=state.row_count, head=state.head, fault=fault)


def _hash(row: Mapping[str, object], *, previous: str) -> str:
    text = json.dumps([previous, *(row[name] for name in SEALED)], ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()
