"""What a backtest shows: would-be takings, what they recover and regret, and how sure that is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction
from math import fsum
from typing import Final

from enforcer.backtest_world import EarlyStart, Taking
from steward.period import Period
from steward.units import SECONDS_PER_HOUR

REGRET_HOURS: Final = (1, 4, 24)
"""Within so many hours after it was taken a workload that works again is regretted."""
KNOWN_FROM_RATIO: Final = 0.9
"""Of the rounds within these hours so many must have seen it, to say that it did not."""

Money = Mapping[str, Fraction]
"""Millionths by currency."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """One would-be taking."""

    workload_uid: str
    name: str
    tenant_id: str | None
    workload_class: str | None
    rule: str
    step: str
    at: datetime
    gpu_count: float
    gpu_models: tuple[str, ...]
    lost_gpu_hours: float | None
    recovered_gpu_hours: float
    """Until it worked again, let go, or the replay ended."""
    money: Money | None
    """None: not priced."""
    back_at: datetime | None
    regrets: Mapping[int, bool | None]
    """By hours; None: it cannot be told."""
    serves_workload_uid: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Regret:
    """Takings of which it can be told whether they were regretted."""

    regretted_count: int
    known_count: int

    @property
    def ratio(self) -> float | None:
        """Return the regretted share; None: of none can it be told."""
        return self.regretted_count / self.known_count if self.known_count else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """Figures of one team, or of all."""

    held_gpu_hours: float
    """Held by workloads of which a rule speaks."""
    known_gpu_hours: float
    """Of these, judged IDLE or BUSY."""
    idle_gpu_hours: float
    action_count: int
    recovered_gpu_hours: float
    unpriced_gpu_hours: float
    """Of the recovered ones, without a price."""
    money: Money
    lost_gpu_hours: float
    """Work lost, where it is known."""
    regrets: Mapping[int, Regret]

    @property
    def coverage_ratio(self) -> float | None:
        """Return the share of held time that was seen; None: nothing was held."""
        return self.known_gpu_hours / self.held_gpu_hours if self.held_gpu_hours else None

    @property
    def recovered_ratio(self) -> float | None:
        """Return the recovered share of held time; None: nothing was held."""
        return self.recovered_gpu_hours / self.held_gpu_hours if self.held_gpu_hours else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """Waiting that would have been saved."""

    started_count: int
    """Workloads that would have started in freed room."""
    open_count: int
    """Of these, still waiting when the replay ended: what they save is at least what is counted."""
    saved_hours: float
    saved_gpu_hours: float
    """The same, by the GPUs that they waited for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backtest:
    """One policy over one period."""

    policy: str
    version: int
    cluster: str
    period: Period
    every: timedelta
    round_count: int
    notice_count: int
    lowered_count: int
    deferred: Mapping[str, int]
    """Workloads by the reasons for which a due taking was put off, each reason once."""
    breaker_rounds: Mapping[str, int]
    """Rounds in which each circuit breaker was open."""
    takings: tuple[Shown, ...]
    """By instant and uid, ascending."""
    total: Sums
    teams: Mapping[str | None, Sums]
    """Ascending; those of unknown teams last."""
    queue: Queue

    @property
    def regret_24h_ratio(self) -> float | None:
        """Return what a policy's ``max_regret_ratio`` bounds."""
        return self.total.regrets[REGRET_HOURS[-1]].ratio


def regret_within(taking: Taking, hours: int) -> bool | None:
    """Tell whether a workload worked again within hours of being taken.

    None: the replay ended first, or too much of this time was not seen.
    """
    until_at = taking.at + timedelta(hours=hours)
    if taking.back_at is not None and taking.back_at <= until_at:
        return True
    if taking.is_open and taking.followed_until_at < until_at:
        return None
    seen = [is_judged for at, is_judged in taking.judged if at <= until_at]
    return False if sum(seen) >= KNOWN_FROM_RATIO * len(seen) else None


def regrets_of(takings: Sequence[Shown]) -> dict[int, Regret]:
    """Return how many of the takings were regretted, by hours."""
    found = {}
    for hours in REGRET_HOURS:
        told = [one.regrets[hours] for one in takings if one.regrets[hours] is not None]
        found[hours] = Regret(regretted_count=sum(map(bool, told)), known_count=len(told))
    return found


def added(moneys: Iterable[Money]) -> dict[str, Fraction]:
    """Return sums by currency, ascending."""
    found: dict[str, Fraction] = {}
    for money in moneys:
        for currency, micros in money.items():
            found[currency] = found.get(currency, Fraction()) + micros
    return dict(sorted(found.items()))


def queue_of(starts: Iterable[EarlyStart]) -> Queue:
    """Return the waiting that early starts save."""
    known = list(starts)
    hours = [(one.waited_until_at - one.at).total_seconds() / SECONDS_PER_HOUR for one in known]
    return Queue(
        started_count=len(known),
        open_count=sum(not one.has_started for one in known),
        saved_hours=fsum(hours),
        saved_gpu_hours=fsum(
            one.workload.gpu_count * each for one, each in zip(known, hours, strict=True)
        ),
    )
