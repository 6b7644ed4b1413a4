"""Which measures a target's devices lack, and what reports cannot say for want of them; pure.

Every check reads the normalised rows, so that it holds for all vendors and names alike. How
effective utilisation is known is told in ``docs/measures.md``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from collector.doctor.codes import Code
from collector.doctor.finding import Finding, gap, named, note, share
from collector.doctor.target_view import DCGM_NAME, Row, TargetView
from collector.normalize.absence import Absence

_FLOATING: Final = ("fp64_active_ratio", "fp32_active_ratio", "fp16_active_ratio")
_WHAT_TO_RUN: Final[Mapping[str, str]] = MappingProxyType(
    {
        DCGM_NAME: "add the DCGM_FI_PROF_ metrics to dcgm-exporter's list (-f FILE) and give it "
        "SYS_ADMIN, or run `steward agent` on Hopper and newer",
        "agent": "none below Hopper: there run dcgm-exporter with the DCGM_FI_PROF_ metrics",
        "device_metrics_exporter": "enable the GPU_PROF_ fields in the exporter's configuration",
        "npu_exporter": "none: npu-exporter has no such metrics",
    }
)
_ELSE: Final = "this exporter has none: run dcgm-exporter or `steward agent` beside it"
_EMPTY_VALUES: Final = "look which fields the exporter's list of metrics has"


def measure_findings(view: TargetView) -> Iterator[Finding]:
    """Yield what the devices of a target do not tell about their work."""
    yield from _profiling(view)
    yield from _utilisation(view)
    yield from _memory(view)
    yield from _power(view)
    yield from _unit_unsettled(view)
    yield from _not_permitted(view)


def effective_tier(row: Row) -> int | None:
    """Return how effective utilisation is known: 1 measured, 2 an upper bound, None not at all."""
    has_pipes = row["tensor_active_ratio"] is not None or all(
        row[column] is not None for column in _FLOATING
    )
    if row["dram_active_ratio"] is not None and has_pipes:
        return 1
    return 2 if row["sm_active_ratio"] is not None else None


def _profiling(view: TargetView) -> Iterator[Finding]:
    tiers = [effective_tier(row) for row in view.workers]
    unknown_count = tiers.count(None)
    if unknown_count == len(tiers):
        yield _profiling_absent(view)
    elif unknown_count:
        yield gap(
            Code.PROFILING_UNEVEN,
            view.url,
            message=f"no profiling metrics for {_share(view, unknown_count)}, the others have them",
            remedy="on the devices that lack them nothing else may use the profiler (ncu, a second "
            "DCGM); restart the exporter after MIG instances were made",
        )
    elif 2 in tiers:
        yield gap(
            Code.PROFILING_PARTIAL,
            view.url,
            message=f"SM activity alone for {_share(view, tiers.count(2))}, not both memory and "
            "tensor activity: effective utilisation is only an upper bound",
            remedy="add DCGM_FI_PROF_PIPE_TENSOR_ACTIVE and DCGM_FI_PROF_DRAM_ACTIVE to the "
            "exporter's list of metrics",
        )


def _profiling_absent(view: TargetView) -> Finding:
    has_graphics = view.has("graphics_active_ratio")
    what = (
        "no profiling metrics beyond graphics activity" if has_graphics else "no profiling metrics"
    )
    known = [text for name, text in _WHAT_TO_RUN.items() if name in view.dialects]
    return gap(
        Code.PROFILING_ABSENT,
        view.url,
        message=f"{what}: effective utilisation is unknown, only the share of time in which "
        "anything ran is seen",
        remedy=known[0] if known else _ELSE,
    )


def _share(view: TargetView, count: int) -> str:
    is_divided = all(row["instance_id"] is not None for row in view.workers)
    return share(count, len(view.workers), "MIG instance" if is_divided else "device")


def _utilisation(view: TargetView) -> Iterator[Finding]:
    silent = [
        row
        for row in view.workers
        if row["busy_ratio"] is None
        and row["graphics_active_ratio"] is None
        and effective_tier(row) is None
    ]
    if silent:
        is_divided = any(row["instance_id"] is not None for row in silent)
        yield gap(
            Code.UTILISATION_ABSENT,
            view.url,
            message=f"neither a duty cycle nor graphics activity for {_share(view, len(silent))}: "
            "whether they work is unknown",
            remedy="under MIG the exporter must give DCGM_FI_PROF_GR_ENGINE_ACTIVE"
            if is_divided
            else _EMPTY_VALUES,
        )


def _memory(view: TargetView) -> Iterator[Finding]:
    if not view.has("memory_used_bytes"):
        yield gap(
            Code.MEMORY_ABSENT,
            view.url,
            message="no device tells how much memory is in use",
            remedy="where memory is shared with the processor (GB10, Jetson) this is right; else "
            + _EMPTY_VALUES,
        )


def _power(view: TargetView) -> Iterator[Finding]:
    if not (view.has("power_w") or view.has("energy_j")):
        yield gap(
            Code.POWER_ABSENT,
            view.url,
            message="neither power nor energy is told: reports have no energy figures for it",
            remedy=_EMPTY_VALUES,
        )


def _unit_unsettled(view: TargetView) -> Iterator[Finding]:
    columns = _columns_without(view, Absence.AMBIGUOUS_UNIT)
    if columns:
        yield gap(
            Code.UNIT_UNSETTLED,
            view.url,
            message=f"nothing tells whether {named(columns)} is a ratio or a percentage, so it is "
            "left out",
            remedy="bring dcgm-exporter to 4.9 or newer, or let it give its full default set",
        )


def _not_permitted(view: TargetView) -> Iterator[Finding]:
    columns = _columns_without(view, Absence.NO_PERMISSION)
    if columns:
        yield note(
            Code.VALUES_NOT_PERMITTED,
            view.url,
            message=f"the exporter itself may not read {named(columns)}",
            remedy="let it run as root, or with SYS_ADMIN",
        )


def _columns_without(view: TargetView, reason: Absence) -> set[str]:
    """Return the columns that some device lacks for this reason."""
    parts = (part for row in view.rows for part in (row["absences"] or "").split(","))
    return {part.partition("=")[0] for part in parts if part.endswith(f"={reason}")}
