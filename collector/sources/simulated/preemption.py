"""Whom to move aside for a production request: the fewest, least important, youngest runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from collector.sources.simulated.capacity import NodeFree
from collector.sources.simulated.history import Run
from collector.sources.simulated.requests import INFERENCE, Request


def cheapest_victims(
    request: Request, model: str, *, nodes: Sequence[NodeFree], running: Iterable[Run]
) -> list[Run]:
    """Return the runs to preempt so that a request of one pod fits on one node.

    Empty where no node can be cleared, and for gangs of several pods, which wait instead.
    """
    if request.pod_count > 1:
        return []
    by_node: dict[int, list[Run]] = {}
    for run in running:
        if _is_preemptible(run, request) and run.model == model:
            by_node.setdefault(run.pods[0].node_index, []).append(run)
    choices = [
        (len(victims), node_index, victims)
        for node_index, runs in sorted(by_node.items())
        if nodes[node_index].is_schedulable
        for victims in [_enough(request, nodes[node_index], runs)]
        if victims
    ]
    return min(choices, key=lambda choice: choice[:2])[2] if choices else []


def _is_preemptible(run: Run, request: Request) -> bool:
    other = run.request
    return (
        other.priority < request.priority
        and other.pod_count == 1
        and other.resource == request.resource
        and other.workload_class != INFERENCE
    )


def _enough(request: Request, free: NodeFree, runs: list[Run]) -> list[Run]:
    """Return the shortest prefix of the runs, least important first, that makes room."""
    trial = replace(free, slots={each: list(slots) for each, slots in free.slots.items()})
    victims: list[Run] = []
    for run in sorted(runs, key=lambda each: (each.request.priority, -each.scheduled_s)):
        victims.append(run)
        trial.cpu_milli += run.request.cpu_milli
        trial.memory_bytes += run.request.memory_bytes
        trial.slots.setdefault(request.resource, []).extend(run.pods[0].slot_indices)
        if trial.room_for(request) > 0:
            return victims
    return []
