"""Two weeks of a cluster with idle time planted in it: what is reclaimable, and what is regretted.

Five nodes work all the time, and so does part of the sixth. On it one job never works, one stops
working, one rests for a day and works again, one only pauses. Others wait for GPUs like these.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import polars as pl

from sql.warehouse import EmbeddedWarehouse
from steward.ids import BatchId
from tests.support.enforcer_world import HOUR, MINUTE, START, WORKING, World

DAYS: Final = 14
DAY: Final = timedelta(days=1)
END: Final = START + DAYS * DAY
EVERY: Final = 10 * MINUTE
STOPS_AT: Final = START + 5 * DAY
RESTS_FROM: Final = START + 8 * DAY
RESTS_UNTIL: Final = RESTS_FROM + 20 * HOUR
GPUS: Final = {"never": 2, "stops": 2, "rests": 1, "pauses": 1, "works": 2}
RECLAIMABLE_GPU_HOURS: Final = (
    2 * DAYS * 24 + 2 * ((END - STOPS_AT) / HOUR) + (RESTS_UNTIL - RESTS_FROM) / HOUR
)
"""Idle time of the three that are not used for longer than a pause."""
HELD_GPU_HOURS: Final = 48 * DAYS * 24
TAKEN: Final = ("never", "rests", "stops")
REGRETTED: Final = ("rests",)


def planted() -> World:
    """Return the cluster."""
    world = World()
    for number in range(1, 7):
        world.node(f"n{number}")
    for number in range(1, 6):
        _job(world, f"busy-{number}", node=f"n{number}", gpu_count=8)
    for uid, count in GPUS.items():
        _job(world, uid, node="n6", gpu_count=count)
    for number, count in enumerate((2, 2, 1)):
        world.workload(f"waits-{number}", gpu_count=count, gpu_models="H100", tenant_id="team-b")
    return world


def _job(world: World, uid: str, *, node: str, gpu_count: int) -> None:
    world.workload(uid, gpu_count=gpu_count, tenant_id=f"team-{uid}")
    for number in range(gpu_count):
        uuid = f"GPU-{uid}-{number}"
        world.gpu(uuid, node=node)
        world.holds(uuid, uid=uid, node=node, tenant_id=f"team-{uid}")
        for from_at, until_at, works in _life(uid):
            told = WORKING if works else {}
            world.reads(uuid, from_at=from_at, until_at=until_at, every=EVERY, node=node, **told)


def _life(uid: str) -> list[tuple[datetime, datetime, bool]]:
    if uid == "never":
        return [(START, END, False)]
    if uid == "stops":
        return [(START, STOPS_AT, True), (STOPS_AT, END, False)]
    if uid == "rests":
        rest = (RESTS_FROM, RESTS_UNTIL, False)
        return [(START, RESTS_FROM, True), rest, (RESTS_UNTIL, END, True)]
    if uid == "pauses":
        days = [START + number * DAY for number in range(DAYS)]
        pause = 90 * MINUTE
        return [
            piece
            for day in days
            for piece in ((day, day + pause, False), (day + pause, day + DAY, True))
        ]
    return [(START, END, True)]


def store(world: World, warehouse: EmbeddedWarehouse) -> None:
    """Append all rows of a world to a warehouse."""
    for table, rows in world._rows.items():
        frame = pl.DataFrame(rows, infer_schema_length=None)
        warehouse.append(table, frame.to_arrow(), batch_id=BatchId(f"planted-{table}"))
