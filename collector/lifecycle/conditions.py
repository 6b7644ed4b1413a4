"""Every observed change of a condition becomes one row."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from zlib import crc32

from collector.lifecycle.memory import Mark, Marks
from collector.lifecycle.output import SOURCE, Ledger
from collector.sources.kubernetes.objects import Condition

REMOVED: Final = "Removed"
"""Status told for a condition that an object no longer has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bearer:
    """The object that has the conditions."""

    kind: str
    namespace: str | None
    name: str
    uid: str


def tell_changes(
    ledger: Ledger, bearer: Bearer, *, conditions: Iterable[Condition] | None, marks: Marks
) -> Marks:
    """Add a row for each condition that says something new; return what is now told.

    The row's time is the server's where the status changed. The server keeps the time of the
    status when only reason or message change: then it is the time of observation.
    """
    now_told: Marks = {}
    for condition in {each.type: each for each in conditions or () if each.type}.values():
        mark, before = _mark(condition), marks.get(condition.type)
        now_told[condition.type] = mark
        if mark != before:
            _tell(
                ledger,
                bearer,
                condition,
                at=_occurred_at(ledger, condition, mark=mark, before=before),
            )
    for gone in sorted(marks.keys() - now_told.keys()):
        _tell(ledger, bearer, Condition(type=gone, status=REMOVED), at=ledger.now)
    return now_told


def find(conditions: Iterable[Condition] | None, kind: str) -> Condition | None:
    """Return the condition of this type, if there is one."""
    return next((each for each in conditions or () if each.type == kind), None)


def find_true(conditions: Iterable[Condition] | None, kind: str) -> Condition | None:
    """Return the condition of this type if it holds."""
    found = find(conditions, kind)
    return found if found is not None and found.status == "True" else None


def seconds(at: datetime | None) -> int | None:
    """Return Unix seconds; None stays None."""
    return None if at is None else int(at.timestamp())


def words_crc(*words: object) -> int:
    """Return a short sum by which a change of the words is recognised."""
    return crc32("\x1f".join(map(str, words)).encode())


def _mark(condition: Condition) -> Mark:
    return Mark(
        condition.status,
        seconds(condition.last_transition_time),
        words_crc(condition.reason, condition.message),
    )


def _occurred_at(
    ledger: Ledger, condition: Condition, *, mark: Mark, before: Mark | None
) -> datetime:
    is_same_time = before is not None and before.changed_s == mark.changed_s
    at = condition.last_transition_time
    return ledger.now if at is None or is_same_time else at


def _tell(ledger: Ledger, bearer: Bearer, condition: Condition, *, at: datetime) -> None:
    ledger.add(
        "condition_change",
        occurred_at=at,
        observed_at=ledger.now,
        kind=bearer.kind,
        namespace=bearer.namespace,
        name=bearer.name,
        object_uid=bearer.uid,
        condition=condition.type,
        status=condition.status,
        reason=condition.reason or None,
        message=condition.message or None,
        source=SOURCE,
    )
