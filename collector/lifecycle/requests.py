"""What pods ask for, in GPUs, parts of GPUs, processors and memory."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from typing import Final

from collector.device_names import resource_profile
from collector.lifecycle.quantities import MOST, amount, milli, whole
from collector.normalize.mig import mig_share
from collector.sources.kubernetes.objects import (
    Annotations,
    Container,
    NodeSelectorTerm,
    PodSpec,
    Quantity,
)
from steward.units import GPU_MILLI

WHOLE_GPUS: Final = (
    "nvidia.com/gpu",
    "amd.com/gpu",
    "gpu.intel.com/i915",
    "gpu.intel.com/xe",
)
SHARED_GPUS: Final = ("nvidia.com/gpu.shared", "nvidia.com/pgpu", "nvidia.com/gpualloc")
_ASCEND: Final = re.compile(r"huawei\.com/(?:Ascend\w*|npu)")
_ASCEND_MEMORY: Final = re.compile(r"huawei\.com/Ascend\w*-memory")
_MIG: Final = re.compile(r"nvidia\.com/mig-[\w.-]+")
HAMI_MEMORY_MIB: Final = "nvidia.com/gpumem"
HAMI_MEMORY_PERCENT: Final = "nvidia.com/gpumem-percentage"
HAMI_CORES_PERCENT: Final = "nvidia.com/gpucores"
PRODUCT_LABELS: Final = (
    "nvidia.com/gpu.product",
    "amd.com/gpu.product-name",
    "cloud.google.com/gke-accelerator",
    "accelerator",
)
"""Node labels that name the model, as pods select them."""
_SIDECAR: Final = "Always"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What one pod asks for; None is not said."""

    cpu_milli: int | None
    memory_bytes: int | None
    gpu_count: int | None
    """Devices, MIG instances or shares; 0 where it asks for none, None where a claim is open."""
    gpu_milli: int | None
    """Thousandths of a GPU per piece; None where a share's size is not in the request."""
    gpu_memory_mib: int | None
    """GPU memory per piece, where that is what is asked for."""
    resource: str | None
    """The resource name of the pieces; several are joined by ``|``."""
    models: tuple[str, ...]
    """The models that will do, as node labels name them; empty for any."""


def is_gpu_resource(name: str) -> bool:
    """Return whether a resource name counts devices, instances or shares of devices."""
    if name in WHOLE_GPUS or name in SHARED_GPUS or _MIG.fullmatch(name):
        return True
    return _ASCEND.fullmatch(name) is not None and _ASCEND_MEMORY.fullmatch(name) is None


def request_of(spec: PodSpec, annotations: Annotations | None = None) -> Request:
    """Return what one pod of this spec asks for, by Kubernetes' rule for init containers."""
    totals = _totals(spec)
    gpus = {
        name: total.to_integral_value(rounding=ROUND_CEILING)
        for name, total in totals.items()
        if is_gpu_resource(name) and total > 0
    }
    count = sum(int(total) for total in gpus.values())
    fraction = _kai_fraction(annotations)
    if fraction is not None and count == 0:
        count, share, memory = fraction
        resource: str | None = "gpu-fraction" if share is not None else "gpu-memory"
    else:
        share, memory = _share_milli(gpus, totals), whole_or_none(totals.get(HAMI_MEMORY_MIB))
        resource = "|".join(sorted(gpus)) or None
    return Request(
        cpu_milli=milli_or_none(totals.get("cpu")),
        memory_bytes=whole_or_none(totals.get("memory")),
        gpu_count=count,
        gpu_milli=share if count else None,
        gpu_memory_mib=memory if count else None,
        resource=resource,
        models=_models(spec),
    )


def whole_or_none(total: Decimal | None) -> int | None:
    """Return the whole amount; None stays None."""
    return None if total is None else whole(str(total))


def milli_or_none(total: Decimal | None) -> int | None:
    """Return the amount in thousandths; None stays None."""
    return None if total is None else milli(str(total))


