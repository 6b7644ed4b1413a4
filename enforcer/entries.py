"""The action ledger as values: rows of the state tables folded into acts, and back. Pure.

One act is named by plan and number; its rows are its outcomes in the order in which they were
recorded. An undoing is an act of its own, which names the row it undoes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final

from enforcer.facts import Notice, PastAction
from enforcer.gateway.port import Target
from steward.units import GPU_MILLI

UNDO: Final = "undo"
"""The kind of an act that takes another one back."""
BY_TIMER: Final = "undo_timer"
"""Reason of an undoing that nobody asked for."""
RESTORED_BY_OTHERS: Final = "restored_by_others"
"""Reason of an undoing that was found done: somebody put the object back by hand."""


class Outcome(StrEnum):
    """Words of ``action.outcome``."""

    PLANNED = "planned"
    """Begun: written before anything is done."""
    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"
    """Left alone, without having been begun."""
    UNDONE = "undone"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One act, as far as the ledger tells."""

    plan_id: str
    number: int
    step: str
    """A step of the ladder, or ``undo``."""
    workload_uid: str
    tenant_id: str | None
    target: Target
    gpu_milli: int
    actor: str
    policy: str | None
    rule: str | None
    reasons: tuple[str, ...]
    is_dry_run: bool
    before: str | None
    """The before-image as text; None: nothing to undo."""
    begun_at: datetime
    undo_at: datetime | None
    fence: str | None
    undoes_id: int | None
    """The row that this act takes back."""
    outcome: Outcome
    """Of its newest row."""
    ended_at: datetime | None
    detail: str | None
    row_id: int
    """Of its newest row but for undoing: what an undoing names."""
    undone_at: datetime | None = None
    undone_reasons: tuple[str, ...] = ()
    undo_failure_count: int = 0
    undo_failed_at: datetime | None = None

    @property
    def action_id(self) -> str:
        """Return the act's name."""
        return f"{self.plan_id}/{self.number}"

    @property
    def is_open(self) -> bool:
        """Tell whether it was begun and its end is not yet recorded."""
        return self.outcome is Outcome.PLANNED

    @property
    def last_at(self) -> datetime:
        """Return when something was last recorded of it."""
        times = (self.begun_at, self.ended_at, self.undone_at)
        return max(at for at in times if at is not None)

    @property
    def is_undo(self) -> bool:
        """Tell whether it takes another act back."""
        return self.undoes_id is not None


@dataclass(slots=True)
class Entries:
    """All acts of one cluster, folded row by row."""

    cluster: str
    newest_id: int = 0
    newest_fence: int = 0
    """The largest number of a leadership that recorded an act."""
    _acts: dict[tuple[str, int], Entry] = field(default_factory=dict)
    _by_row: dict[int, tuple[str, int]] = field(default_factory=dict)

    def add(self, rows: Iterable[Mapping[str, object]]) -> None:
        """Take further rows of ``action``, ascending by id."""
        for row in rows:
            self.newest_id = max(self.newest_id, whole_of(row["action_id"]))
            if row["cluster"] == self.cluster:
                self._add(row)

    def all(self) -> tuple[Entry, ...]:
        """Return every act that was begun, in the order of its first row."""
        return tuple(self._acts.values())

    def open(self) -> tuple[Entry, ...]:
        """Return acts whose end is not recorded."""
        return tuple(one for one in self._acts.values() if one.is_open and not one.is_dry_run)

    def of_workload(self, workload_uid: str) -> tuple[Entry, ...]:
        """Return the acts on one workload."""
        return tuple(one for one in self._acts.values() if one.workload_uid == workload_uid)

    def undo_count(self, row_id: int) -> int:
        """Return how often the taking back of a row was begun or rehearsed."""
        return sum(one.undoes_id == row_id for one in self._acts.values())

    def named(self, action_id: str) -> Entry | None:
        """Return one act by its name or by the id of any of its rows; None: there is none."""
        plan_id, _, number = action_id.rpartition("/")
        if action_id.isdecimal():
            key = self._by_row.get(int(action_id))
        else:
            key = (plan_id, int(number)) if number.isdecimal() else None
        return None if key is None else self._acts.get(key)

    def _add(self, row: Mapping[str, object]) -> None:
        key = (str(row["plan_id"]), whole_of(row["step_number"]))
        self._by_row[whole_of(row["action_id"])] = key
        self.newest_fence = max(self.newest_fence, fence_number(text_of(row["fence"])))
        before = self._acts.get(key)
        self._acts[key] = _entry(row) if before is None else _with_outcome(before, row)
        self._note_undoing(self._acts[key])

    def _note_undoing(self, undo: Entry) -> None:
        key = None if undo.undoes_id is None else self._by_row.get(undo.undoes_id)
        if key is None or undo.is_dry_run:
            return
        act = self._acts[key]
        if undo.outcome is Outcome.DONE:
            self._acts[key] = replace(
                act, undone_at=undo.ended_at, undone_reasons=undo.reasons, outcome=Outcome.UNDONE
            )
        elif undo.outcome is Outcome.FAILED:
            count = act.undo_failure_count + 1
            self._acts[key] = replace(act, undo_failure_count=count, undo_failed_at=undo.ended_at)


