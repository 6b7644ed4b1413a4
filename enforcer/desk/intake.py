"""A wish in words becomes a row, or one clear refusal."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from enforcer.desk.model import DeskRules, RequestKind
from enforcer.entries import instant_text
from enforcer.jsontext import json_text, sha256_of
from steward.errors import UsageError
from steward.output import visible
from steward.ports import StateValue

SCOPES: Final = {
    RequestKind.QUOTA: ("tenant",),
    RequestKind.PRIORITY: ("workload",),
    RequestKind.EXEMPTION: ("workload", "tenant", "namespace"),
    RequestKind.KEEP_ALIVE: ("workload",),
}
LARGEST_GPU_COUNT: Final = 1_000_000
RULES: Final = "rule:"
"""Approvers of this name are the desk's own."""
LONGEST: Final = timedelta(days=366)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a person asks for."""

    cluster: str
    kind: RequestKind
    tenant_id: str | None
    scope_kind: str
    scope_key: str
    gpu_model: str | None
    gpu_count: int | None
    priority_class: str | None
    requester: str
    reason: str
    from_at: datetime
    length: timedelta


def row_of(wish: Wish, *, rules: DeskRules, now: datetime) -> dict[str, StateValue]:
    """Return the row of ``request``.

    The same wish of the same person for the same time is one row: asking twice asks once.

    Args:
        wish: what is asked for.
        rules: the limits.
        now: the instant of asking.

    Raises:
        UsageError: it contradicts itself, says too little, or is longer than allowed.
    """
    _refuse_empty(wish)
    _refuse_length(wish, rules, now)
    _refuse_wrong_scope(wish)
    body = _body(wish)
    from_at, until_at = instant_text(wish.from_at), instant_text(_end(wish))
    scope = [wish.cluster, wish.kind.value, wish.scope_kind, wish.scope_key]
    key = json_text([*scope, body, wish.requester, from_at, until_at])
    return {
        "cluster": wish.cluster,
        "kind": wish.kind.value,
        "tenant_id": wish.tenant_id,
        "scope_kind": wish.scope_kind,
        "scope_key": wish.scope_key,
        "body_json": json_text(body),
        "requester": wish.requester,
        "reason": wish.reason.strip(),
        "valid_from_at": from_at,
        "valid_until_at": until_at,
        "idempotency_key": sha256_of(key),
        "recorded_at": instant_text(now),
    }


def _refuse_empty(wish: Wish) -> None:
    if not wish.reason.strip() or wish.reason.encode(errors="ignore").decode() != wish.reason:
        raise UsageError("--reason is empty or no text", hint="write --reason in words")
    for option, text in (
        ("--requester", wish.requester),
        ("--cluster", wish.cluster),
        (f"--{wish.scope_kind}", wish.scope_key),
        ("--model", wish.gpu_model),
        ("--priority-class", wish.priority_class),
    ):
        if text is not None:
            refuse_odd_name(option, text)


def refuse_odd_name(option: str, text: str) -> None:
    """Refuse names that look like another's: one person is one name, and a rule is nobody.

    Raises:
        UsageError: it is empty, begins or ends with a blank, hides characters, or is a rule's.
    """
    if not text.strip():
        raise UsageError(f"{option} is empty", hint=f"write {option} in words")
    is_whole = text.encode(errors="ignore").decode() == text
    if text != text.strip() or visible(text) != text or not is_whole:
        raise UsageError(
            f"{option} {text!r} has blanks around it or hidden characters",
            hint=f"write {option} as it is shown",
        )
    if text.startswith(RULES):
        raise UsageError(f"{option} {text!r} is no person", hint=f"names begin without {RULES}")


def _refuse_length(wish: Wish, rules: DeskRules, now: datetime) -> None:
    if wish.length <= timedelta():
        raise UsageError("--for is no time at all", hint="write it as 4h or 7d")
    is_keeping = wish.kind in {RequestKind.EXEMPTION, RequestKind.KEEP_ALIVE}
    longest = rules.exemption_longest if is_keeping else LONGEST
    if wish.length > longest:
        raise UsageError(
            f"--for {wish.length} is longer than a request may be ({longest})",
            hint="ask for less, and again when it ends",
        )
    if _end(wish) <= now:
        raise UsageError("the time asked for is over", hint="leave --from out to begin now")


def _end(wish: Wish) -> datetime:
    try:
        return (wish.from_at + wish.length).astimezone(UTC)
    except OverflowError as error:
        raise UsageError(
            f"--from {wish.from_at.isoformat()} is beyond the calendar", hint="begin sooner"
        ) from error


def _refuse_wrong_scope(wish: Wish) -> None:
    allowed = SCOPES[wish.kind]
    if wish.scope_kind not in allowed:
        raise UsageError(
            f"a request for {wish.kind.value} is not about a {wish.scope_kind}",
            hint=f"say {' or '.join(f'--{one}' for one in allowed)}",
        )


def _body(wish: Wish) -> dict[str, object]:
    """Return the particulars of the kind."""
    if wish.kind is RequestKind.QUOTA:
        if wish.gpu_model is None or wish.gpu_count is None:
            raise UsageError("a quota needs a model and a number", hint="say --model and --gpus")
        if not 0 < wish.gpu_count <= LARGEST_GPU_COUNT:
            raise UsageError(f"--gpus {wish.gpu_count} is out of range", hint="write 1 or more")
        return {"gpu_model": wish.gpu_model, "gpu_count": wish.gpu_count}
    if wish.kind is RequestKind.PRIORITY:
        if wish.priority_class is None:
            raise UsageError("a priority needs its class", hint="say --priority-class")
        return {"priority_class": wish.priority_class}
    return {}
