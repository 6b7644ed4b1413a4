"""The desk at work: wishes taken in, answers recorded, each with its row of the audit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from enforcer.desk.cases import cases
from enforcer.desk.intake import Wish, refuse_odd_name, row_of
from enforcer.desk.model import KEEPING, REQUEST, Answer, Case, DeskRules, State
from enforcer.desk.rules import BY_RULE
from enforcer.entries import instant_text
from enforcer.jsontext import json_text
from enforcer.pages import pages
from steward.clock import Clock
from steward.errors import InputError, UsageError, WarehouseError
from steward.ports import StateLog, StateValue

APPROVAL: Final = "approval"
EVENT: Final = "request_event"
EXEMPTION: Final = "exemption"
EVERY_POLICY: Final = "*"
AUDIT: Final = "audit"
_TRIES: Final = 20
Row = dict[str, StateValue]


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """One person, or the controller, at the desk."""

    state: StateLog
    clock: Clock
    actor: str
    rules: DeskRules = field(default_factory=DeskRules)

    def cases(self) -> tuple[Case, ...]:
        """Return all cases as they stand now, ascending."""
        return cases(
            self._all(REQUEST),
            self._all(APPROVAL),
            self._all(EVENT),
            rules=self.rules,
            now=self.clock.now(),
        )

    def case(self, request_id: int) -> Case:
        """Return one case.

        Raises:
            UsageError: there is no such request.
        """
        found = next((one for one in self.cases() if one.request.request_id == request_id), None)
        if found is None:
            raise UsageError(
                f"there is no request {request_id}", hint="list them with: steward request list"
            )
        return found

    def submit(self, wish: Wish) -> Case:
        """Record a wish and return its case; what needs nobody is granted at once.

        Raises:
            UsageError: the wish is not one.
            InputError: the same wish was recorded before.
        """
        row = row_of(wish, rules=self.rules, now=self.clock.now())
        try:
            stored = self.state.state_append(
                [(REQUEST, row), self._word("request.submitted", row["scope_key"], row)], seen={}
            )
        except InputError as error:
            raise InputError(
                f"the same request of {wish.requester} is there already",
                hint="list it with: steward request list",
            ) from error
        if stored is None:
            raise _crowded()
        number = int(str(stored[0]["request_id"]))
        found = self.case(number)
        if found.needed_count == 0:
            self._answered(found, Answer.GRANTED, approver=BY_RULE, reason=found.needed_reasons[0])
        return self.case(number)

    def answer(self, request_id: int, answer: Answer, *, reason: str | None) -> Case:
        """Record this person's answer and return the case as it then stands.

        Raises:
            UsageError: there is no such request, it is decided, or the answer is not this person's.
        """
        for _ in range(_TRIES):
            seen = self._newest(APPROVAL)
            found = self.case(request_id)
            self._refuse(found, answer)
            if self._answered(found, answer, approver=self.actor, reason=reason, seen=seen):
                return self.case(request_id)
        raise _crowded()

    def record(self, case: Case, event: str, *, before: str | None, detail: str | None) -> None:
        """Record what was done about a case."""
        row = self._event(case, event, before=before, detail=detail)
        subject = str(case.request.request_id)
        self._noted(case, [(EVENT, row), self._word(f"request.{event}", subject, row)])

    def _noted(self, case: Case, rows: list[tuple[str, Row]]) -> None:
        """Record what was done about a case, unless somebody else at this moment did so first."""
        for _ in range(_TRIES):
            seen = self._newest(EVENT)
            if self.case(case.request.request_id).events != case.events:
                return
            if self.state.state_append(rows, seen={EVENT: seen}) is not None:
                return
        raise _crowded()

    def _exempting(self, case: Case, approvers: tuple[str, ...]) -> list[tuple[str, Row]]:
        request = case.request
        row: Row = {
            "scope_kind": request.scope_kind,
            "scope_key": request.scope_key,
            "policy": EVERY_POLICY,
            "reason": f"request {request.request_id}: {request.reason}",
            "approver": ", ".join(approvers),
            "valid_from_at": instant_text(request.period.from_at),
            "valid_until_at": instant_text(request.period.until_at),
            "recorded_at": instant_text(self.clock.now()),
        }
        event = self._event(case, "applied", before=None, detail=None)
        word = self._word("request.applied", str(request.request_id), row)
        return [(EXEMPTION, row), (EVENT, event), word]

    def _answered(
        self,
        case: Case,
        answer: Answer,
        *,
        approver: str,
        reason: str | None,
        seen: int | None = None,
    ) -> bool:
        row: Row = {
            "subject_kind": REQUEST,
            "subject_uid": str(case.request.request_id),
            "verdict": answer.value,
            "requester": case.request.requester,
            "approver": approver,
            "reason": reason,
            "expires_at": instant_text(case.request.period.until_at),
            "recorded_at": instant_text(self.clock.now()),
        }
        word = self._word(f"request.{answer.value}", str(case.request.request_id), row)
        rows = [(APPROVAL, row), word]
        agreed = tuple(sorted({*case.approvers, approver}))
        is_decided = answer is Answer.GRANTED and len(agreed) >= case.needed_count
        if is_decided and case.request.kind in KEEPING:
            rows += self._exempting(case, agreed)
        watched = {} if seen is None else {APPROVAL: seen}
        return self.state.state_append(rows, seen=watched) is not None

    def _refuse(self, case: Case, answer: Answer) -> None:
        """Refuse an answer that is not this person's to give, or comes too late."""
        refuse_odd_name("--as", self.actor)
        name = f"request {case.request.request_id}"
        is_own = self.actor == case.request.requester
        if answer is Answer.WITHDRAWN and not is_own:
            raise UsageError(
                f"{name} is {case.request.requester}'s to withdraw", hint="refuse it instead"
            )
        if answer is Answer.GRANTED and is_own:
            raise UsageError(
                f"{name} is your own: somebody else must agree", hint="ask another approver"
            )
        is_open = case.state is State.PENDING or (
            answer is Answer.WITHDRAWN and case.state is State.GRANTED
        )
        if not is_open:
            raise UsageError(f"{name} is {case.state.value}", hint="see: steward request list")
        if answer is Answer.GRANTED and self.actor in case.approvers:
            raise UsageError(
                f"{self.actor} agreed to {name} already",
                hint="one more person must agree" if case.needed_count > 1 else "nothing to do",
            )

    def _event(self, case: Case, event: str, *, before: str | None, detail: str | None) -> Row:
        return {
            "request_id": case.request.request_id,
            "event": event,
            "before_image_json": before,
            "detail": detail,
            "actor": self.actor,
            "recorded_at": instant_text(self.clock.now()),
        }

    def _word(self, action: str, subject: object, body: Mapping[str, object]) -> tuple[str, Row]:
        return AUDIT, {
            "occurred_at": instant_text(self.clock.now()),
            "actor": self.actor,
            "action": action,
            "subject_kind": REQUEST,
            "subject_uid": str(subject),
            "body_json": json_text(body),
        }

    def _newest(self, table: str) -> int:
        rows = self.state.state_rows(table)
        return int(str(rows[0][f"{table}_id"])) if rows else 0

    def _all(self, table: str) -> list[Mapping[str, object]]:
        """Return every row of a table, oldest first."""
        return [row for page in pages(self.state, table) for row in page]


def _crowded() -> WarehouseError:
    return WarehouseError(
        "the desk is written to by too many at once: nothing was recorded", hint="try again"
    )
