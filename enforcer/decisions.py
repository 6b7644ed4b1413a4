"""What comes of facts and policies: judgements, decisions for every workload, and a plan.

Pure values, the same live, in dry run, in ``explain`` and in a backtest. Each carries reason codes;
``docs/policies.md`` explains every code.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Verdict(StrEnum):
    """Whether a workload uses its GPUs; UNKNOWN never acts and never ages a clock."""

    IDLE = "IDLE"
    BUSY = "BUSY"
    UNKNOWN = "UNKNOWN"


class Finding(StrEnum):
    """Something for a person to look at; never a ground to act."""

    COUNTER_FAULT = "counter_fault"
    """Profiling counters say nothing happens while the device is busy."""
    GHOST_BUSY = "ghost_busy"
    """Reported busy without memory, process or power to show for it."""
    HELD_MEMORY = "held_memory"
    """No activity, but memory is kept: its owner would lose what is in it."""
    LOADED_MODEL = "loaded_model"
    """An inference workload with a model in memory and no sign of requests, or none told."""
    SUSPECTED_HOLD = "suspected_hold"
    """Small, flat, regular activity without any change of memory or traffic for hours."""
    NEVER_USED = "never_used"
    """None of its GPUs has worked since it got them."""


class Step(StrEnum):
    """The ladder, gentlest first. There is no step that deletes."""

    FINDING = "finding"
    NOTIFY = "notify"
    LOWER_PRIORITY = "lower_priority"
    SUSPEND = "suspend"
    """Suspend, pause or scale to zero, whichever the kind has."""
    EVICT = "evict"
    """Of bare pods, where a rule opts in: their state is lost."""


class Setting(StrEnum):
    """Acts outside any ladder: what a quota file or a granted request sets."""

    QUOTA = "set_quota"


TAKING_STEPS: frozenset[Step] = frozenset({Step.SUSPEND, Step.EVICT})
"""Steps that take GPUs away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """A verdict and why."""

    verdict: Verdict
    reasons: tuple[str, ...]
    """Codes, most decisive first; never empty."""
    findings: tuple[Finding, ...]
    """Ascending."""
    coverage_ratio: float | None
    """The least among its devices; None: nothing was read."""
    observed_idle_s: float
    """0 unless IDLE."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What a policy wants of one workload now; every workload gets one."""

    workload_uid: str
    policy: str
    policy_version: int
    rule: str | None
    """The rule that spoke; None: none matched."""
    judgement: Judgement
    step: Step | None
    """The step that is due; None: nothing is."""
    reasons: tuple[str, ...]
    """Why this step or none, most decisive first; never empty."""
    next_at: datetime | None
    """When the next step may be due if nothing changes; None: never, or not known."""
    act_at: datetime | None = None
    """When GPUs may first be taken if it stays idle: what a notice promises; None: never, or not
    known."""
    withheld_step: Step | None = None
    """What would be due, did the policy's mode not hold it back; ``step`` is None then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedAction:
    """One step on one workload, in a plan's order."""

    number: int
    decision: Decision
    step: Step
    workload_uid: str
    gpu_count: float
    """Freed by it if it takes; 0 for gentler steps."""
    lost_gpu_hours: float | None
    """Work since the last checkpoint (else since it started) that a taking step loses; None: not
    known."""
    serves_workload_uid: str | None
    """The waiting workload that it makes room for; None: not asked for by pressure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deferred:
    """A step that was due and is not in the plan."""

    workload_uid: str
    step: Step
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What one round will do: ordered, capped, reasoned."""

    plan_id: str
    """Derived from the snapshot and the policy versions: the same facts make the same plan."""
    snapshot_id: str
    planned_at: datetime
    actions: tuple[PlannedAction, ...]
    deferred: tuple[Deferred, ...]
    breakers: tuple[str, ...]
    """Circuit breakers that are open: then no action takes GPUs."""
