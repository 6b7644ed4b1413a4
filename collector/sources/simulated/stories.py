"""Requests planted in every simulated fleet, so that each pathology is there for every seed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from collector.sources.simulated.fleet import GIB_BYTES, SHARED_GPU, WHOLE_GPU, Fleet
from collector.sources.simulated.requests import (
    DEVELOPMENT,
    INFERENCE,
    TRAINING,
    Request,
    request_uid,
)
from steward.units import SECONDS_PER_HOUR

_H: Final = SECONDS_PER_HOUR
FOREVER_S: Final = 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """A planted request; only what makes it worth planting is spelled out."""

    name: str
    tenant: str
    workload_class: str
    models: tuple[str, ...]
    behaviour: str
    created_ratio: float = 0.0
    """When it is submitted, as a part of the simulated period."""
    runtime_ratio: float | None = None
    """How long it runs, as a part of the period; None: beyond its end."""
    copies: int = 1
    exceeds_fleet: bool = False
    """Asks for one pod more than there are nodes of its model."""
    slots_per_pod: int = 1
    resource: str = WHOLE_GPU
    cpu_milli: int = 6_000
    memory_gib: int = 24
    priority_class: str = "standard"
    patience_s: int = FOREVER_S


_H100: Final = ("H100-SXM-80GB",)
_A100: Final = ("A100-SXM4-40GB",)
_L40S: Final = ("L40S",)
_T4: Final = ("T4",)

STORIES: Final = (
    Story(  # takes the CPUs of L40S nodes; their other GPUs are free and out of reach
        name="feature-extract",
        tenant="speech",
        workload_class=TRAINING,
        models=_L40S,
        behaviour="short_kernels",
        copies=2,
        cpu_milli=30_000,
        memory_gib=120,
        runtime_ratio=0.8,
        priority_class="production",
    ),
    Story(
        name="reserved-just-in-case",
        tenant="research",
        workload_class=DEVELOPMENT,
        models=_A100,
        behaviour="idle",
        slots_per_pod=2,
        runtime_ratio=0.9,
        priority_class="production",
    ),
    Story(
        name="one-sm-loop",
        tenant="vision",
        workload_class=TRAINING,
        models=_A100,
        behaviour="one_sm",
        runtime_ratio=0.7,
        priority_class="production",
    ),
    Story(
        name="collective-hang",
        tenant="search",
        workload_class=TRAINING,
        models=_H100,
        behaviour="deadlock",
        slots_per_pod=4,
        cpu_milli=48_000,
        created_ratio=0.02,
        runtime_ratio=0.5,
        priority_class="production",
    ),
    Story(
        name="embedding-scan",
        tenant="ads",
        workload_class=TRAINING,
        models=_H100,
        behaviour="memory_bound",
        slots_per_pod=2,
        cpu_milli=24_000,
        runtime_ratio=0.85,
        priority_class="production",
    ),
    Story(
        name="tiny-kernels",
        tenant="research",
        workload_class=TRAINING,
        models=_T4,
        behaviour="short_kernels",
        runtime_ratio=0.6,
        priority_class="production",
    ),
    Story(
        name="ranker",
        tenant="search",
        workload_class=INFERENCE,
        models=_T4,
        behaviour="serving",
        copies=2,
        priority_class="production",
    ),
    Story(
        name="ads-scorer",
        tenant="ads",
        workload_class=INFERENCE,
        models=_L40S,
        behaviour="serving",
        priority_class="production",
    ),
    Story(
        name="slice-scan",
        tenant="ads",
        workload_class=INFERENCE,
        models=_A100,
        behaviour="memory_bound",
        resource="nvidia.com/mig-2g.10gb",
        cpu_milli=4_000,
        priority_class="production",
    ),
    Story(
        name="slice-forgotten",
        tenant="vision",
        workload_class=DEVELOPMENT,
        models=_A100,
        behaviour="idle",
        resource="nvidia.com/mig-1g.5gb",
        cpu_milli=2_000,
        runtime_ratio=0.75,
    ),
    Story(
        name="slice-training",
        tenant="research",
        workload_class=TRAINING,
        models=_A100,
        behaviour="training",
        resource="nvidia.com/mig-3g.20gb",
        cpu_milli=8_000,
        runtime_ratio=0.6,
    ),
    Story(
        name="course",
        tenant="speech",
        workload_class=DEVELOPMENT,
        models=_T4,
        behaviour="notebook",
        resource=SHARED_GPU,
        copies=6,
        cpu_milli=2_000,
        memory_gib=8,
        runtime_ratio=0.95,
    ),
    Story(  # more GPUs than the fleet has of this model: waits, then is given up
        name="too-large",
        tenant="research",
        workload_class=TRAINING,
        models=_H100,
        behaviour="training",
        exceeds_fleet=True,
        slots_per_pod=8,
        cpu_milli=96_000,
        created_ratio=0.3,
        patience_s=20 * _H,
    ),
    Story(  # still waiting when the period ends
        name="still-waiting",
        tenant="vision",
        workload_class=TRAINING,
        models=_A100,
        behaviour="training",
        exceeds_fleet=True,
        slots_per_pod=8,
        cpu_milli=96_000,
        created_ratio=0.8,
    ),
)


def story_requests(fleet: Fleet, *, seed: int, duration_s: int) -> list[Request]:
    """Return the planted requests of a fleet, numbered from 0."""
    requests: list[Request] = []
    for story in STORIES:
        nodes = sum(node.shape.model.name in story.models for node in fleet.nodes)
        for ordinal in range(story.copies):
            request = _request(
                story, ordinal, index=len(requests), seed=seed, duration_s=duration_s
            )
            pod_count = nodes + 1 if story.exceeds_fleet else 1
            requests.append(replace(request, pod_count=pod_count))
    return requests


def _request(story: Story, ordinal: int, *, index: int, seed: int, duration_s: int) -> Request:
    is_endless = story.runtime_ratio is None
    return Request(
        index=index,
        uid=request_uid(seed=seed, index=index),
        name=f"{story.name}-{ordinal}" if story.copies > 1 else story.name,
        tenant=story.tenant,
        owner=f"{story.tenant}-user-{index % 6}",
        workload_class=story.workload_class,
        priority_class=story.priority_class,
        created_s=int(story.created_ratio * duration_s) + 30 + 7 * index,
        runtime_s=FOREVER_S if is_endless else int((story.runtime_ratio or 0) * duration_s),
        patience_s=story.patience_s,
        pod_count=1,
        resource=story.resource,
        slots_per_pod=story.slots_per_pod,
        cpu_milli=story.cpu_milli,
        memory_bytes=story.memory_gib * GIB_BYTES,
        models=story.models,
        behaviour=story.behaviour,
        outcome="Succeeded",
    )
