"""Facts and policies with harmless defaults, for decisions: an idle training job under one rule."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final

from enforcer.decisions import Decision, Step
from enforcer.facts import (
    DeviceEvidence,
    Evidence,
    Exemption,
    Health,
    Notice,
    PastAction,
    PodFact,
    Snapshot,
    Workload,
)
from enforcer.policies.decide import decide
from enforcer.policies.model import (
    Caps,
    Effect,
    IdleLimits,
    Match,
    Mode,
    Policy,
    Rule,
    Rung,
)
from enforcer.policies.schedule import ALWAYS
from steward.period import Period

NOON: Final = datetime(2026, 6, 10, 12, 0, tzinfo=UTC)
HOUR: Final = timedelta(hours=1)
MINUTE: Final = timedelta(minutes=1)
TICK: Final = timedelta(seconds=1)
NEVER: Final = timedelta()
LADDER: Final = (
    Rung(step=Step.NOTIFY, after=60 * MINUTE, lead=NEVER),
    Rung(step=Step.NOTIFY, after=105 * MINUTE, lead=NEVER),
    Rung(step=Step.SUSPEND, after=120 * MINUTE, lead=60 * MINUTE),
)
LIMITS: Final = IdleLimits(
    window=HOUR,
    below_ratio=0.02,
    power_margin_ratio=0.15,
    min_coverage_ratio=0.9,
    fresh_scrapes=2,
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
    checkpoint_grace=NEVER,
    evicts_bare_pods=False,
    schedule=ALWAYS,
    note="",
)
EXEMPTING: Final = replace(RULE, name="kept", effect=Effect.EXEMPT, idle=None, ladder=())
CAPS: Final = Caps(
    workloads_per_round=5,
    workloads_per_hour=5,
    gpu_ratio_per_hour=0.05,
    workloads_per_tenant_per_hour=2,
    unknown_ratio_breaker=0.3,
    api_error_ratio_breaker=0.1,
    restore_ratio_breaker=0.2,
    ping_pong_count=2,
)


def rule(**changes: object) -> Rule:
    """Return the rule of these tests with some fields changed."""
    return replace(RULE, **changes)  # type: ignore[arg-type]  # the caller's words, checked there


def policy(*rules: Rule, **changes: object) -> Policy:
    """Return an enforcing policy of these rules, of ``RULE`` where none is given."""
    made = Policy(
        name="p",
        version=1,
        mode=Mode.ENFORCE,
        parent=None,
        rules=rules or (RULE,),
        caps=CAPS,
        max_regret_ratio=0.1,
        labels={},
    )
    return replace(made, **changes)  # type: ignore[arg-type]  # the caller's words, checked there


DEVICE: Final = DeviceEvidence(
    device_uuid="GPU-1",
    instance_id=None,
    node="n1",
    is_shared=False,
    coverage_ratio=1.0,
    newest_at=NOON,
    profiling_peak_ratio=0.0,
    busy_peak_ratio=0.0,
    disagreement_ratio=0.0,
    own_busy_peak_ratio=None,
    power_peak_w=70.0,
    power_idle_w=70.0,
    memory_used_peak_bytes=0,
    memory_total_bytes=80 * 10**9,
    memory_change_bytes=0,
    traffic_peak_bytes_per_s=0.0,
    process_count_peak=0,
)


def evidence(*, idle: timedelta, now: datetime = NOON, gap: timedelta = NEVER) -> Evidence:
    """Return quiet evidence of an idle stretch until ``now``; a gap does not count."""
    return Evidence(
        window=Period(now - HOUR, now),
        scrape_interval_s=30.0,
        devices=(replace(DEVICE, newest_at=now),),
        held_device_count=1,
        observed_idle_s=idle.total_seconds(),
        idle_since_at=now - idle - gap,
        was_ever_active=True,
        request_rate_per_s=0.0,
        level_activity_s=0.0,
    )


def busy_evidence(*, now: datetime = NOON) -> Evidence:
    """Return evidence of work."""
    quiet = evidence(idle=NEVER, now=now)
    return replace(
        quiet,
        devices=(replace(DEVICE, newest_at=now, profiling_peak_ratio=0.8, busy_peak_ratio=0.9),),
        idle_since_at=None,
    )


WORKLOAD: Final = Workload(
    cluster="c",
    uid="w",
    api_version="batch/v1",
    kind="Job",
    namespace="vision",
    name="train",
    object_uid="o",
    resource_version="1",
    tenant_id="vision",
    owner="ada",
    workload_class="training",
    queue="batch",
    priority_class=None,
    priority=0,
    labels={},
    annotations={},
    namespace_labels={},
    gpu_models=("NVIDIA H100 80GB HBM3",),
    mig_profile=None,
    gpu_count=1.0,
    pods=(
        PodFact(
            uid="p",
            name="train-0",
            node="n1",
            phase="Running",
            gpu_count=1,
            labels={},
            has_controller=True,
        ),
    ),
    is_gang=False,
    is_pending=False,
    created_at=NOON - 24 * HOUR,
    admitted_at=NOON - 24 * HOUR,
    managers=frozenset(),
    checkpoint_at=None,
    restored_at=None,
    evidence=evidence(idle=3 * HOUR),
)


def workload(
    *, idle: timedelta | None = 3 * HOUR, now: datetime = NOON, **changes: object
) -> Workload:
    """Return a workload idle for so long; ``idle`` None: nothing was read of it."""
    seen = None if idle is None else evidence(idle=idle, now=now)
    given = {"evidence": seen, **changes}
    return replace(WORKLOAD, **given)  # type: ignore[arg-type]  # the caller's words, checked there


def notice(*, ago: timedelta, now: datetime = NOON, **changes: object) -> Notice:
    """Return a notice delivered so long ago that promised an act no later than now."""
    made = Notice(
        workload_uid="w",
        rule="idle",
        delivered_at=now - ago,
        idle_since_at=now - ago - HOUR,
        act_at=now,
    )
    return replace(made, **changes)  # type: ignore[arg-type]  # the caller's words, checked there


WARNED: Final = (notice(ago=60 * MINUTE), notice(ago=15 * MINUTE))
"""Both notices of ``LADDER``, just old enough at noon."""


def past(**changes: object) -> PastAction:
    """Return a suspension of the workload that was done an hour ago."""
    made = PastAction(
        action_id="a",
        workload_uid="w",
        tenant_id="vision",
        step="suspend",
        gpu_count=1.0,
        begun_at=NOON - HOUR,
        outcome="done",
        undone_at=None,
        was_asked_back=False,
    )
    return replace(made, **changes)  # type: ignore[arg-type]  # the caller's words, checked there


def exemption(**changes: object) -> Exemption:
    """Return a grant for the workload that holds until one o'clock."""
    made = Exemption(
        scope_kind="workload",
        scope_key="w",
        policy="*",
        period=Period(NOON - HOUR, NOON + HOUR),
        reason="a demonstration",
    )
    return replace(made, **changes)  # type: ignore[arg-type]  # the caller's words, checked there


def snapshot(*workloads: Workload, now: datetime = NOON, **changes: object) -> Snapshot:
    """Return a snapshot of these workloads."""
    made = Snapshot(
        snapshot_id="s",
        taken_at=now,
        workloads=workloads,
        rooms=(),
        disruptions=(),
        quotas=(),
        exemptions=(),
        notices=(),
        past_actions=(),
        health=Health(telemetry_at=now, api_error_ratio=0.0, is_stopped=False),
    )
    return replace(made, **changes)  # type: ignore[arg-type]  # the caller's words, checked there


def decided(
    one: Workload,
    *policies: Policy,
    now: datetime = NOON,
    **facts: object,
) -> Decision:
    """Return the decision on one workload; under ``policy()`` where no policy is given."""
    (found,) = decide(snapshot(one, now=now, **facts), policies or (policy(),), now)
    return found
