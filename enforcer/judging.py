"""The verdict on one workload: IDLE, BUSY or UNKNOWN, from evidence and the limits of its rule.

Pure. One device that works makes the workload BUSY; IDLE needs every device of every pod seen,
enough, lately and quiet by every signal that it tells; everything else is UNKNOWN. Signals that
contradict each other give a finding for a person and never IDLE.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from analytics.evidence.limits import (
    LEVEL_AFTER_S,
    MEMORY_CHANGE_BYTES,
    TRAFFIC_ACTIVE_BYTES_PER_S,
)
from enforcer.decisions import Finding, Judgement, Verdict
from enforcer.facts import DeviceEvidence, Evidence, Workload
from enforcer.policies.model import IdleLimits
from steward.units import MIB_BYTES

DISAGREEMENT_RATIO: Final = 0.5
"""Device utilisation further above profiling than this, in one reading: one of them is wrong."""
MEMORY_HELD_BYTES: Final = 1024 * MIB_BYTES
"""A bare context takes less; from here on there is something in memory to lose."""
MEMORY_NONE_BYTES: Final = 64 * MIB_BYTES
"""Less than any context takes."""
EVIDENCE_LASTS: Final = timedelta(minutes=10)
"""Evidence whose window ended earlier says nothing of now."""
RUNNING: Final = "Running"
INFERENCE: Final = "inference"


class Ground(StrEnum):
    """Why a verdict is as it is."""

    ACTIVITY = "activity"
    """BUSY: profiling or device utilisation reached the rule's limit."""
    POWER_ABOVE_IDLE = "power_above_idle"
    """BUSY: it drew more than it is known to draw at rest."""
    TRAFFIC = "traffic"
    """BUSY: PCIe or NVLink moved data."""
    MEMORY_CHANGED = "memory_changed"
    """BUSY: memory in use grew or shrank."""
    REQUESTS_SERVED = "requests_served"
    """BUSY: requests arrived."""
    NOTHING_READ = "nothing_read"
    """UNKNOWN: no evidence at all."""
    DEVICES_NOT_KNOWN = "devices_not_known"
    """UNKNOWN: which GPUs it holds is not, or not wholly, known."""
    SHARED_DEVICE = "shared_device"
    """UNKNOWN: a GPU has several holders and does not account for their processes."""
    DEVICE_SILENT = "device_silent"
    """UNKNOWN: one of its GPUs tells nothing."""
    STALE = "stale"
    """UNKNOWN: the newest reading, or all of the evidence, is older than the rule allows."""
    LOW_COVERAGE = "low_coverage"
    """UNKNOWN: too little of the window was observed on one of its GPUs."""
    WINDOW_TOO_SHORT = "window_too_short"
    """UNKNOWN: the evidence spans less than the rule's window."""
    NO_ACTIVITY_SIGNAL = "no_activity_signal"
    """UNKNOWN: a GPU tells neither profiling nor device utilisation."""
    POWER_LEVEL_NOT_KNOWN = "power_level_not_known"
    """UNKNOWN: what a GPU draws at rest has not been learnt yet."""
    SIGNALS_CONTRADICT = "signals_contradict"
    """UNKNOWN: two signals of one GPU cannot both be right; see the findings."""
    REQUESTS_NOT_TOLD = "requests_not_told"
    """UNKNOWN: a model is loaded, and nothing tells whether it is asked."""
    LEVEL_ACTIVITY = "level_activity"
    """UNKNOWN: small, level activity for hours; see the findings."""
    CLOCK_NOT_KNOWN = "clock_not_known"
    """UNKNOWN: no time was observed in which all its GPUs were quiet together."""
    ALL_QUIET = "all_quiet"
    """IDLE: every GPU was seen, enough and lately, and none did anything."""