def _entry(row: Mapping[str, object]) -> Entry:
    outcome, at = Outcome(str(row["outcome"])), instant(row["recorded_at"])
    return Entry(
        plan_id=str(row["plan_id"]),
        number=whole_of(row["step_number"]),
        step=str(row["kind"]),
        workload_uid=str(row["subject_uid"]),
        tenant_id=text_of(row["tenant_id"]),
        target=_target(row),
        gpu_milli=whole_of(row["gpu_milli"] or 0),
        actor=str(row["actor"]),
        policy=text_of(row["policy"]),
        rule=text_of(row["rule"]),
        reasons=codes(row["reason_codes"]),
        is_dry_run=row["is_dry_run"] == 1,
        before=text_of(row["before_image_json"]),
        begun_at=at,
        undo_at=None if row["undo_at"] is None else instant(row["undo_at"]),
        fence=text_of(row["fence"]),
        undoes_id=None if row["undoes_action_id"] is None else whole_of(row["undoes_action_id"]),
        outcome=outcome,
        ended_at=None if outcome is Outcome.PLANNED else at,
        detail=text_of(row["detail"]),
        row_id=whole_of(row["action_id"]),
    )


def _with_outcome(entry: Entry, row: Mapping[str, object]) -> Entry:
    """Return the act after a further row: the newest outcome counts."""
    outcome, at = Outcome(str(row["outcome"])), instant(row["recorded_at"])
    detail = text_of(row["detail"])
    if outcome is Outcome.UNDONE:
        return replace(
            entry, outcome=outcome, undone_at=at, undone_reasons=codes(row["reason_codes"])
        )
    row_id = whole_of(row["action_id"])
    return replace(entry, outcome=outcome, ended_at=at, detail=detail, row_id=row_id)


def past_actions(entries: Iterable[Entry]) -> tuple[PastAction, ...]:
    """Return the acts as rules see them: real ones that were begun, undoings left out."""
    return tuple(_past(one) for one in entries if _is_past(one))


def _is_past(entry: Entry) -> bool:
    return not (entry.is_undo or entry.is_dry_run or entry.outcome is Outcome.SKIPPED)


def _past(entry: Entry) -> PastAction:
    return PastAction(
        action_id=entry.action_id,
        workload_uid=entry.workload_uid,
        tenant_id=entry.tenant_id,
        step=entry.step,
        gpu_count=entry.gpu_milli / GPU_MILLI,
        begun_at=entry.begun_at,
        outcome="begun" if entry.is_open else entry.outcome.value,
        undone_at=entry.undone_at,
        was_asked_back=entry.undone_at is not None and BY_TIMER not in entry.undone_reasons,
    )


def delivered_notices(rows: Iterable[Mapping[str, object]], *, cluster: str) -> tuple[Notice, ...]:
    """Return what reached its owner, in the order of the rows of ``notice``."""
    return tuple(
        Notice(
            workload_uid=str(row["workload_uid"]),
            rule=str(row["rule"]),
            delivered_at=instant(row["told_at"]),
            idle_since_at=None if row["idle_since_at"] is None else instant(row["idle_since_at"]),
            act_at=instant(row["act_at"]),
        )
        for row in rows
        if row["cluster"] == cluster and row["is_delivered"] == 1
    )


def fence_number(fence: str | None) -> int:
    """Return the number of a leadership, 0 where an act was done without one."""
    number = (fence or "").partition(":")[0]
    return int(number) if number.isdecimal() else 0


def codes(value: object) -> tuple[str, ...]:
    """Return reason codes that a column holds, separated by commas."""
    return tuple(code for code in str(value or "").split(",") if code)


def instant(value: object) -> datetime:
    """Return the aware instant that a column holds as text."""
    return datetime.fromisoformat(str(value)).astimezone(UTC)


def instant_text(at: datetime) -> str:
    """Return an instant as columns hold it."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _target(row: Mapping[str, object]) -> Target:
    return Target(
        api_version=text_of(row["api_version"]) or "",
        kind=text_of(row["object_kind"]) or "",
        namespace=text_of(row["namespace"]),
        name=text_of(row["name"]) or "",
        uid=text_of(row["object_uid"]),
    )


def text_of(value: object) -> str | None:
    """Return the text that a column holds."""
    return None if value is None else str(value)


def whole_of(value: object) -> int:
    """Return the whole number that a column holds."""
    return int(str(value))
