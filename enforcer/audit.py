"""Reading and verifying the audit: every row follows from the one before it, or is named."""

from __future__ import annotations

from dataclasses import dataclass

from enforcer.pages import pages
from sql.auditchain import AUDIT, ChainState, verified
from steward.ports import StateLog


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What a verification came to."""

    state: ChainState
    holds_expected: bool | None
    """Whether a head that was noted earlier is in the chain; None: none was named."""


def verify(log: StateLog, *, expected: str | None = None) -> Verification:
    """Return whether the audit is whole.

    Rows cut off at the end leave a whole chain behind: that shows only against a head that was
    noted earlier and is kept elsewhere.
    """
    state, is_held = ChainState(), expected is None or expected == ChainState().head
    for rows in pages(log, AUDIT):
        state = verified(state, rows)
        is_held = is_held or any(row["sha256"] == expected for row in rows)
        if state.fault is not None:
            break
    return Verification(state=state, holds_expected=None if expected is None else is_held)
