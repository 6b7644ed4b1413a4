"""Rows of the state tables as cases, and back."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime

from enforcer.desk.model import (
    REQUEST,
    Answer,
    Case,
    DeskRules,
    Event,
    Request,
    RequestKind,
    Row,
    Ruling,
)
from enforcer.desk.rules import needed, state_of
from enforcer.entries import instant, text_of, whole_of
from steward.period import Period


def cases(
    requests: Iterable[Row],
    approvals: Iterable[Row],
    events: Iterable[Row],
    *,
    rules: DeskRules,
    now: datetime,
) -> tuple[Case, ...]:
    """Return all cases, ascending by request.

    Args:
        requests: rows of ``request``, any order.
        approvals: rows of ``approval``; those of other subjects are passed over.
        events: rows of ``request_event``.
        rules: the limits.
        now: until when time counts.
    """
    rulings = _rulings(approvals)
    done = _events(events)
    found: list[Case] = []
    for row in sorted(requests, key=lambda each: whole_of(each["request_id"])):
        request = request_of(row)
        said, happened = rulings[request.request_id], done[request.request_id]
        count, reasons = needed(request, found, rules)
        state = state_of(request, said, happened, needed_count=count, now=now)
        found.append(
            Case(
                request=request,
                rulings=tuple(said),
                events=tuple(happened),
                needed_count=count,
                needed_reasons=reasons,
                state=state,
            )
        )
    return tuple(found)


def request_of(row: Row) -> Request:
    """Return the request that a row tells."""
    body = json.loads(str(row["body_json"]))
    wish: Mapping[str, object] = body if isinstance(body, dict) else {}
    return Request(
        request_id=whole_of(row["request_id"]),
        cluster=str(row["cluster"]),
        kind=RequestKind(str(row["kind"])),
        tenant_id=text_of(row["tenant_id"]),
        scope_kind=str(row["scope_kind"]),
        scope_key=str(row["scope_key"]),
        gpu_model=text_of(wish.get("gpu_model")),
        gpu_count=whole_of(wish.get("gpu_count", 0)),
        priority_class=text_of(wish.get("priority_class")),
        requester=str(row["requester"]),
        reason=str(row["reason"]),
        period=Period(instant(row["valid_from_at"]), instant(row["valid_until_at"])),
        recorded_at=instant(row["recorded_at"]),
    )


def _rulings(approvals: Iterable[Row]) -> dict[int, list[Ruling]]:
    found: dict[int, list[Ruling]] = defaultdict(list)
    own = (row for row in approvals if row["subject_kind"] == REQUEST)
    for row in sorted(own, key=lambda each: whole_of(each["approval_id"])):
        if row["verdict"] == "requested":
            continue
        found[int(str(row["subject_uid"]))].append(
            Ruling(
                approver=str(row["approver"]),
                answer=Answer(str(row["verdict"])),
                reason=text_of(row["reason"]),
                recorded_at=instant(row["recorded_at"]),
            )
        )
    return found


def _events(rows: Iterable[Row]) -> dict[int, list[Event]]:
    found: dict[int, list[Event]] = defaultdict(list)
    for row in sorted(rows, key=lambda each: whole_of(each["request_event_id"])):
        found[whole_of(row["request_id"])].append(
            Event(
                event=str(row["event"]),
                before=text_of(row["before_image_json"]),
                detail=text_of(row["detail"]),
                recorded_at=instant(row["recorded_at"]),
            )
        )
    return found
