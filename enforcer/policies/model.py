"""A policy as it is once read and validated: ordered rules, their limits and their schedule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from enum import StrEnum

from enforcer.decisions import Step


class Mode(StrEnum):
    """How far a policy may go; each person's leave is for one policy and one version."""

    OBSERVE = "observe"
    """Decide and record; tell nobody, change nothing."""
    WARN = "warn"
    """Also notify owners."""
    ENFORCE = "enforce"
    """Also act."""


class Effect(StrEnum):
    """What a rule that matches says."""

    ACT = "act"
    EXEMPT = "exempt"
    """Leave it alone, and look no further."""
    NEXT = "next"
    """Say nothing; go on with the next rule. For notes and counting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """Conditions that must all hold; an empty one always holds.

    Words are matched exactly, or as shell patterns where they contain ``*``, ``?`` or ``[``.
    """

    workload_class: tuple[str, ...] = ()
    tenant: tuple[str, ...] = ()
    namespace: tuple[str, ...] = ()
    kind: tuple[str, ...] = ()
    queue: tuple[str, ...] = ()
    priority_class: tuple[str, ...] = ()
    owner: tuple[str, ...] = ()
    gpu_model: tuple[str, ...] = ()
    model_tier: tuple[str, ...] = ()
    """Capability tier of the model, S to D."""
    labels: tuple[tuple[str, str], ...] = ()
    """Key and pattern of its value, ascending."""
    namespace_labels: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleLimits:
    """From where a workload counts as idle."""

    window: timedelta
    below_ratio: float
    """Each device's peak of profiling and device utilisation stays below this, 0..1."""
    power_margin_ratio: float
    """And its power stays below the learnt idle level times one plus this."""
    min_coverage_ratio: float
    """Less of the window observed on any device: UNKNOWN."""
    fresh_scrapes: int
    """A newest reading older than so many scrapes: UNKNOWN."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rung:
    """One step of a rule's ladder."""

    step: Step
    after: timedelta
    """Observed idle time from which it is due."""
    lead: timedelta
    """For taking steps: a delivered notice must be at least this old."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Hours of some week days in a named zone; ``until`` at or before ``from`` ends next day."""

    weekdays: frozenset[int]
    """0 is Monday; the day on which it begins."""
    from_time: time
    until_time: time


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """When acting is allowed at all."""

    time_zone: str
    windows: tuple[Window, ...]
    """Any of them; empty: always."""
    freeze_days: frozenset[date]
    """Nothing acts on these days of the zone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule; the first that matches and does not say NEXT speaks."""

    name: str
    match: Match
    effect: Effect
    idle: IdleLimits | None
    """None only where the effect is not ACT."""
    ladder: tuple[Rung, ...]
    """Ascending by ``after``."""
    on_pressure: bool
    """Take only if a waiting workload really fits what is freed."""
    min_runtime: timedelta
    restore_grace: timedelta
    """After a restore nothing is due for this long."""
    duration_limit: timedelta | None
    """Held longer than this: notify, whatever it does; None: no such limit."""
    checkpoint_grace: timedelta
    """Wait so long for a checkpoint that was asked for, then act."""
    evicts_bare_pods: bool
    schedule: Schedule
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Caps:
    """The most one policy does; reached ones defer what is left."""

    workloads_per_round: int
    workloads_per_hour: int
    gpu_ratio_per_hour: float
    """Of all GPUs of the cluster, 0..1."""
    workloads_per_tenant_per_hour: int
    unknown_ratio_breaker: float
    """More of the workloads UNKNOWN than this: nothing is taken, 0..1."""
    api_error_ratio_breaker: float
    restore_ratio_breaker: float
    """More of the last day's takings asked back than this: nothing is taken, 0..1."""
    ping_pong_count: int
    """A workload taken and restored so often within a day is left alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """One version of one policy."""

    name: str
    version: int
    mode: Mode
    parent: str | None
    """Its rules may only be tighter than the parent's."""
    rules: tuple[Rule, ...]
    caps: Caps
    max_regret_ratio: float
    """A backtest must show less regret within 24 h before it may leave ``observe``."""
    labels: Mapping[str, str]
    """Free words of its author, such as the ticket."""
    valid_from_at: datetime | None = None
    """From when on this version holds: notices given before it promised something else and do not
    count; None: for ever, as the shipped policy."""
