"""The background load: requests drawn from the templates, busier on working days."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from collector.sources.simulated.fleet import Fleet
from collector.sources.simulated.requests import (
    DEVELOPMENT,
    INFERENCE,
    TENANT_WEIGHTS,
    Request,
    request_uid,
)
from collector.sources.simulated.templates import TEMPLATES, Template
from steward.units import SECONDS_PER_DAY, SECONDS_PER_HOUR

LOAD: Final = 0.85
"""GPU-hours asked for, as a part of the fleet's GPU-hours."""
_STREAM: Final = 1
"""Keeps these draws apart from those of other parts of the simulation."""
_SHORTEST_S: Final = 180
_FAILED_RATIO: Final = 0.08


def background_requests(
    fleet: Fleet, *, seed: int, duration_s: int, from_epoch_s: int, first_index: int
) -> list[Request]:
    """Return the background requests in the order they are submitted."""
    random = np.random.default_rng([seed, _STREAM])
    count = _request_count(len(fleet.devices), duration_s)
    weights = np.array([template.weight for template in TEMPLATES])
    kinds = random.choice(len(TEMPLATES), size=count, p=weights / weights.sum())
    created = np.sort(random.uniform(0, duration_s, size=count))
    requests: list[Request] = []
    for kind, raw_created_s in zip(kinds.tolist(), created.tolist(), strict=True):
        template = TEMPLATES[kind]
        created_s = _shifted(
            raw_created_s, template, from_epoch_s=from_epoch_s, duration_s=duration_s, random=random
        )
        requests.append(_drawn(template, seed=seed, created_s=created_s, random=random))
    requests.sort(key=lambda request: request.created_s)
    return [
        _numbered(request, seed=seed, index=first_index + i) for i, request in enumerate(requests)
    ]


def _request_count(gpu_count: int, duration_s: int) -> int:
    """Return how many requests ask for ``LOAD`` of the fleet's GPU-hours on average."""
    total_weight = sum(template.weight for template in TEMPLATES)
    mean_gpu_s = sum(
        template.weight
        * template.pod_count
        * template.slots_per_pod
        * min(template.median_runtime_s * float(np.exp(template.runtime_sigma**2 / 2)), duration_s)
        for template in TEMPLATES
    )
    return max(20, round(LOAD * gpu_count * duration_s * total_weight / mean_gpu_s))


def _shifted(
    created_s: float,
    template: Template,
    *,
    from_epoch_s: int,
    duration_s: int,
    random: np.random.Generator,
) -> int:
    """Move most submissions of people into the working hours of the same day."""
    if not template.is_in_working_hours or random.random() < 0.3:
        return int(created_s)
    into_day_s = (from_epoch_s + created_s) % SECONDS_PER_DAY
    hour = float(np.clip(random.normal(12.5, 3.0), 0, 23.9))
    moved_s = created_s - into_day_s + hour * SECONDS_PER_HOUR
    return int(np.clip(moved_s, 0, duration_s - 1))


def _drawn(
    template: Template, *, seed: int, created_s: int, random: np.random.Generator
) -> Request:
    names = list(TENANT_WEIGHTS)
    tenant = names[int(random.choice(len(names), p=list(TENANT_WEIGHTS.values())))]
    behaviours, chances = zip(*template.behaviours, strict=True)
    behaviour = behaviours[int(random.choice(len(behaviours), p=chances))]
    runtime_s = template.median_runtime_s * random.lognormal(0.0, template.runtime_sigma)
    has_failed = template.workload_class not in {INFERENCE, DEVELOPMENT} and (
        random.random() < _FAILED_RATIO
    )
    return Request(
        index=0,
        uid=request_uid(seed=seed, index=0),
        name=template.name,
        tenant=tenant,
        owner=f"{tenant}-user-{random.integers(0, 9)}",
        workload_class=template.workload_class,
        priority_class=template.priority_class,
        created_s=created_s,
        runtime_s=max(_SHORTEST_S, int(runtime_s * (0.3 if has_failed else 1.0))),
        patience_s=template.patience_s,
        pod_count=template.pod_count,
        resource=template.resource,
        slots_per_pod=template.slots_per_pod,
        cpu_milli=template.cpu_milli,
        memory_bytes=template.memory_bytes,
        models=template.models,
        behaviour=behaviour,
        outcome="Failed" if has_failed else "Succeeded",
    )


def _numbered(request: Request, *, seed: int, index: int) -> Request:
    return replace(
        request,
        index=index,
        uid=request_uid(seed=seed, index=index),
        name=f"{request.name}-{index:05d}",
    )
