"""The write-ahead action ledger: what is done is written here first, with the object as it was.

Every change is one transaction with its row of the audit. A writer that has not read what others
wrote meanwhile stores nothing: it reads and thinks again. So two replicas cannot begin the same
act, and one that was replaced cannot begin any once its successor has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from enforcer.entries import Entries, Entry, Outcome, fence_number, instant_text
from enforcer.gateway.port import Target
from enforcer.jsontext import json_text, sha256_of
from steward.clock import Clock
from steward.errors import FencedError, WarehouseError
from steward.ports import StateLog, StateValue

ACTION: Final = "action"
NOTICE: Final = "notice"
AUDIT: Final = "audit"
SWITCH: Final = "enforcement_switch"
PAGE: Final = 10_000
QUEUE_KINDS: Final = frozenset({"ClusterQueue", "Queue", "ResourceQuota"})
"""Objects that keep quotas."""
_TRIES: Final = 20
"""Writers that meet so often in a row are not two replicas and a person."""

Row = dict[str, StateValue]


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """An act as it is about to be begun."""

    plan_id: str
    number: int
    step: str
    workload_uid: str
    tenant_id: str | None
    target: Target
    gpu_milli: int
    reasons: tuple[str, ...]
    evidence: object
    """What it was decided from; kept as JSON with its hash."""
    policy: str | None = None
    policy_version: int | None = None
    rule: str | None = None
    before: str | None = None
    undo_at: datetime | None = None
    undoes_id: int | None = None
    is_dry_run: bool = False

    @property
    def action_id(self) -> str:
        """Return the act's name."""
        return f"{self.plan_id}/{self.number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """How much of the ledger was known when an act was decided."""

    newest_id: int
    at: datetime
    """What was recorded later was not."""


def no_fence() -> str | None:
    """Stand for a writer that leads nobody, such as a person."""
    return None


class Ledger:
    """The action ledger of one cluster, as one writer sees it."""

    def __init__(
        self,
        state: StateLog,
        *,
        cluster: str,
        clock: Clock,
        actor: str,
        fence: Callable[[], str | None] = no_fence,
    ) -> None:
        """Read nothing yet.

        Args:
            state: where rows are.
            cluster: whose acts these are.
            clock: of recorded instants.
            actor: who writes: a replica or a person.
            fence: the leadership under which acts are done, ``NUMBER:HOLDER``.
        """
        self._state = state
        self._clock = clock
        self._fence = fence
        self.cluster = cluster
        self.actor = actor
        self._entries = Entries(cluster=cluster)

    def without_fence(self, fence: Callable[[], str | None] = no_fence) -> Ledger:
        """Return a ledger for acts that are only rehearsed."""
        return Ledger(
            self._state, cluster=self.cluster, clock=self._clock, actor=self.actor, fence=fence
        )

    def entries(self) -> Entries:
        """Return all acts, with what others wrote until now."""
        while True:
            rows = self._state.state_after(ACTION, self._entries.newest_id, limit=PAGE)
            self._entries.add(rows)
            if len(rows) < PAGE:
                return self._entries

    def known(self, *, at: datetime) -> Known:
        """Return what is known of the ledger by a decision from facts of an instant."""
        return Known(newest_id=self.entries().newest_id, at=at)

    def begin(self, draft: Draft, *, known: Known, notices: Sequence[Row] = ()) -> Entry | None:
        """Write an act ahead of doing it.

        Args:
            draft: the act.
            known: how much of the ledger was known when it was decided.
            notices: what is about to be told, not delivered yet.

        Returns:
            the act; None where it must not be done: it was begun already, another act on the
            workload is open, or one was recorded since it was decided.

        Raises:
            FencedError: a later leader has begun acts.
        """
        row = self._row(draft, Outcome.PLANNED, detail=None)
        told = [(NOTICE, notice) for notice in notices]
        rows = [(ACTION, row), *told]
        if self._stored(draft, known, lambda: [*rows, self._audit(row, draft)]):
            return self.entries().named(draft.action_id)
        return None

    def record(self, draft: Draft, outcome: Outcome, *, known: Known, detail: str | None) -> bool:
        """Write an act that touches no object, in one; return whether it was stored."""
        row = self._row(draft, outcome, detail=detail)
        return self._stored(draft, known, lambda: [(ACTION, row), self._audit(row, draft)])

    def end(
        self, entry: Entry, outcome: Outcome, *, detail: str | None, notices: Sequence[Row] = ()
    ) -> bool:
        """Write how an act ended, with the notices that it delivered.

        Returns:
            whether it was stored: somebody else may have ended it meanwhile.
        """

        def rows() -> list[tuple[str, Row]]:
            draft = _draft_of(entry)
            row = self._row(draft, outcome, detail=detail)
            told = [(NOTICE, notice) for notice in notices]
            return [(ACTION, row), *told, self._audit(row, draft)]

        for _ in range(_TRIES):
            newest = self.entries().named(entry.action_id)
            if newest is None or not newest.is_open:
                return False
            if self._append(rows()):
                return True
        raise _crowded(entry.action_id)

    def note_restored(self, entry: Entry, *, reason: str, detail: str) -> bool:
        """Write that an act was found taken back by somebody else."""
        for _ in range(_TRIES):
            newest = self.entries().named(entry.action_id)
            if newest is None or newest.outcome is Outcome.UNDONE:
                return False
            draft = _draft_of(newest)
            row = self._row(draft, Outcome.UNDONE, detail=detail) | {"reason_codes": reason}
            if self._append([(ACTION, row), self._audit(row, draft)]):
                return True
        raise _crowded(entry.action_id)

    def notices(self, action_id: str) -> tuple[Mapping[str, object], ...]:
        """Return the rows of ``notice`` of one act, newest first."""
        prefix = f"{action_id}/"
        rows = self._state.state_rows(NOTICE)
        return tuple(row for row in rows if str(row["idempotency_key"]).startswith(prefix))

    def is_stopped(self) -> bool:
        """Tell whether the global switch stops this cluster, by the newest word on it or on all."""
        words = self._state.state_rows(SWITCH)
        newest = (row for row in words if row["cluster"] in {None, self.cluster})
        return next((row["is_stopped"] == 1 for row in newest), False)

    def turn(self, *, is_stopped: bool, reason: str, everywhere: bool) -> None:
        """Stop or release enforcing, on this cluster or everywhere."""
        where = None if everywhere else self.cluster
        switch: Row = {
            "cluster": where,
            "is_stopped": int(is_stopped),
            "actor": self.actor,
            "reason": reason,
            "recorded_at": instant_text(self._clock.now()),
        }
        word = "freeze" if is_stopped else "thaw"
        body = {"reason": reason}
        subject = ("cluster", where or "*")
        self._state.state_append([(SWITCH, switch), self.word(word, subject, body)], seen={})

    def word(self, action: str, subject: tuple[str, str], body: object) -> tuple[str, Row]:
        """Return a row of the audit, with its table.

        Args:
            action: what was done, as ``act.done``.
            subject: kind and uid.
            body: what to keep of it.
        """
        row: Row = {
            "occurred_at": instant_text(self._clock.now()),
            "actor": self.actor,
            "action": action,
            "subject_kind": subject[0],
            "subject_uid": subject[1],
            "body_json": json_text(body),
        }
        return (AUDIT, row)

    def say(self, action: str, subject: tuple[str, str], body: object) -> None:
        """Write something to the audit that is no act, such as a change of leadership."""
        self._state.state_append([self.word(action, subject, body)], seen={})

    def _stored(
        self, draft: Draft, known: Known, rows: Callable[[], list[tuple[str, Row]]]
    ) -> bool:
        for _ in range(_TRIES):
            entries = self.entries()
            self._refuse_replaced(entries)
            if is_overtaken(entries, draft, known=known):
                return False
            if self._append(rows()):
                return True
        raise _crowded(draft.action_id)

    def _append(self, rows: list[tuple[str, Row]]) -> bool:
        seen = {ACTION: self._entries.newest_id}
        stored = self._state.state_append(rows, seen=seen)
        if stored is not None:
            self._entries.add(stored[:1])
        return stored is not None

    def _refuse_replaced(self, entries: Entries) -> None:
        fence = self._fence()
        if fence is not None and fence_number(fence) < entries.newest_fence:
            raise FencedError(
                f"{self.actor} was replaced as leader: nothing was begun",
                hint="nothing to do: the leader goes on",
            )

    def _row(self, draft: Draft, outcome: Outcome, *, detail: str | None) -> Row:
        is_first = draft.evidence is not None
        evidence = json_text(draft.evidence if is_first else {})
        return {
            "plan_id": draft.plan_id,
            "step_number": draft.number,
            "kind": draft.step,
            "subject_kind": subject_kind(draft.target),
            "subject_uid": draft.workload_uid,
            "actor": self.actor,
            "is_dry_run": int(draft.is_dry_run),
            "reason_codes": ",".join(draft.reasons),
            "evidence_json": evidence,
            "evidence_sha256": sha256_of(evidence) if is_first else None,
            "before_image_json": draft.before,
            "outcome": outcome.value,
            "detail": detail,
            "undoes_action_id": draft.undoes_id,
            "recorded_at": instant_text(self._clock.now()),
            "cluster": self.cluster,
            **_target_columns(draft.target),
            "tenant_id": draft.tenant_id,
            "gpu_milli": draft.gpu_milli,
            "policy": draft.policy,
            "policy_version": draft.policy_version,
            "rule": draft.rule,
            "fence": self._fence(),
            "undo_at": None if draft.undo_at is None else instant_text(draft.undo_at),
        }

    def _audit(self, row: Mapping[str, StateValue], draft: Draft) -> tuple[str, Row]:
        kept = {name: value for name, value in row.items() if name not in _LONG}
        return self.word(
            f"act.{row['outcome']}", (subject_kind(draft.target), draft.workload_uid), kept
        )


_LONG: Final = frozenset({"evidence_json", "before_image_json"})
"""Columns that the audit does not repeat: their hash, or the ledger, has them."""


def subject_kind(target: Target) -> str:
    """Return ``queue`` for what keeps quotas, else ``workload``."""
    return "queue" if target.kind in QUEUE_KINDS else "workload"


def is_overtaken(entries: Entries, draft: Draft, *, known: Known) -> bool:
    """Tell whether an act must not be begun: it was, or something else happened to its workload."""
    if entries.named(draft.action_id) is not None:
        return True
    return any(
        one.is_open or one.row_id > known.newest_id or one.last_at > known.at
        for one in entries.of_workload(draft.workload_uid)
        if not one.is_dry_run
    )


def _target_columns(target: Target) -> Row:
    return {
        "api_version": target.api_version,
        "object_kind": target.kind,
        "namespace": target.namespace,
        "name": target.name,
        "object_uid": target.uid,
    }


def _draft_of(entry: Entry) -> Draft:
    """Return what further rows of an act repeat; evidence and before-image stay in the first."""
    return Draft(
        plan_id=entry.plan_id,
        number=entry.number,
        step=entry.step,
        workload_uid=entry.workload_uid,
        tenant_id=entry.tenant_id,
        target=entry.target,
        gpu_milli=entry.gpu_milli,
        reasons=entry.reasons,
        evidence=None,
        policy=entry.policy,
        rule=entry.rule,
        undoes_id=entry.undoes_id,
        is_dry_run=entry.is_dry_run,
    )


def _crowded(name: str) -> WarehouseError:
    return WarehouseError(
        f"the action ledger is written to by too many at once: {name} was not recorded",
        hint="let one controller and few people write to it",
    )
