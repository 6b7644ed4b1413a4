"""What a request to append state rows says, and which role it takes; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from sql.auditchain import AUDIT
from sql.tokens import Role
from steward.errors import InputError
from steward.ports import StateValue

ENFORCER_TABLES: Final = frozenset(
    {
        "action",
        "audit",
        "backtest_run",
        "enforcement_switch",
        "notice",
        "request_event",
        "verdict_feedback",
    }
)
"""What the enforcer writes by itself: no policy, no exemption, no request, no approval."""
_SHAPE: Final = 'send {"rows": [{"table": "…", "row": {…}}, …], "seen": {"table": key}}'

SWITCH: Final = "enforcement_switch"
DECISIONS: Final = frozenset(
    {"thaw", *(f"request.{word}" for word in ("submitted", "granted", "refused", "withdrawn"))}
)
"""Words of the audit by which people decide."""
Rows = list[tuple[str, Mapping[str, StateValue]]]


def role_for(tables: Iterable[str]) -> Role:
    """Return the least role that may write to all of these tables."""
    return Role.ENFORCER if set(tables) <= ENFORCER_TABLES else Role.ADMIN


def role_of(rows: Rows) -> Role:
    """Return the least role that may write these rows.

    The audit believes of people only people, and whoever is stopped does not release itself.
    """
    is_told = any(_is_decision(table, row) for table, row in rows)
    return Role.ADMIN if is_told else role_for(table for table, _row in rows)


def _is_decision(table: str, row: Mapping[str, StateValue]) -> bool:
    if table == SWITCH:
        return row.get("is_stopped") != 1
    is_told = row.get("subject_kind") == "policy" or row.get("action") in DECISIONS
    return table == AUDIT and is_told


def appending(content: object) -> tuple[Rows, dict[str, int]]:
    """Return the rows with their tables, and by table the newest key its writer has read.

    Raises:
        InputError: it has another shape.
    """
    rows = content.get("rows") if isinstance(content, dict) else None
    seen = content.get("seen", {}) if isinstance(content, dict) else None
    if not isinstance(rows, list) or not rows or not isinstance(seen, dict):
        raise InputError("the body lists no rows", hint=_SHAPE)
    if not all(type(key) is int and key >= 0 for key in seen.values()):
        raise InputError("what was seen is no key by table", hint=_SHAPE)
    return [_row(each) for each in rows], seen


def _row(each: object) -> tuple[str, Mapping[str, StateValue]]:
    table = each.get("table") if isinstance(each, dict) else None
    row = each.get("row") if isinstance(each, dict) else None
    if not isinstance(table, str) or not isinstance(row, dict):
        raise InputError("a row has no table or no columns", hint=_SHAPE)
    return table, row
