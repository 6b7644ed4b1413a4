"""A backtest for people: what comes back, what is regretted, how sure it is; and two beside."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Final

from analytics.cost.rounding import minor_text, parts_of, printed
from enforcer.backtest_record import MICROS, UNKNOWN_TEAM
from enforcer.backtest_result import Backtest, Regret, Shown, Sums
from enforcer.policies.listing import table

TOTAL: Final = "total"
NOT_KNOWN: Final = "not known"
TAKINGS_MOST: Final = 20
"""Takings listed one by one; the JSON has all of them."""
_TEAM_COLUMNS: Final = (
    "team", "held GPU-h", "seen", "idle GPU-h", "taken", "recovered GPU-h", "of held",
    "regret 1 h", "4 h", "24 h", "lost GPU-h",
)  # fmt: skip
_TAKING_COLUMNS: Final = (
    "taken at", "workload", "team", "GPUs", "rule", "recovered GPU-h", "busy again at", "for",
)  # fmt: skip
_DIFF_COLUMNS: Final = ("", "before", "after", "difference")


def text_of(shown: Backtest, *, bound: float) -> str:
    """Return what a backtest shows.

    Args:
        shown: the backtest.
        bound: the regret under which the policy may leave ``observe``.
    """
    return "\n".join(
        [
            "\n".join(_heading(shown, bound)) + "\n",
            table([*_teams(shown)], (*_TEAM_COLUMNS, *_currencies(shown))),
            "\n".join(_notes(shown)) + "\n",
            *_listed(shown.takings),
        ]
    )


def _heading(shown: Backtest, bound: float) -> Iterator[str]:
    total = shown.total
    yield f"policy {shown.policy} version {shown.version}, cluster {shown.cluster}, {shown.period}"
    yield (
        f"{shown.round_count} looks, one every {shown.every}; {shown.notice_count} notices, "
        f"{shown.lowered_count} priorities lowered, {total.action_count} workloads taken from"
    )
    yield (
        f"{total.recovered_gpu_hours:.1f} GPU-hours recovered, "
        f"{_percent(total.recovered_ratio) or NOT_KNOWN} of what is held; regret within 24 h "
        f"{_regret(total.regrets[24]) or NOT_KNOWN}, asked is less than {bound:.1%}"
    )
    yield (
        f"{shown.queue.started_count} waiting workloads start earlier, by "
        f"{shown.queue.saved_hours:.1f} hours in all ({shown.queue.saved_gpu_hours:.1f} GPU-hours)"
    )
    yield f"seen: {_percent(total.coverage_ratio) or NOT_KNOWN} of the time held"


def _teams(shown: Backtest) -> Iterator[Mapping[str, object]]:
    money = _money(shown)
    for team, sums in shown.teams.items():
        name = UNKNOWN_TEAM if team is None else team
        yield {**_row(name, sums), **money.get(name, {})}
    yield {**_row(TOTAL, shown.total), **money[TOTAL]}


def _row(name: str, sums: Sums) -> dict[str, object]:
    regrets = {
        column: _regret(sums.regrets[hours])
        for column, hours in (("regret 1 h", 1), ("4 h", 4), ("24 h", 24))
    }
    return {
        "team": name,
        "held GPU-h": f"{sums.held_gpu_hours:.1f}",
        "seen": _percent(sums.coverage_ratio),
        "idle GPU-h": f"{sums.idle_gpu_hours:.1f}",
        "taken": sums.action_count,
        "recovered GPU-h": f"{sums.recovered_gpu_hours:.1f}",
        "of held": _percent(sums.recovered_ratio),
        "lost GPU-h": f"{sums.lost_gpu_hours:.1f}",
        **regrets,
    }


def _currencies(shown: Backtest) -> tuple[str, ...]:
    return tuple(shown.total.money)


def _money(shown: Backtest) -> dict[str, dict[str, object]]:
    """Return printed amounts by team and currency; a column's rows sum to its total."""
    found: dict[str, dict[str, object]] = {TOTAL: {}}
    for currency in _currencies(shown):
        parts = {
            UNKNOWN_TEAM if team is None else team: parts_of(
                Fraction(sums.money.get(currency, Fraction())) / MICROS
            )
            for team, sums in shown.teams.items()
        }
        minor = printed(parts, currency)
        for team, amount in minor.items():
            found.setdefault(team, {})[currency] = minor_text(amount, currency)
        found[TOTAL][currency] = minor_text(sum(minor.values()), currency)
    return found


