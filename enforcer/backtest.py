"""What a policy would have done with recorded history, by the very code that decides and plans.

Nothing is written and nobody is told. The replay looks at the cluster every few minutes, as a
controller would, with a simulated effect (``backtest_world``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from math import fsum
from typing import Final, Protocol

from analytics.cost.rates import Rates
from enforcer.backtest_result import (
    REGRET_HOURS,
    Backtest,
    Shown,
    Sums,
    added,
    queue_of,
    regret_within,
    regrets_of,
)
from enforcer.backtest_world import Taking, Watched, World
from enforcer.decisions import TAKING_STEPS, Plan
from enforcer.history import LOOK_BACK
from enforcer.planning import plan_from
from enforcer.policies.decide import decide
from enforcer.policies.model import Mode, Policy
from enforcer.replay import Load, replayed
from enforcer.snapshot import build
from steward.errors import UsageError
from steward.period import Period
from steward.units import SECONDS_PER_HOUR

EVERY: Final = timedelta(minutes=15)
"""Between two looks, where nothing else is said."""


class Pricing(Protocol):
    """Returns the prices of the models that were held."""

    def __call__(self, models: Sequence[str], /) -> Rates:
        """Return them for the period of the replay."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What is tried, on what."""

    policy: Policy
    ancestors: tuple[Policy, ...]
    """Its parent, the parent of that, and so on: their exemptions hold."""
    cluster: str
    period: Period
    every: timedelta = EVERY

    def __post_init__(self) -> None:
        """Refuse looks that lie further apart than what each of them sees."""
        windows = [rule.idle.window for rule in self.policy.rules if rule.idle is not None]
        if self.every <= timedelta() or self.every > min(windows, default=self.every):
            raise UsageError(
                f"one look every {self.every} does not see all of {self.policy.name}'s history",
                hint="look more often than the shortest window of its rules",
            )

    @property
    def look_back(self) -> timedelta:
        """Return how much history each look needs."""
        rungs = [rung.after for rule in self.policy.rules for rung in rule.ladder]
        windows = [rule.idle.window for rule in self.policy.rules if rule.idle is not None]
        longest = max(rungs, default=timedelta()) + max(windows, default=timedelta())
        return max(LOOK_BACK, longest)


@dataclass(slots=True, kw_only=True)
class _Tally:
    """What is counted on the way."""

    round_count: int = 0
    deferred: set[tuple[str, str]] = field(default_factory=set)
    breakers: Counter[str] = field(default_factory=Counter)

    def add(self, plan: Plan) -> None:
        self.round_count += 1
        self.breakers.update(plan.breakers)
        for one in plan.deferred:
            if one.step in TAKING_STEPS:
                self.deferred.update((str(reason), one.workload_uid) for reason in one.reasons)


def backtest(load: Load, trial: Trial, *, pricing: Pricing) -> Backtest:
    """Return what the policy would have done if it had been in force, acting, all the time.

    Args:
        load: of recorded history.
        trial: what is tried.
        pricing: of what is recovered.

    Raises:
        WarehouseError: the history cannot be read.
    """
    acting = replace(trial.policy, mode=Mode.ENFORCE, valid_from_at=None)
    above = tuple(replace(one, mode=Mode.OBSERVE) for one in trial.ancestors)
    world, tally = World(policy=acting.name), _Tally()
    rounds = replayed(load, trial.period, every=trial.every, back=trial.look_back)
    for at, told in rounds:
        seen = build(told, (acting, *above), now=at)
        facts = world.facts(seen)
        decisions = decide(facts, (acting, *above), at)
        world.follow(seen, decisions, at)
        world.watch(seen, decisions, min(trial.every, trial.period.until_at - at))
        scene = world.without_taken(facts, decisions)
        plan = plan_from(scene.decisions, scene.facts, (acting, *above), at)
        tally.add(plan)
        world.carry_out(plan, facts, at)
        world.start_early(seen, scene, at)
    world.close(trial.period.until_at)
    return _result(world, tally, trial=trial, pricing=pricing)


def _result(world: World, tally: _Tally, *, trial: Trial, pricing: Pricing) -> Backtest:
    models = sorted({name for one in world.takings for name in one.workload.gpu_models})
    rates = pricing(models)
    shown = sorted(
        (_shown(one, rates) for one in world.takings), key=lambda one: (one.at, one.workload_uid)
    )
    teams = sorted(world.watched, key=lambda team: (team is None, team or ""))
    return Backtest(
        policy=trial.policy.name,
        version=trial.policy.version,
        cluster=trial.cluster,
        period=trial.period,
        every=trial.every,
        round_count=tally.round_count,
        notice_count=len(world.notices),
        lowered_count=len(world.lowered),
        deferred=dict(sorted(Counter(reason for reason, _ in tally.deferred).items())),
        breaker_rounds=dict(sorted(tally.breakers.items())),
        takings=tuple(shown),
        total=_sums(shown, list(world.watched.values())),
        teams={
            team: _sums([one for one in shown if one.tenant_id == team], [world.watched[team]])
            for team in teams
        },
        queue=queue_of(world.starts.values()),
    )


def _shown(taking: Taking, rates: Rates) -> Shown:
    workload = taking.workload
    freed = Period(taking.at, taking.followed_until_at)
    money = rates.cost(
        freed,
        model=workload.gpu_models[0] if len(workload.gpu_models) == 1 else None,
        tenant_id=workload.tenant_id,
        gpu_count=workload.gpu_count,
    )
    return Shown(
        workload_uid=workload.uid,
        name=workload.name,
        tenant_id=workload.tenant_id,
        workload_class=workload.workload_class,
        rule=taking.rule,
        step=taking.step,
        at=taking.at,
        gpu_count=workload.gpu_count,
        gpu_models=workload.gpu_models,
        lost_gpu_hours=taking.lost_gpu_hours,
        recovered_gpu_hours=taking.recovered_gpu_hours,
        money=money,
        back_at=taking.back_at,
        regrets={hours: regret_within(taking, hours) for hours in REGRET_HOURS},
        serves_workload_uid=taking.serves_workload_uid,
    )


def _sums(shown: Sequence[Shown], watched: Sequence[Watched]) -> Sums:
    return Sums(
        held_gpu_hours=fsum(one.held_gpu_s for one in watched) / SECONDS_PER_HOUR,
        known_gpu_hours=fsum(one.known_gpu_s for one in watched) / SECONDS_PER_HOUR,
        idle_gpu_hours=fsum(one.idle_gpu_s for one in watched) / SECONDS_PER_HOUR,
        action_count=len(shown),
        recovered_gpu_hours=fsum(one.recovered_gpu_hours for one in shown),
        unpriced_gpu_hours=fsum(one.recovered_gpu_hours for one in shown if one.money is None),
        money=added(one.money for one in shown if one.money is not None),
        lost_gpu_hours=fsum(one.lost_gpu_hours for one in shown if one.lost_gpu_hours is not None),
        regrets=regrets_of(shown),
    )
