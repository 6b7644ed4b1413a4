"""Evidence and workloads with harmless defaults: a quiet GPU, seen all the time."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from enforcer.facts import DeviceEvidence, Evidence, PodFact, Workload
from enforcer.policies.model import IdleLimits
from steward.period import Period
from steward.units import MIB_BYTES

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
GIB_BYTES = 1024 * MIB_BYTES
LIMITS = IdleLimits(
    window=HOUR,
    below_ratio=0.02,
    power_margin_ratio=0.15,
    min_coverage_ratio=0.9,
    fresh_scrapes=2,
)

QUIET_DEVICE = DeviceEvidence(
    device_uuid="GPU-a",
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
    memory_used_peak_bytes=500 * MIB_BYTES,
    memory_total_bytes=80 * GIB_BYTES,
    memory_change_bytes=0,
    traffic_peak_bytes_per_s=0.0,
    process_count_peak=1,
)
QUIET = Evidence(
    window=Period.before(NOON, HOUR),
    scrape_interval_s=60.0,
    devices=(QUIET_DEVICE,),
    held_device_count=1,
    observed_idle_s=7200.0,
    idle_since_at=NOON - 2 * HOUR,
    was_ever_active=True,
    request_rate_per_s=None,
    level_activity_s=0.0,
)


def device(**told: object) -> DeviceEvidence:
    """Return a quiet device, with what it tells instead."""
    return replace(QUIET_DEVICE, **told)  # type: ignore[arg-type] # names of its own fields


def evidence(*devices: DeviceEvidence, **told: object) -> Evidence:
    """Return evidence of these devices, or of a quiet one, with what is told instead."""
    shown = devices or (QUIET_DEVICE,)
    filled = replace(QUIET, devices=shown, held_device_count=len(shown))
    return replace(filled, **told)  # type: ignore[arg-type] # names of its own fields


def pod(name: str = "pod-0", *, gpu_count: int = 1, phase: str = "Running") -> PodFact:
    """Return a pod of a controller."""
    return PodFact(
        uid=name,
        name=name,
        node="n1",
        phase=phase,
        gpu_count=gpu_count,
        labels={},
        has_controller=True,
    )


def workload(found: Evidence | None = QUIET, **told: object) -> Workload:
    """Return a training job with this evidence, with what is told instead."""
    plain = Workload(
        cluster="c",
        uid="w1",
        api_version="batch/v1",
        kind="Job",
        namespace="team-a",
        name="w1",
        object_uid="w1",
        resource_version="",
        tenant_id="team-a",
        owner=None,
        workload_class="training",
        queue=None,
        priority_class=None,
        priority=None,
        labels={},
        annotations={},
        namespace_labels={},
        gpu_models=("H100",),
        mig_profile=None,
        gpu_count=1.0,
        pods=(pod(),),
        is_gang=False,
        is_pending=False,
        created_at=NOON - 24 * HOUR,
        admitted_at=NOON - 24 * HOUR,
        managers=frozenset(),
        checkpoint_at=None,
        restored_at=None,
        evidence=found,
    )
    return replace(plain, **told)  # type: ignore[arg-type] # names of its own fields
