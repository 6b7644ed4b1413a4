"""Requests, rulings and what came of them, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from steward.period import Period

REQUEST = "request"
"""``subject_kind`` of its approvals and audit."""


class RequestKind(StrEnum):
    """What may be asked for."""

    QUOTA = "quota"
    """More guaranteed GPUs of one model, for a while."""
    PRIORITY = "priority"
    """Another priority class for one workload."""
    EXEMPTION = "exemption"
    """Not to be acted on: a workload, a team or a namespace."""
    KEEP_ALIVE = "keep_alive"
    """Not to be acted on: one workload, for hours."""


KEEPING = frozenset({RequestKind.EXEMPTION, RequestKind.KEEP_ALIVE})
"""Requests that hold from the moment of the last agreement, by a row that every policy reads."""


class Answer(StrEnum):
    """What a person says to a request."""

    GRANTED = "granted"
    REFUSED = "refused"
    WITHDRAWN = "withdrawn"


class State(StrEnum):
    """Where a request is."""

    PENDING = "pending"
    GRANTED = "granted"
    """Enough people agreed; it is carried out when its time begins."""
    REFUSED = "refused"
    WITHDRAWN = "withdrawn"
    APPLIED = "applied"
    FAILED = "failed"
    """It could not be carried out; it is tried again."""
    EXPIRED = "expired"
    """Its time is over and what it changed is back."""
    TAKE_BACK_FAILED = "take_back_failed"
    """Its time is over and what it changed could not be put back; it is tried again."""
    LAPSED = "lapsed"
    """Its time was over before enough people agreed, or before it was carried out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One wish."""

    request_id: int
    cluster: str
    kind: RequestKind
    tenant_id: str | None
    scope_kind: str
    """workload, tenant or namespace."""
    scope_key: str
    gpu_model: str | None
    """Of a quota."""
    gpu_count: int
    """Of a quota: GPUs beyond the guarantee of the quota file; else 0."""
    priority_class: str | None
    requester: str
    reason: str
    period: Period
    recorded_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
    """One person's answer, or the desk's own by rule."""

    approver: str
    answer: Answer
    reason: str | None
    recorded_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What was done about a request."""

    event: str
    before: str | None
    """As JSON: what puts the object back."""
    detail: str | None
    recorded_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class DeskRules:
    """How much of what is granted by whom."""

    auto_longest: timedelta = timedelta(hours=12)
    """Keep-alives and exemptions of one workload that are shorter than this need nobody; the first
    of them within ``auto_interval``."""
    auto_interval: timedelta = timedelta(hours=48)
    exemption_longest: timedelta = timedelta(days=7)
    """Longer ones are not taken in."""
    two_approvers_from_gpu_count: int = 16
    """A quota of so many GPUs needs two people."""
    two_approvers_from: timedelta = timedelta(days=30)
    """And so does one for so long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A request and all that came of it."""

    request: Request
    rulings: tuple[Ruling, ...]
    """Ascending by time."""
    events: tuple[Event, ...]
    """Ascending by time."""
    needed_count: int
    """People who must agree."""
    needed_reasons: tuple[str, ...]
    state: State

    @property
    def approvers(self) -> tuple[str, ...]:
        """Return who agreed, ascending."""
        return tuple(sorted({one.approver for one in self.rulings if one.answer is Answer.GRANTED}))


def is_in_force(case: Case, now: datetime) -> bool:
    """Tell whether what was asked for should hold now."""
    granted = case.state in {State.GRANTED, State.APPLIED, State.FAILED}
    return granted and case.request.period.from_at <= now < case.request.period.until_at


Row = Mapping[str, object]
"""A row of a state table."""
