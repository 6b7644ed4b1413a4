"""The simulated rows as batches, day after day, each under an id that never changes."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from collector.batches import Batch, derived_batch_id
from collector.sources.simulated.inventory import Inventory
from collector.sources.simulated.lifecycle import Lifecycle
from collector.sources.simulated.loads import Ticks
from collector.sources.simulated.parameters import SimulationParameters
from collector.sources.simulated.samples import Exporters
from collector.sources.simulated.world import World, build_world
from steward.units import SECONDS_PER_DAY


def simulated_batches(parameters: SimulationParameters) -> Iterator[Batch]:
    """Yield the rows of one simulated fleet, a day at a time, in order of time.

    Same parameters, same rows and ids, byte for byte; empty tables are left out.
    """
    world = build_world(parameters)
    identity = parameters.identity()
    inventory, lifecycle, exporters = Inventory(world), Lifecycle(world), Exporters(world)
    for from_s in range(0, parameters.duration_s, SECONDS_PER_DAY):
        until_s = from_s + SECONDS_PER_DAY
        for table, rows in (
            *inventory.tables(from_s, until_s),
            *lifecycle.tables(from_s, until_s),
            *_telemetry(exporters, world, from_s=from_s, until_s=until_s),
        ):
            if rows.num_rows > 0:
                batch_id = derived_batch_id("simulated", identity, table, str(from_s))
                yield Batch(table=table, rows=rows, batch_id=batch_id)


def _telemetry(
    exporters: Exporters, world: World, *, from_s: int, until_s: int
) -> Iterator[tuple[str, pa.Table]]:
    cadence_s = world.parameters.cadence_s
    first = -(-from_s // cadence_s)
    last = -(-until_s // cadence_s)
    ticks = Ticks(
        from_s=first * cadence_s,
        cadence_s=cadence_s,
        count=last - first,
        from_epoch_s=world.from_epoch_s,
    )
    stretch = exporters.scrape(ticks)
    yield "scrape", stretch.scrapes
    yield "device_sample", stretch.samples
