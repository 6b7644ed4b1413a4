"""What the scheduler did: runs, lifecycle transitions, complaints and quota readings."""

from __future__ import annotations

from dataclasses import dataclass, field

from collector.sources.simulated.requests import Request


@dataclass(frozen=True, slots=True, kw_only=True)
class PodPlacement:
    """One pod on one node with the slots it holds."""

    node_index: int
    slot_indices: tuple[int, ...]


@dataclass(slots=True, kw_only=True, eq=False)
class Run:
    """One attempt that was placed; open until it ends."""

    request: Request
    attempt: int
    model: str
    pods: tuple[PodPlacement, ...]
    scheduled_s: int
    started_s: int
    remaining_s: int
    ended_s: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """One step in the life of a request."""

    at_s: int
    request: Request
    attempt: int
    transition: str
    reason: str | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Complaint:
    """Why a request could not start, as the cluster says it."""

    at_s: int
    request: Request
    attempt: int
    reason: str
    message: str
    occurrence_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaReading:
    """One tenant's quota of one GPU model at one instant."""

    at_s: int
    tenant: str
    model: str
    guaranteed_gpu_count: float
    limit_gpu_count: float
    used_gpu_count: float
    pending_count: int


@dataclass(slots=True, kw_only=True)
class History:
    """Everything that happened, each list in order of time once the simulation is over."""

    runs: list[Run] = field(default_factory=list)
    transitions: list[Transition] = field(default_factory=list)
    complaints: list[Complaint] = field(default_factory=list)
    quota_readings: list[QuotaReading] = field(default_factory=list)

    def sort(self) -> None:
        """Put each list in order of time; what shares a second stays in order of cause."""
        self.runs.sort(key=lambda run: run.scheduled_s)
        self.transitions.sort(key=lambda each: each.at_s)
        self.complaints.sort(key=lambda each: each.at_s)
        self.quota_readings.sort(key=lambda each: each.at_s)
