"""Facts, policies and decisions with harmless defaults, for plans."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final

from enforcer.decisions import Decision, Judgement, Step, Verdict
from enforcer.facts import (
    Disruption,
    Evidence,
    Health,
    NodeRoom,
    Notice,
    PastAction,
    PodFact,
    QuotaUse,
    Snapshot,
    Workload,
)
from enforcer.policies.model import (
    Caps,
    Effect,
    IdleLimits,
    Match,
    Mode,
    Policy,
    Rule,
    Rung,
    Schedule,
)
from steward.period import Period

NOON: Final = datetime(2026, 6, 10, 12, 0, tzinfo=UTC)
HOUR: Final = timedelta(hours=1)
MINUTE: Final = timedelta(minutes=1)
CLUSTER: Final = "c"
LIMITS: Final = IdleLimits(
    window=HOUR,
    below_ratio=0.02,
    power_margin_ratio=0.15,
    min_coverage_ratio=0.9,
    fresh_scrapes=2,
)
LADDER: Final = (
    Rung(step=Step.NOTIFY, after=HOUR, lead=timedelta()),
    Rung(step=Step.SUSPEND, after=2 * HOUR, lead=HOUR),
)
WIDE: Final = Caps(
    workloads_per_round=100,
    workloads_per_hour=100,
    gpu_ratio_per_hour=1.0,
    workloads_per_tenant_per_hour=100,
    unknown_ratio_breaker=1.0,
    api_error_ratio_breaker=1.0,
    restore_ratio_breaker=1.0,
    ping_pong_count=2,
)
RULE: Final = Rule(
    name="idle",
    match=Match(),
    effect=Effect.ACT,
    idle=LIMITS,
    ladder=LADDER,
    on_pressure=False,
    min_runtime=30 * MINUTE,
    restore_grace=30 * MINUTE,
    duration_limit=None,
    checkpoint_grace=timedelta(),
    evicts_bare_pods=False,
    schedule=Schedule(time_zone="UTC", windows=(), freeze_days=frozenset()),
    note="",
)


def rule(**changes: object) -> Rule:
    """Return the rule of these tests with some fields changed."""
    return replace(RULE, **changes)  # type: ignore[arg-type]  # the caller's words, checked there


def caps(**changes: object) -> Caps:
    """Return caps that hold nothing back, but for those named."""
    return replace(WIDE, **changes)  # type: ignore[arg-type]  # the caller's words, checked there


def policy(*rules: Rule, limits: Caps = WIDE, mode: Mode = Mode.ENFORCE) -> Policy:
    """Return a policy; without rules given it has ``RULE``."""
    return Policy(
        name="p",
        version=1,
        mode=mode,
        parent=None,
        rules=rules or (RULE,),
        caps=limits,
        max_regret_ratio=0.1,
        labels={},
    )


def pods(
    prefix: str, nodes: dict[str, int], *, labels: dict[str, str] | None = None
) -> tuple[PodFact, ...]:
    """Return one pod on each node with its GPUs."""
    return tuple(
        PodFact(
            uid=f"{prefix}-{number}",
            name=f"{prefix}-{number}",
            node=node,
            phase="Running",
            gpu_count=count,
            labels=labels or {},
            has_controller=True,
        )
        for number, (node, count) in enumerate(nodes.items())
    )


def evidence(*, idle: timedelta = 3 * HOUR, now: datetime = NOON) -> Evidence:
    """Return evidence of an idle stretch until now."""
    return Evidence(
        window=Period(now - HOUR, now),
        scrape_interval_s=60.0,
        devices=(),
        held_device_count=0,
        observed_idle_s=idle.total_seconds(),
        idle_since_at=now - idle,
        was_ever_active=True,
        request_rate_per_s=None,
        level_activity_s=0.0,
    )


_HOLDER: Final = Workload(
    cluster=CLUSTER,
    uid="w",
    api_version="batch/v1",
    kind="Job",
    namespace="team",
    name="w",
    object_uid="w",
    resource_version="1",
    tenant_id="team",
    owner=None,
    workload_class="training",
    queue="queue",
    priority_class=None,
    priority=0,
    labels={},
    annotations={},
    namespace_labels={},
    gpu_models=("H100",),
    mig_profile=None,
    gpu_count=1.0,
    pods=(),
    is_gang=False,
    is_pending=False,
    created_at=NOON - 24 * HOUR,
    admitted_at=NOON - 24 * HOUR,
    managers=frozenset(),
    checkpoint_at=None,
    restored_at=None,
    evidence=evidence(),
)


def holder(uid: str, on: dict[str, int] | None = None, **changes: object) -> Workload:
    """Return a workload that holds GPUs on nodes: one on ``n1`` unless told."""
    nodes = {"n1": 1} if on is None else on
    given = {
        "uid": uid,
        "name": uid,
        "object_uid": uid,
        "pods": pods(uid, nodes),
        "gpu_count": float(sum(nodes.values())),
        **changes,
    }
    return replace(_HOLDER, **given)  # type: ignore[arg-type]  # the caller's words, checked there


def waiter(uid: str, gpu_count: float = 1.0, **changes: object) -> Workload:
    """Return a workload that waits for GPUs."""
    given = {
        "uid": uid,
        "name": uid,
        "object_uid": uid,
        "gpu_count": gpu_count,
        "is_pending": True,
        "admitted_at": None,
        "created_at": NOON - HOUR,
        "evidence": None,
        "queue": "waiting",
        **changes,
    }
    return replace(_HOLDER, **given)  # type: ignore[arg-type]  # the caller's words, checked there


def node(name: str, *, free: int = 0, total: int = 8, **changes: object) -> NodeRoom:
    """Return a node with much CPU and memory."""
    room = NodeRoom(
        cluster=CLUSTER,
        node=name,
        gpu_model="H100",
        mig_profile=None,
        free_count=free,
        total_count=total,
        is_schedulable=True,
        nvlink_domain=None,
        rack=None,
        free_cpu_milli=1_000_000,
        free_memory_bytes=10**12,
    )
    return replace(room, **changes)  # type: ignore[arg-type]  # the caller's words, checked there


def quota(**changes: object) -> QuotaUse:
    """Return what a queue is promised and uses."""
    use = QuotaUse(
        cluster=CLUSTER,
        tenant_id="team",
        queue="queue",
        gpu_model=None,
        guaranteed_gpu_count=None,
        limit_gpu_count=None,
        used_gpu_count=None,
    )
    return replace(use, **changes)  # type: ignore[arg-type]  # the caller's words, checked there


def budget(allowed: int, *, namespace: str = "team", **labels: str) -> Disruption:
    """Return a PodDisruptionBudget."""
    return Disruption(
        namespace=namespace,
        name="budget",
        match_labels=labels,
        allowed_disruption_count=allowed,
    )


def past(uid: str, **changes: object) -> PastAction:
    """Return a suspension that was done two hours ago."""
    action = PastAction(
        action_id=f"a-{uid}",
        workload_uid=uid,
        tenant_id="team",
        step=Step.SUSPEND,
        gpu_count=1.0,
        begun_at=NOON - 2 * HOUR,
        outcome="done",
        undone_at=None,
        was_asked_back=False,
    )
    return replace(action, **changes)  # type: ignore[arg-type]  # the caller's words, checked there


def notice(uid: str, *, ago: timedelta = HOUR, promised: timedelta = timedelta()) -> Notice:
    """Return a warning delivered ``ago`` that promised an act ``promised`` after now."""
    return Notice(
        workload_uid=uid,
        rule="idle",
        delivered_at=NOON - ago,
        idle_since_at=NOON - 3 * HOUR,
        act_at=NOON + promised,
    )


def snapshot(*workloads: Workload, **changes: object) -> Snapshot:
    """Return a snapshot at noon; one node ``n1`` of eight GPUs unless told."""
    taken = Snapshot(
        snapshot_id="s",
        taken_at=NOON,
        workloads=workloads,
        rooms=(node("n1"),),
        disruptions=(),
        quotas=(),
        exemptions=(),
        notices=(),
        past_actions=(),
        health=Health(telemetry_at=NOON, api_error_ratio=0.0, is_stopped=False),
    )
    return replace(taken, **changes)  # type: ignore[arg-type]  # the caller's words, checked there


def due(
    workload: Workload,
    step: Step | None = Step.SUSPEND,
    *,
    verdict: Verdict = Verdict.IDLE,
    rule_name: str = "idle",
) -> Decision:
    """Return a decision that wants a step of a workload."""
    seen = workload.evidence
    idle_s = 0.0 if seen is None or verdict is not Verdict.IDLE else seen.observed_idle_s
    return Decision(
        workload_uid=workload.uid,
        policy="p",
        policy_version=1,
        rule=rule_name,
        judgement=Judgement(
            verdict=verdict,
            reasons=("any",),
            findings=(),
            coverage_ratio=1.0,
            observed_idle_s=idle_s,
        ),
        step=step,
        reasons=("any",),
        next_at=None,
    )