def _notes(shown: Backtest) -> Iterator[str]:
    if shown.total.unpriced_gpu_hours:
        yield f"without a price: {shown.total.unpriced_gpu_hours:.1f} GPU-hours"
    for reason, count in shown.deferred.items():
        yield f"put off, {reason}: {count} workloads"
    for breaker, count in shown.breaker_rounds.items():
        yield f"breaker open, {breaker}: {count} of {shown.round_count} looks"


def _listed(takings: Sequence[Shown]) -> Iterator[str]:
    if not takings:
        return
    yield table([_taking(one) for one in takings[:TAKINGS_MOST]], _TAKING_COLUMNS)
    if len(takings) > TAKINGS_MOST:
        yield f"and {len(takings) - TAKINGS_MOST} more, in --format json\n"


def _taking(one: Shown) -> Mapping[str, object]:
    return {
        "taken at": f"{one.at:%Y-%m-%d %H:%M}Z",
        "workload": one.name,
        "team": one.tenant_id,
        "GPUs": f"{one.gpu_count:g}",
        "rule": one.rule,
        "recovered GPU-h": f"{one.recovered_gpu_hours:.1f}",
        "busy again at": None if one.back_at is None else f"{one.back_at:%Y-%m-%d %H:%M}Z",
        "for": one.serves_workload_uid,
    }


def difference_of(before: Backtest, after: Backtest) -> str:
    """Return two backtests of the same period side by side, and who is taken from by one only."""
    rows = [
        {"": name, "before": _number(old), "after": _number(new), "difference": _change(old, new)}
        for name, old, new in _figures(before, after)
    ]
    heading = f"{_named(before)} beside {_named(after)}, {before.period}"
    return "\n".join([f"{heading}\n", table(rows, _DIFF_COLUMNS), *_only(before, after)])


def _named(shown: Backtest) -> str:
    return f"{shown.policy} version {shown.version}"


def _figures(before: Backtest, after: Backtest) -> Iterator[tuple[str, float | None, float | None]]:
    yield "notices", before.notice_count, after.notice_count
    yield "workloads taken from", before.total.action_count, after.total.action_count
    old, new = before.total, after.total
    yield "recovered GPU-hours", old.recovered_gpu_hours, new.recovered_gpu_hours
    yield "lost GPU-hours", old.lost_gpu_hours, new.lost_gpu_hours
    yield "regret within 24 h", before.regret_24h_ratio, after.regret_24h_ratio
    yield "waiting hours saved", before.queue.saved_hours, after.queue.saved_hours
    for currency in sorted({*before.total.money, *after.total.money}):
        was, will = (float(one.money.get(currency, Fraction()) / MICROS) for one in (old, new))
        yield f"recovered {currency}", was, will


def _only(before: Backtest, after: Backtest) -> Iterator[str]:
    old, new = ({one.workload_uid: one for one in each.takings} for each in (before, after))
    for word, mine, other in (("before", old, new), ("after", new, old)):
        found = [one for uid, one in mine.items() if uid not in other]
        if found:
            yield f"taken from only {word}:\n"
            yield from _listed(found)


def _number(value: float | None) -> str | None:
    return None if value is None else f"{value:.4g}"


def _change(old: float | None, new: float | None) -> str | None:
    return None if old is None or new is None else f"{new - old:+.4g}"


def _regret(regret: Regret) -> str | None:
    if regret.ratio is None:
        return None
    return f"{regret.ratio:.1%} ({regret.regretted_count} of {regret.known_count})"


def _percent(ratio: float | None) -> str | None:
    return None if ratio is None else f"{ratio:.1%}"
