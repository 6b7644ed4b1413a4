"""One waiting job, and the room and quota of its cluster, as the words about it need them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from math import ceil

from analytics.queue.free import WHOLE, offers_for
from analytics.queue.quotas import Quota, Quotas
from analytics.queue.rooms import Room
from steward.units import GPU_MILLI


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """The last that was said of it."""

    source: str
    at: datetime
    reason: str
    message: str | None

    def words(self) -> str:
        """Return the reason with its message, as it was said."""
        return f"{self.reason}: {self.message}" if self.message else self.reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A job that waits at the period's end."""

    attempt_id: int
    cluster: str
    workload_uid: str
    queue: str | None
    models: tuple[str, ...]
    """Empty: any."""
    gpu_count: int | None
    gpu_milli: int | None
    cpu_milli: int | None
    memory_bytes: int | None
    worker_gpu_count: int | None
    """GPUs of one worker; None: not known."""
    wait_class: str
    said: Said | None

    @property
    def gpus(self) -> float:
        """Return the physical GPUs that it needs together; parts count as parts."""
        milli = GPU_MILLI if self.gpu_milli is None else self.gpu_milli
        return (self.gpu_count or 0) * milli / GPU_MILLI

    @property
    def is_whole(self) -> bool:
        """Return whether it asks for whole GPUs."""
        return offers_for(self.gpu_milli) == (WHOLE,)

    def accepts(self, model: str | None) -> bool:
        """Return whether it may run on this model."""
        return not self.models or model in self.models


@dataclass(frozen=True, slots=True, kw_only=True)
class Gang:
    """A job in workers that each need one node."""

    workers: int
    gpu_count: int
    """Whole GPUs of one worker."""
    cpu_milli: float
    memory_bytes: float

    def slots(self, rooms: list[Room]) -> int:
        """Return how many workers fit now."""
        return sum(
            room.slots(self.gpu_count, cpu_milli=self.cpu_milli, memory_bytes=self.memory_bytes)
            for room in rooms
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Resting:
    """A workload that holds GPUs which do nothing, at the period's end."""

    cluster: str
    workload_uid: str
    name: str
    queue: str | None
    node: str
    model: str | None
    gpu_count: int
    """Whole boards at rest on this node."""
    rest_s: float
    """Since the youngest of these rests began."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What there is at the period's end."""

    rooms: tuple[Room, ...]
    quotas: Quotas
    resting: tuple[Resting, ...]
    has_holders: bool
    """Whether any holder of a GPU is recorded; if not, nothing can be called free."""

    def of(self, cluster: str) -> list[Room]:
        """Return the nodes of a cluster."""
        return [room for room in self.rooms if room.cluster == cluster]

    def accepted(self, ask: Ask) -> dict[str | None, list[Room]]:
        """Return the nodes that a job may run on, by model; all together where it names none."""
        found: dict[str | None, list[Room]] = {model: [] for model in ask.models}
        for room in self.of(ask.cluster):
            if ask.accepts(room.model):
                found.setdefault(room.model if ask.models else None, []).append(room)
        return found

    def quotas_of(self, ask: Ask) -> list[Quota]:
        """Return the quotas of a job's queue for models that it accepts."""
        own = self.quotas.of(ask.cluster, ask.queue)
        named = [each for each in own if each.gpu_model is not None and ask.accepts(each.gpu_model)]
        return named or [each for each in own if each.gpu_model is None]


def gang_of(ask: Ask, rooms: list[Room]) -> Gang | None:
    """Return how the job is divided; None where that is not known.

    A job of unknown workers is one worker if a node of the model could hold all of it.
    """
    if not ask.gpu_count or not ask.is_whole:
        return None
    largest = max((room.whole_count for room in rooms), default=0)
    size = ask.worker_gpu_count or (ask.gpu_count if ask.gpu_count <= largest else None)
    if size is None:
        return None
    workers = ceil(ask.gpu_count / size)
    return Gang(
        workers=workers,
        gpu_count=size,
        cpu_milli=(ask.cpu_milli or 0) / workers,
        memory_bytes=(ask.memory_bytes or 0) / workers,
    )
