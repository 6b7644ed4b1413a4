"""One workload for the person affected: what was seen, why, what follows and when, what is lost."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from enforcer.controller import Considered
from enforcer.decisions import Decision, Deferred, PlannedAction, Step
from enforcer.facts import DeviceEvidence, Workload
from steward.errors import InputError
from steward.output import visible
from steward.units import GPU_MILLI, PERCENT, SECONDS_PER_MINUTE

UNKNOWN: Final = "unknown"
LOSS: Final = {
    Step.SUSPEND: "its pods end: what they hold in memory and on local disks is lost",
    Step.EVICT: "the pod is lost with all that it holds: nothing makes it again",
    Step.LOWER_PRIORITY: "nothing, until others need the GPUs",
}


def found_workload(considered: Considered, name: str) -> Workload:
    """Return a workload by its uid, or by ``NAMESPACE/NAME`` or ``KIND/NAMESPACE/NAME``.

    Raises:
        InputError: there is none, or several.
    """
    found = [one for one in considered.snapshot.workloads if name in _names(one)]
    if len(found) == 1:
        return found[0]
    if not found:
        raise InputError(
            f"no workload {name!r} holds GPUs or waits for some",
            hint="name it by uid, NAMESPACE/NAME or KIND/NAMESPACE/NAME",
        )
    kinds = ", ".join(f"{one.kind}/{one.namespace}/{one.name}" for one in found)
    raise InputError(f"{name!r} means several workloads: {kinds}", hint="name its kind too")


def _names(workload: Workload) -> set[str]:
    plain = f"{workload.namespace}/{workload.name}"
    return {workload.uid, plain, f"{workload.kind}/{plain}"}


def explained(considered: Considered, workload: Workload) -> str:
    """Return the page of one workload, one fact a line."""
    decision = next(one for one in considered.decisions if one.workload_uid == workload.uid)
    lines = [
        *_who(workload),
        *_seen(workload, decision),
        *_said(decision),
        *_next(considered, workload, decision),
        *_past(considered, workload),
    ]
    return "".join(f"{visible(line)}\n" for line in lines)


def _who(workload: Workload) -> Iterator[str]:
    yield f"{workload.kind} {workload.namespace}/{workload.name} ({workload.uid})"
    yield f"team {workload.tenant_id or UNKNOWN}, class {workload.workload_class or UNKNOWN}"
    verb = "waits for" if workload.is_pending else "holds"
    models = ", ".join(workload.gpu_models) or "any model"
    yield f"{verb} {workload.gpu_count:g} GPUs ({models}) in {len(workload.pods)} pods"


def _seen(workload: Workload, decision: Decision) -> Iterator[str]:
    judgement = decision.judgement
    yield f"verdict {judgement.verdict}: {', '.join(judgement.reasons)}"
    if judgement.findings:
        yield f"to look at: {', '.join(judgement.findings)}"
    evidence = workload.evidence
    if evidence is None:
        yield "nothing was read of its GPUs"
        return
    minutes = evidence.observed_idle_s / SECONDS_PER_MINUTE
    yield f"window until {_at(evidence.window.until_at)}; idle for {minutes:.0f} observed minutes"
    for device in evidence.devices:
        yield f"  {_device(device)}"


def _device(device: DeviceEvidence) -> str:
    part = "" if device.instance_id is None else f" instance {device.instance_id}"
    shared = ", shared" if device.is_shared else ""
    return (
        f"{device.device_uuid}{part} on {device.node}: coverage {_percent(device.coverage_ratio)}, "
        f"profiling {_percent(device.profiling_peak_ratio)}, "
        f"busy {_percent(device.busy_peak_ratio)}, power {_watts(device.power_peak_w)} "
        f"(idle {_watts(device.power_idle_w)}){shared}"
    )


def _said(decision: Decision) -> Iterator[str]:
    if decision.rule is None:
        yield f"no rule speaks of it: {', '.join(decision.reasons)}"
        return
    step = "nothing is due" if decision.step is None else f"{decision.step} is due"
    yield f"rule {decision.rule} of policy {decision.policy}, version {decision.policy_version}"
    yield f"{step}: {', '.join(decision.reasons)}"
    if decision.withheld_step is not None:
        yield f"the policy's mode holds {decision.withheld_step} back"


def _next(considered: Considered, workload: Workload, decision: Decision) -> Iterator[str]:
    for action in considered.plan.actions:
        if action.workload_uid == workload.uid:
            yield from _planned(action)
    for deferred in considered.plan.deferred:
        if deferred.workload_uid == workload.uid:
            yield _deferred(deferred)
    if decision.next_at is not None:
        yield f"if nothing changes, the next step may be due at {_at(decision.next_at)}"
    if decision.act_at is not None:
        yield f"its GPUs may first be taken at {_at(decision.act_at)}; then {LOSS[Step.SUSPEND]}"
    if workload.checkpoint_at is not None:
        yield f"its newest checkpoint is of {_at(workload.checkpoint_at)}"


def _planned(action: PlannedAction) -> Iterator[str]:
    yield f"the next round does: {action.step}, which frees {action.gpu_count:g} GPUs"
    if action.step in LOSS:
        yield f"what is lost: {LOSS[action.step]}"
    if action.lost_gpu_hours is not None:
        yield f"work lost: {action.lost_gpu_hours:.1f} GPU-hours"
    if action.serves_workload_uid is not None:
        yield f"it makes room for {action.serves_workload_uid}"


def _deferred(deferred: Deferred) -> str:
    return f"{deferred.step} is left out of the next round: {', '.join(deferred.reasons)}"


def _past(considered: Considered, workload: Workload) -> Iterator[str]:
    for notice in considered.snapshot.notices:
        if notice.workload_uid == workload.uid:
            promised = _at(notice.act_at)
            yield f"told at {_at(notice.delivered_at)}: not before {promised}"
    for action in considered.snapshot.past_actions:
        if action.workload_uid == workload.uid:
            undone = "" if action.undone_at is None else f", undone at {_at(action.undone_at)}"
            yield f"{action.step} at {_at(action.begun_at)}: {action.outcome}{undone}"


def _percent(ratio: float | None) -> str:
    return UNKNOWN if ratio is None else f"{ratio / PERCENT:.1f} %"


def _watts(power_w: float | None) -> str:
    return UNKNOWN if power_w is None else f"{power_w:.0f} W"


def _at(instant: datetime) -> str:
    return instant.strftime("%Y-%m-%d %H:%M UTC")


def gpus(gpu_milli: int) -> str:
    """Return GPUs from thousandths, as people write them."""
    return f"{gpu_milli / GPU_MILLI:g}"
