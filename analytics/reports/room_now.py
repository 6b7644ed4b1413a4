"""Room at the end of a period from stored rows: stranded time, what fits, what a few moves free."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from analytics.defragmentation import SLOT_GPUS, hint
from analytics.inputs import conform
from analytics.inventory import current_devices, current_instances
from analytics.mig_geometry import partitioned_boards
from analytics.movable import movable
from analytics.placement import alternatives, fit
from analytics.reports import leaf_cost, room
from analytics.reports.model import Figure, Table
from analytics.reports.shape import column, figure, table
from analytics.request import request_from, text_of
from analytics.rooms import node_rooms
from analytics.segments import Inputs
from analytics.usage import gpu_hours, leaf, share
from steward.period import Period

_LEDGER, _STANDING, _PLACES, _DEVICES = (
    "ledger",
    "workload_standing",
    "node_place",
    "device_history",
)
Frames = Mapping[str, pl.DataFrame]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of a report."""

    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()


def stranded(frames: Frames, period: Period) -> Part:
    """Return the GPU-hours that no expected work could use in the period, by reason, with money."""
    ledger = conform(_LEDGER, frames[_LEDGER])
    charged = leaf_cost.with_prices(ledger, frames, period)
    frame = _stranded_by_reason(charged)
    columns = (
        column("reason", "Reason", "text"),
        column("gpu_hours", "Stranded", "GPU-hours"),
        column("share_ratio", "Share of capacity", "ratio"),
        column("cost", "Cost", "currency", "a dash: no price was in force"),
        column("currency", "Currency", "text"),
        column("priced_ratio", "Priced", "ratio", "of these GPU-hours: the cost is of that part"),
    )
    ticks = charged.select(gpu_hours(leaf("stranded").sum())).item()
    told = figure(
        "stranded_gpu_hours", "Stranded", value=None if ledger.is_empty() else float(ticks),
        unit="GPU-hours", rows=_LEDGER,
        definition="Free device-time that no expected shape could use, over the whole period.",
    )  # fmt: skip
    shown = table(
        "stranded", "Stranded over the period", frame=frame, columns=columns, rows=_LEDGER
    )
    return Part(figures=(told,), tables=(shown,))


def _stranded_by_reason(charged: pl.DataFrame) -> pl.DataFrame:
    """Return stranded device-time by reason and currency, with the part that has a price."""
    ticks, wall = pl.col("ticks"), pl.lit(charged["wall_ticks"].cast(pl.Int128).sum())
    lost = charged.filter(pl.col("stranded_ticks") > 0)
    stranded_ticks = leaf("stranded")
    by_reason = (
        lost.group_by("reason")
        .agg(
            stranded_ticks.sum().alias("ticks"),
            stranded_ticks.filter(pl.col("currency").is_not_null()).sum().alias("priced_ticks"),
        )
        .with_columns(
            gpu_hours=gpu_hours(ticks),
            share_ratio=share(ticks, wall),
            priced_ratio=share(pl.col("priced_ticks"), ticks),
        )
        .sort("reason", nulls_last=True)
    )
    costs = leaf_cost.printed_by(lost, "stranded_parts", ["reason"])
    return by_reason.join(costs, on="reason", how="left", nulls_equal=True, maintain_order="left")


def fits(frames: Frames, inputs: Inputs, period: Period, *, text: str | None) -> Part:
    """Return what of a request would fit now; nothing where none is asked for.

    Raises:
        UsageError: the text is no request.
    """
    if text is None:
        return Part()
    asked = request_from(text)
    rooms = node_rooms(
        inputs,
        standing=conform(_STANDING, frames[_STANDING]),
        places=conform(_PLACES, frames[_PLACES]),
        period=period,
    )
    found = fit(rooms, asked)
    counts = [
        figure(
            "fits_worker_count", "Would fit now", value=found.worker_count, unit="count",
            definition=f"Workers of {text_of(asked)} that free capacity takes.", rows=_DEVICES,
        )
    ]  # fmt: skip
    if asked.mig_profile is not None:
        counts.append(
            figure(
                "fits_at_most_worker_count", "At most", value=found.at_most_count, unit="count",
                definition="The same if MIG instances lie as well as they may on their boards.",
                rows=_DEVICES,
            )
        )  # fmt: skip
    return Part(figures=tuple(counts), tables=room.fit_tables(found, alternatives(rooms, asked)))


def places(frames: Frames, free: pl.DataFrame) -> tuple[Table, ...]:
    """Return room by rack and NVLink domain, and quota that is not there in whole nodes."""
    told = conform(_PLACES, frames[_PLACES]).drop("memory_bytes")
    placed = free.join(told, on=["cluster", "node"], how="left", maintain_order="left")
    quota = conform("quota_use", frames["quota_use"])
    latest = quota.sort("observed_at").unique(
        ["cluster", "queue", "gpu_model"], keep="last", maintain_order=True
    )
    return (
        room.places_table(placed),
        room.topology_table(placed),
        room.cells_table(free, latest),
    )


def mig(frames: Frames, inputs: Inputs) -> tuple[Table, ...]:
    """Return room on MIG boards; nothing where no board is cut."""
    homes = current_devices(inputs.devices, inputs.nodes)
    cut = current_instances(inputs.devices)
    instances = cut.join(homes, on="device_uuid", how="semi", maintain_order="left")
    models = instances.join(
        homes.select("device_uuid", "model"), on="device_uuid", how="left", maintain_order="left"
    )
    readings = conform("latest_device_sample", frames["latest_device_sample"])
    present = homes.filter("is_present")
    return room.mig_tables(partitioned_boards(instances, present), models, readings)


def moves(frames: Frames, inputs: Inputs, period: Period) -> Part:
    """Return the few moves that would free the most room for large workers."""
    found = movable(
        inputs,
        standing=conform(_STANDING, frames[_STANDING]),
        places=conform(_PLACES, frames[_PLACES]),
        period=period,
    )
    best = hint(found.fleet, found.workloads)
    gain = figure(
        "moves_gain_slot_count", "Slots a few moves would free", value=best.gain_count,
        unit="count", rows=_STANDING,
        definition=f"Slots for {SLOT_GPUS} GPUs won by the {len(best.moves)} moves listed.",
    )  # fmt: skip
    return Part(
        figures=(gain,), tables=(room.moves_table(best, left_out_count=found.left_out_count),)
    )