_RANK: Final = {ground: number for number, ground in enumerate(Ground)}
_OF_QUIET: Final = frozenset({Finding.HELD_MEMORY, Finding.LOADED_MODEL, Finding.NEVER_USED})
"""Findings that say nothing of a workload that works."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """What one device, or the workload as a whole, gives to the verdict."""

    work: tuple[Ground, ...] = ()
    doubts: tuple[Ground, ...] = ()
    findings: tuple[Finding, ...] = ()


def judge(workload: Workload, limits: IdleLimits, *, now: datetime) -> Judgement:
    """Return the verdict on a workload, with its grounds and findings.

    Args:
        workload: with its evidence, made for these limits.
        limits: of the rule that matches it.
        now: evidence whose window ended long before, or after, says nothing.
    """
    evidence = workload.evidence
    if evidence is None:
        return _judged(Verdict.UNKNOWN, (Ground.NOTHING_READ,), findings=(), evidence=None)
    seen = [_device(each, evidence, limits) for each in evidence.devices]
    seen.append(_whole(workload, evidence, limits, now=now))
    work = _ordered(ground for each in seen for ground in each.work)
    doubts = _ordered(ground for each in seen for ground in each.doubts)
    findings = tuple(sorted({finding for each in seen for finding in each.findings}))
    if work:
        findings = tuple(each for each in findings if each not in _OF_QUIET)
        return _judged(Verdict.BUSY, work, findings=findings, evidence=evidence)
    if doubts:
        return _judged(Verdict.UNKNOWN, doubts, findings=findings, evidence=evidence)
    return _judged(Verdict.IDLE, (Ground.ALL_QUIET,), findings=findings, evidence=evidence)


def _judged(
    verdict: Verdict,
    reasons: tuple[str, ...],
    *,
    findings: tuple[Finding, ...],
    evidence: Evidence | None,
) -> Judgement:
    devices = () if evidence is None else evidence.devices
    is_idle = evidence is not None and verdict is Verdict.IDLE
    return Judgement(
        verdict=verdict,
        reasons=reasons,
        findings=findings,
        coverage_ratio=min((each.coverage_ratio for each in devices), default=None),
        observed_idle_s=evidence.observed_idle_s if is_idle and evidence is not None else 0.0,
    )


def _ordered(grounds: Iterable[Ground]) -> tuple[Ground, ...]:
    """Return each ground once, most decisive first: in the order in which they are declared."""
    return tuple(sorted(set(grounds), key=_RANK.__getitem__))


def _device(device: DeviceEvidence, evidence: Evidence, limits: IdleLimits) -> _Seen:
    doubts = tuple(_doubts_of_reading(device, evidence, limits))
    if device.is_shared:
        own = _seen_of_shared(device, limits)
        return _Seen(work=own.work, doubts=(*doubts, *own.doubts))
    fault = _contradiction(device, limits)
    if fault is not None:
        return _Seen(doubts=(*doubts, Ground.SIGNALS_CONTRADICT), findings=(fault,))
    return _Seen(
        work=tuple(_work(device, limits)),
        doubts=(*doubts, *_doubts_of_signals(device)),
    )


def _seen_of_shared(device: DeviceEvidence, limits: IdleLimits) -> _Seen:
    """Judge by the workload's own processes only: all else is of several holders."""
    if device.own_busy_peak_ratio is None:
        return _Seen(doubts=(Ground.SHARED_DEVICE,))
    is_active = device.own_busy_peak_ratio >= limits.below_ratio
    return _Seen(work=(Ground.ACTIVITY,) if is_active else ())


def _doubts_of_reading(
    device: DeviceEvidence, evidence: Evidence, limits: IdleLimits
) -> Iterator[Ground]:
    scrape = timedelta(seconds=evidence.scrape_interval_s)
    if device.newest_at is None:
        yield Ground.DEVICE_SILENT
    elif evidence.window.until_at - device.newest_at > limits.fresh_scrapes * scrape:
        yield Ground.STALE
    if device.coverage_ratio < limits.min_coverage_ratio:
        yield Ground.LOW_COVERAGE


def _doubts_of_signals(device: DeviceEvidence) -> Iterator[Ground]:
    if _activity_ratio(device) is None:
        yield Ground.NO_ACTIVITY_SIGNAL
    if device.power_peak_w is not None and device.power_idle_w is None:
        yield Ground.POWER_LEVEL_NOT_KNOWN


def _work(device: DeviceEvidence, limits: IdleLimits) -> Iterator[Ground]:
    if _reaches(_activity_ratio(device), limits.below_ratio):
        yield Ground.ACTIVITY
    if _reaches(device.power_peak_w, _power_limit_w(device, limits)):
        yield Ground.POWER_ABOVE_IDLE
    if _reaches(device.traffic_peak_bytes_per_s, TRAFFIC_ACTIVE_BYTES_PER_S):
        yield Ground.TRAFFIC
    if _reaches(device.memory_change_bytes, MEMORY_CHANGE_BYTES):
        yield Ground.MEMORY_CHANGED


