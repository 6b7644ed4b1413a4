"""One simulated world: the hardware, what was asked of it, what broke and what happened."""

from __future__ import annotations

from dataclasses import dataclass

from collector.sources.simulated.arrivals import background_requests
from collector.sources.simulated.faults import FaultPlan, plan_faults
from collector.sources.simulated.fleet import Fleet, build_fleet
from collector.sources.simulated.history import History
from collector.sources.simulated.parameters import SimulationParameters
from collector.sources.simulated.requests import Request
from collector.sources.simulated.scheduler import schedule
from collector.sources.simulated.stories import story_requests


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Everything that the rows are drawn from."""

    parameters: SimulationParameters
    fleet: Fleet
    requests: tuple[Request, ...]
    faults: FaultPlan
    history: History

    @property
    def from_epoch_s(self) -> int:
        """Return the first instant in seconds since 1970."""
        return int(self.parameters.from_at.timestamp())


def build_world(parameters: SimulationParameters) -> World:
    """Return the world that these parameters, and no others, lead to."""
    seed, duration_s = parameters.seed, parameters.duration_s
    fleet = build_fleet(seed=seed, node_count=parameters.node_count)
    planted = story_requests(fleet, seed=seed, duration_s=duration_s)
    background = background_requests(
        fleet,
        seed=seed,
        duration_s=duration_s,
        from_epoch_s=int(parameters.from_at.timestamp()),
        first_index=len(planted),
    )
    faults = plan_faults(fleet, seed=seed, duration_s=duration_s)
    requests = tuple(planted + background)
    history = schedule(fleet, requests, faults, duration_s=duration_s)
    return World(
        parameters=parameters, fleet=fleet, requests=requests, faults=faults, history=history
    )
