"""Whether a policy may leave ``observe``: only what a backtest showed to be regretted rarely.

The backtest must be of the very rules and caps that are to act, whichever version they stood in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from enforcer.entries import instant
from enforcer.policies.model import Mode, Policy

TABLE: Final = "backtest_run"
MICROS: Final = 1_000_000
LEAST_SPAN: Final = timedelta(days=7)
"""A backtest of less than a week shows some days' work, not how people work."""
LEAST_COVERAGE_RATIO: Final = 0.5
"""A backtest that could see less than half of the time shows too little."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What one backtest of one version showed."""

    policy: str
    version: int
    span: timedelta
    """Length of the history that was replayed."""
    regret_ratio: float | None
    """Within 24 h; None: nothing was taken, or nothing is known of what was."""
    coverage_ratio: float | None


def shown_by(rows: Iterable[Mapping[str, object]]) -> tuple[Shown, ...]:
    """Return what rows of the state table ``backtest_run`` show, in their order."""
    return tuple(
        Shown(
            policy=str(row["policy"]),
            version=int(str(row["policy_version"])),
            span=instant(row["until_at"]) - instant(row["from_at"]),
            regret_ratio=_ratio(row["regret_24h_micros"]),
            coverage_ratio=_ratio(row["coverage_micros"]),
        )
        for row in rows
    )


def _ratio(micros: object) -> float | None:
    return None if micros is None else int(str(micros)) / MICROS


def refusal(policy: Policy, *, known: Iterable[Policy], shown: Iterable[Shown]) -> str | None:
    """Return why a policy may not have the mode that it has; None: it may.

    Args:
        policy: as it is to be stored.
        known: every version that backtests may name, with which its rules are compared.
        shown: newest first: the newest backtest of these rules counts.
    """
    if policy.mode is Mode.OBSERVE:
        return None
    numbers = {one.version for one in known if _is_same(one, policy)}
    newest = next(
        (one for one in shown if one.policy == policy.name and one.version in numbers), None
    )
    return _of(newest, policy)


def _is_same(one: Policy, other: Policy) -> bool:
    """Tell whether two versions act by the same rules, caps and bound."""
    return _acting(one) == _acting(other)


def _acting(policy: Policy) -> Policy:
    return replace(policy, mode=Mode.OBSERVE, version=0, labels={}, valid_from_at=None)


def _of(newest: Shown | None, policy: Policy) -> str | None:
    if newest is None:
        return "no backtest of these rules is recorded"
    if newest.span < LEAST_SPAN:
        return f"its backtest replays less than {LEAST_SPAN.days} days"
    if newest.coverage_ratio is None or newest.coverage_ratio < LEAST_COVERAGE_RATIO:
        return f"its backtest saw less than {LEAST_COVERAGE_RATIO:.0%} of the time"
    return _of_regret(newest.regret_ratio, policy.max_regret_ratio)


def _of_regret(regret_ratio: float | None, bound: float) -> str | None:
    if regret_ratio is None:
        return "its backtest would have taken nothing whose end is known, so it shows nothing"
    if regret_ratio < bound:
        return None
    return (
        f"its backtest shows {regret_ratio:.1%} regret within 24 h, and less than {bound:.1%} "
        "is asked"
    )