def _activity_ratio(device: DeviceEvidence) -> float | None:
    """Return the larger of profiling and device utilisation; None: neither is told."""
    told = (device.profiling_peak_ratio, device.busy_peak_ratio)
    return max((each for each in told if each is not None), default=None)


def _power_limit_w(device: DeviceEvidence, limits: IdleLimits) -> float | None:
    if device.power_idle_w is None:
        return None
    return device.power_idle_w * (1 + limits.power_margin_ratio)


def _reaches(value: float | None, limit: float | None) -> bool:
    return value is not None and limit is not None and value >= limit


def _contradiction(device: DeviceEvidence, limits: IdleLimits) -> Finding | None:
    """Return what is wrong with a device's signals; None: they go together."""
    if _is_ghost(device, limits):
        return Finding.GHOST_BUSY
    disagreement = device.disagreement_ratio
    is_apart = disagreement is not None and disagreement > DISAGREEMENT_RATIO
    if is_apart and not _reaches(device.profiling_peak_ratio, limits.below_ratio):
        return Finding.COUNTER_FAULT
    return None


def _is_ghost(device: DeviceEvidence, limits: IdleLimits) -> bool:
    """Tell whether nothing but the utilisation counter says that the device works."""
    power_limit_w, power_w = _power_limit_w(device, limits), device.power_peak_w
    memory_bytes = device.memory_used_peak_bytes
    return (
        _reaches(device.busy_peak_ratio, DISAGREEMENT_RATIO)
        and not _reaches(device.profiling_peak_ratio, limits.below_ratio)
        and not device.process_count_peak
        and (memory_bytes is not None and memory_bytes < MEMORY_NONE_BYTES)
        and (power_w is not None and power_limit_w is not None and power_w < power_limit_w)
    )


def _whole(workload: Workload, evidence: Evidence, limits: IdleLimits, *, now: datetime) -> _Seen:
    """Judge what is not of one device: counts, window, requests, clock."""
    age = now - evidence.window.until_at
    by_age = () if timedelta(0) <= age <= EVIDENCE_LASTS else (Ground.STALE,)
    doubts = (*by_age, *_doubts_of_whole(workload, evidence, limits))
    is_served = _reaches(evidence.request_rate_per_s, 0) and evidence.request_rate_per_s != 0
    return _Seen(
        work=(Ground.REQUESTS_SERVED,) if is_served else (),
        doubts=doubts,
        findings=tuple(_findings_of_whole(workload, evidence)),
    )


def _doubts_of_whole(
    workload: Workload, evidence: Evidence, limits: IdleLimits
) -> Iterator[Ground]:
    held = evidence.held_device_count
    if held == 0 or held < _asked_count(workload, evidence):
        yield Ground.DEVICES_NOT_KNOWN
    if held > len(evidence.devices):
        yield Ground.DEVICE_SILENT
    if evidence.window.length < limits.window:
        yield Ground.WINDOW_TOO_SHORT
    if _has_loaded_model(workload, evidence) and evidence.request_rate_per_s is None:
        yield Ground.REQUESTS_NOT_TOLD
    if _is_level(evidence):
        yield Ground.LEVEL_ACTIVITY
    if evidence.idle_since_at is None or evidence.observed_idle_s <= 0:
        yield Ground.CLOCK_NOT_KNOWN


def _asked_count(workload: Workload, evidence: Evidence) -> int:
    """Return how many devices its pods must hold; several shares of one device are one device."""
    if any(each.is_shared for each in evidence.devices):
        return 0
    return sum(pod.gpu_count for pod in workload.pods if pod.phase == RUNNING)


def _findings_of_whole(workload: Workload, evidence: Evidence) -> Iterator[Finding]:
    if _has_loaded_model(workload, evidence):
        yield Finding.LOADED_MODEL
    elif _holds_memory(evidence):
        yield Finding.HELD_MEMORY
    if evidence.was_ever_active is False:
        yield Finding.NEVER_USED
    if _is_level(evidence):
        yield Finding.SUSPECTED_HOLD


def _is_level(evidence: Evidence) -> bool:
    return _reaches(evidence.level_activity_s, LEVEL_AFTER_S)


def _has_loaded_model(workload: Workload, evidence: Evidence) -> bool:
    return workload.workload_class == INFERENCE and _holds_memory(evidence)


def _holds_memory(evidence: Evidence) -> bool:
    return any(
        _reaches(each.memory_used_peak_bytes, MEMORY_HELD_BYTES)
        for each in evidence.devices
        if not each.is_shared
    )
