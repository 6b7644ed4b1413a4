"""A backtest as a document, and as the row that gives a policy leave or not."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from fractions import Fraction
from typing import Final

from enforcer.backtest_result import Backtest, Money, Queue, Regret, Shown, Sums
from steward.ports import StateValue

TABLE: Final = "backtest_run"
MICROS: Final = 1_000_000
UNKNOWN_TEAM: Final = "unknown"
"""Key of the figures of workloads whose team is not known."""
_HOURS_DECIMALS: Final = 6


def document_of(shown: Backtest) -> dict[str, object]:
    """Return all that a backtest shows, in plain JSON values; money in currency units as text."""
    return {
        "policy": shown.policy,
        "policy_version": shown.version,
        "cluster": shown.cluster,
        "from_at": _iso(shown.period.from_at),
        "until_at": _iso(shown.period.until_at),
        "every_s": int(shown.every.total_seconds()),
        "round_count": shown.round_count,
        "notice_count": shown.notice_count,
        "lowered_count": shown.lowered_count,
        "deferred_workload_count": dict(shown.deferred),
        "breaker_round_count": dict(shown.breaker_rounds),
        "total": _sums(shown.total),
        "teams": {
            UNKNOWN_TEAM if team is None else team: _sums(sums)
            for team, sums in shown.teams.items()
        },
        "queue": _queue(shown.queue),
        "takings": [_taking(one) for one in shown.takings],
    }


def row_of(shown: Backtest, *, author: str) -> Mapping[str, StateValue]:
    """Return the row of the state table ``backtest_run``."""
    return {
        "policy": shown.policy,
        "policy_version": shown.version,
        "from_at": _iso(shown.period.from_at),
        "until_at": _iso(shown.period.until_at),
        "action_count": shown.total.action_count,
        "regret_24h_micros": _micros(shown.regret_24h_ratio),
        "coverage_micros": _micros(shown.total.coverage_ratio),
        "result_json": json.dumps(document_of(shown), sort_keys=True),
        "author": author,
    }


def _micros(ratio: float | None) -> int | None:
    return None if ratio is None else round(ratio * MICROS)


def _sums(sums: Sums) -> dict[str, object]:
    return {
        "held_gpu_hours": _hours(sums.held_gpu_hours),
        "idle_gpu_hours": _hours(sums.idle_gpu_hours),
        "coverage_ratio": sums.coverage_ratio,
        "action_count": sums.action_count,
        "recovered_gpu_hours": _hours(sums.recovered_gpu_hours),
        "recovered_ratio": sums.recovered_ratio,
        "unpriced_gpu_hours": _hours(sums.unpriced_gpu_hours),
        "recovered_money": money_text(sums.money),
        "lost_gpu_hours": _hours(sums.lost_gpu_hours),
        "regret": {f"{hours}h": _regret(regret) for hours, regret in sums.regrets.items()},
    }


def _regret(regret: Regret) -> dict[str, object]:
    return {
        "regretted_count": regret.regretted_count,
        "known_count": regret.known_count,
        "ratio": regret.ratio,
    }


def _queue(queue: Queue) -> dict[str, object]:
    return {
        "started_count": queue.started_count,
        "open_count": queue.open_count,
        "saved_hours": _hours(queue.saved_hours),
        "saved_gpu_hours": _hours(queue.saved_gpu_hours),
    }


def _taking(one: Shown) -> dict[str, object]:
    return {
        "workload_uid": one.workload_uid,
        "name": one.name,
        "tenant_id": one.tenant_id,
        "workload_class": one.workload_class,
        "rule": one.rule,
        "step": str(one.step),
        "at": _iso(one.at),
        "gpu_count": one.gpu_count,
        "gpu_models": list(one.gpu_models),
        "lost_gpu_hours": None if one.lost_gpu_hours is None else _hours(one.lost_gpu_hours),
        "recovered_gpu_hours": _hours(one.recovered_gpu_hours),
        "recovered_money": None if one.money is None else money_text(one.money),
        "busy_again_at": None if one.back_at is None else _iso(one.back_at),
        "regret": {f"{hours}h": value for hours, value in one.regrets.items()},
        "serves_workload_uid": one.serves_workload_uid,
    }


def money_text(money: Money) -> dict[str, str]:
    """Return amounts in currency units, rounded to a millionth and no further."""
    return {currency: _units(micros) for currency, micros in money.items()}


def _units(micros: Fraction) -> str:
    whole, rest = divmod(round(micros), MICROS)
    return f"{whole}.{rest:06}"


def _hours(value: float) -> float:
    return round(value, _HOURS_DECIMALS)


def _iso(at: datetime) -> str:
    return at.isoformat(timespec="seconds").replace("+00:00", "Z")