def _totals(spec: PodSpec) -> dict[str, Decimal]:
    """Return the sum over containers and sidecars, or what one init container needs if more."""
    totals: dict[str, Decimal] = {}
    peaks: dict[str, Decimal] = {}
    for container in spec.init_containers or ():
        asked = _asked(container)
        if container.restart_policy == _SIDECAR:
            _add(totals, asked)
            asked = totals
        for name, each in asked.items():
            peaks[name] = max(peaks.get(name, Decimal(0)), each)
    for container in spec.containers or ():
        _add(totals, _asked(container))
    return {
        name: max(totals.get(name, Decimal(0)), peaks.get(name, Decimal(0)))
        for name in totals.keys() | peaks.keys()
    }


def _asked(container: Container) -> dict[str, Decimal]:
    """Return the requests; a limit without a request is one, as the API server has it."""
    if container.resources is None:
        return {}
    merged: dict[str, Quantity] = {
        **(container.resources.limits or {}),
        **(container.resources.requests or {}),
    }
    found = {name: amount(quantity) for name, quantity in merged.items()}
    return {
        name: total for name, total in found.items() if total is not None and abs(total) <= MOST
    }


def _add(totals: dict[str, Decimal], more: Mapping[str, Decimal]) -> None:
    for name, each in more.items():
        totals[name] = totals.get(name, Decimal(0)) + each


def _share_milli(gpus: Mapping[str, Decimal], totals: Mapping[str, Decimal]) -> int | None:
    """Return the thousandths of a GPU per piece; mixed pieces have their mean."""
    for name in (HAMI_CORES_PERCENT, HAMI_MEMORY_PERCENT):
        percent = totals.get(name)
        if percent is not None and 0 < percent <= 100:
            return int(percent * GPU_MILLI / 100)
    if HAMI_MEMORY_MIB in totals:
        return None
    shares = [(int(total), _piece_milli(name)) for name, total in gpus.items()]
    if not shares or any(share is None for _, share in shares):
        return None
    weighted = sum(count * share for count, share in shares if share is not None)
    return round(weighted / sum(count for count, _ in shares))


def _piece_milli(resource: str) -> int | None:
    if _MIG.fullmatch(resource):
        ratio = mig_share(resource_profile(resource), model=None).sm_ratio
        return None if ratio is None or resource.endswith(".shared") else round(ratio * GPU_MILLI)
    return None if resource in SHARED_GPUS else GPU_MILLI


def _kai_fraction(annotations: Annotations | None) -> tuple[int, int | None, int | None] | None:
    """Return count, thousandths and MiB per piece that annotations of the KAI scheduler ask for."""
    if annotations is None:
        return None
    count = whole(annotations.gpu_fraction_device_count)
    pieces = 1 if count is None else count
    if annotations.gpu_fraction is not None:
        return pieces, milli(annotations.gpu_fraction), None
    if annotations.gpu_memory_mib is not None:
        return pieces, None, whole(annotations.gpu_memory_mib)
    return None


def _models(spec: PodSpec) -> tuple[str, ...]:
    selector = spec.node_selector or {}
    named = [selector[label] for label in PRODUCT_LABELS if label in selector]
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    required = (
        affinity.required_during_scheduling_ignored_during_execution
        if affinity is not None
        else None
    )
    terms = (required.node_selector_terms or ()) if required is not None else ()
    return tuple(sorted({model_name(name) for name in (*named, *_in_terms(terms))}))


def _in_terms(terms: Iterable[NodeSelectorTerm]) -> Iterable[str]:
    for term in terms:
        for requirement in term.match_expressions or ():
            if requirement.key in PRODUCT_LABELS and requirement.operator == "In":
                yield from requirement.values or ()


def model_name(product: str) -> str:
    """Return the model that a product label names, without what it says of sharing."""
    return re.sub(r"(-SHARED|-MIG-[\w.]+)+$", "", product)
