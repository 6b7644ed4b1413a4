"""The work of ``steward import``: source to batches to warehouse, told to a person."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from collector.batches import Batch
from collector.import_progress import progress, summary
from collector.imports import refuse_other_identity, store, stored_identities
from collector.sources import replay
from collector.sources.saved_texts import read_saved_texts
from collector.sources.simulated import SimulationParameters, simulated_batches
from collector.sources.simulated.inventory import IDENTITY_LABEL, SOURCE
from sql.access import open_warehouse
from steward.command import Context
from steward.output import write_output
from steward.ports import Warehouse


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is imported, and how its progress is counted."""

    title: str
    batches: Iterable[Batch]
    step_count: int
    unit: str
    ends_step: Callable[[Batch], bool]
    """Tells whether a batch is the last of its step."""


def import_simulated(
    context: Context,
    *,
    until_at: datetime | None,
    days: int,
    seed: int,
    node_count: int,
    cadence_s: int,
) -> int:
    """Store a simulated fleet.

    Raises:
        UsageError: a value cannot be simulated.
        InputError: the warehouse holds another simulated fleet.
        WarehouseError: the warehouse cannot serve.
    """
    today = context.clock.now().astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    asked = SimulationParameters(
        until_at=today if until_at is None else until_at,
        seed=seed,
        days=days,
        node_count=node_count,
        cadence_s=cadence_s,
        cluster=context.settings.cluster,
    )
    with open_warehouse(context.settings) as warehouse:
        earlier = stored_identities(
            warehouse, source=SOURCE, label=IDENTITY_LABEL, cluster=asked.cluster
        )
        parameters = _continued(asked, earlier) if until_at is None else asked
        refuse_other_identity(earlier, parameters.identity(), what="simulated fleet")
        plan = Plan(
            title=f"a simulated fleet of {node_count} nodes, seed {seed}, {parameters.period}",
            batches=simulated_batches(parameters),
            step_count=days,
            unit="days",
            ends_step=lambda batch: batch.table == "device_sample",
        )
        _carry_out(plan, warehouse)
    return 0


def _continued(asked: SimulationParameters, earlier: Sequence[str]) -> SimulationParameters:
    """Return the parameters with the end of an earlier import that differs in nothing else.

    Without ``--until`` the same command means the same fleet tomorrow as well.
    """
    for identity in earlier:
        candidate = replace(
            asked, until_at=datetime.fromisoformat(json.loads(identity)["until_at"])
        )
        if candidate.identity() == identity:
            return candidate
    return asked


def import_openb(context: Context, *, nodes: Path, pods: Path, starts_at: datetime | None) -> int:
    """Store the openb trace.

    Raises:
        InputError: a file is not what it should be, or the warehouse holds another openb trace.
        WarehouseError: the warehouse cannot serve.
    """
    cluster = context.settings.cluster
    trace = replay.read_openb(
        nodes=nodes, pods=pods, cluster=cluster, starts_at=starts_at or replay.DEFAULT_START
    )
    batches = list(trace.batches())
    with open_warehouse(context.settings) as warehouse:
        earlier = stored_identities(
            warehouse, source=replay.SOURCE, label=replay.IDENTITY_LABEL, cluster=cluster
        )
        refuse_other_identity(earlier, trace.identity(), what="openb trace")
        title = f"openb: {len(trace.nodes):,} nodes, {len(trace.pods):,} pods"
        _carry_out(_by_batch(title, batches), warehouse)
    return 0


def import_exposition(
    context: Context, *, files: Sequence[Path], at: datetime | None, target: str | None
) -> int:
    """Store saved exporter texts; all are read before any is stored.

    Raises:
        InputError: a file cannot be read or is no exposition.
        WarehouseError: the warehouse cannot serve.
    """
    batches = read_saved_texts(files, at=at, target=target, cluster=context.settings.cluster)
    noun = "exporter text" if len(files) == 1 else "exporter texts"
    with open_warehouse(context.settings) as warehouse:
        _carry_out(_by_batch(f"{len(files):,} {noun}", batches), warehouse)
    return 0


def _by_batch(title: str, batches: Sequence[Batch]) -> Plan:
    return Plan(
        title=title,
        batches=batches,
        step_count=len(batches),
        unit="batches",
        ends_step=lambda _: True,
    )


def _carry_out(plan: Plan, warehouse: Warehouse) -> None:
    with progress(plan.title, step_count=plan.step_count, unit=plan.unit) as advance:

        def on_batch(batch: Batch) -> None:
            if plan.ends_step(batch):
                advance()

        tally = store(warehouse, plan.batches, on_batch=on_batch)
    write_output(None, summary(plan.title, tally))
