"""How many GPUs were free at each moment, by model: from lives of devices and who held them.

Shares are counted in whole units, 5,040 of which are one GPU, so that sevenths and tenths add up
exactly. A board is offered whole, as MIG instances, or shared: work that asks for a whole GPU has
no room on the other two, however little of them is held.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import polars as pl

from analytics.inputs import conform
from analytics.intervals import bounds, micros
from analytics.inventory import known_devices
from analytics.segments import Inputs
from steward.period import Period
from steward.units import GPU_MILLI, TICKS_PER_MICROSECOND

GPU_UNITS: Final = TICKS_PER_MICROSECOND
"""Units in one GPU."""
INPUTS: Final = (
    "node_history",
    "device_history",
    "device_event_history",
    "allocation_history",
)
"""The queries behind ``free_boards``."""
_BOARD: Final = ("cluster", "device_uuid")
_ID: Final = "board_id"
_PART: Final = "part_id"
_SHARED: Final = ("shared_equal", "shared_measured")
"""Sharing modes of holders that have a board together."""
WHOLE: Final = "whole"
MIG: Final = "mig"
SHARED: Final = "shared"
_SEVENTHS_MILLI: Final = (143, 286, 429, 571, 714, 857)
"""Thousandths of a GPU, rounded, that MIG profiles of 1 to 6 slices are asked for as."""


def offers_for(gpu_milli: int | None) -> tuple[str, ...]:
    """Return which boards serve work that asks for this much of each GPU; None is a whole one."""
    if gpu_milli is None or gpu_milli >= GPU_MILLI:
        return (WHOLE,)
    return (MIG,) if gpu_milli in _SEVENTHS_MILLI else (WHOLE, SHARED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Free:
    """What was free when."""

    boards: pl.DataFrame
    """One row per board, ascending: board_id u32, cluster, device_uuid, node, model str | null,
    offer str, units i64 (of a MIG board those of its instances: slices left over serve nobody)."""
    changes: pl.DataFrame
    """One row per board and change, ascending: board_id, cluster, device_uuid, at_us i64, is_usable
    bool (present, not lost, on a node that takes work), free_units i64 (0 where not usable). The
    first is at the period's start or the board's first sight."""
    has_holders: bool
    """Whether any holder is recorded; if not, nothing can be called free."""


def free_boards(frames: Mapping[str, pl.DataFrame], period: Period) -> Free:
    """Return what was free in the period.

    Args:
        frames: the stored rows of ``INPUTS``.
        period: changes are clipped to it.
    """
    inputs = Inputs(
        **{
            name: conform(query, frames[query])
            for name, query in zip(
                ("nodes", "devices", "events", "allocations"), INPUTS, strict=True
            )
        }
    )
    return free_of(inputs, period)


def free_of(inputs: Inputs, period: Period) -> Free:
    """Return what was free in the period, from conformed rows of ``INPUTS``."""
    nodes, devices, held = inputs.nodes, inputs.devices, inputs.allocations
    boards = _boards(devices, nodes, held)
    signs = pl.concat(
        [
            _first_signs(boards, devices),
            _loss_signs(devices, inputs.events),
            _cordon_signs(boards, nodes),
            _hold_signs(held, period),
        ],
        how="diagonal",
    )
    return Free(
        boards=boards.drop("born_us"),
        changes=_levels(signs.join(boards.select(_ID, *_BOARD, "units"), on=_BOARD), period)
        .join(boards.select(_ID, *_BOARD), on=_ID, maintain_order="left")
        .select(_ID, *_BOARD, "at_us", "is_usable", "free_units"),
        has_holders=held["unheld_reason"].null_count() > 0,
    )


def _boards(devices: pl.DataFrame, nodes: pl.DataFrame, held: pl.DataFrame) -> pl.DataFrame:
    shared = held.filter(pl.col("sharing_mode").is_in(_SHARED)).select(_BOARD).unique()
    born = devices.group_by(_BOARD).agg(born_us=micros(pl.col("observed_at").min()))
    offer = pl.when(pl.col("mig_units").is_not_null()).then(pl.lit(MIG))
    offered = offer.when("is_shared").then(pl.lit(SHARED)).otherwise(pl.lit(WHOLE))
    return (
        known_devices(devices, nodes)
        .join(_instances(devices), on=_BOARD, how="left")
        .join(shared.with_columns(is_shared=pl.lit(value=True)), on=_BOARD, how="left")
        .join(born, on=_BOARD, how="left")
        .select(
            *_BOARD,
            "node",
            "model",
            "born_us",
            offer=offered,
            units=pl.col("mig_units").fill_null(GPU_UNITS),
        )
        .sort(_BOARD)
        .with_row_index(_ID)
    )


def _instances(devices: pl.DataFrame) -> pl.DataFrame:
    """Return the units in each board's instances; a share that is not known makes it a whole."""
    present = (
        devices.filter(pl.col("instance_id").is_not_null())
        .sort("observed_at")
        .unique([*_BOARD, "instance_id"], keep="last")
        .filter("is_present")
    )
    units = (pl.col("sm_share_ratio") * GPU_UNITS).round().cast(pl.Int64)
    return present.group_by(_BOARD).agg(
        mig_units=pl.when(units.is_not_null().all()).then(units.sum()).otherwise(GPU_UNITS)
    )


def _first_signs(boards: pl.DataFrame, devices: pl.DataFrame) -> pl.DataFrame:
    """Begin each board present, held by nobody, on a node that takes work."""
    return boards.join(devices.select(_BOARD).unique(), on=_BOARD, how="semi").select(
        *_BOARD,
        at_us="born_us",
        order=pl.lit(0),
        is_lost=pl.lit(value=False),
        is_cordoned=pl.lit(value=False),
        held_units=pl.lit(0, dtype=pl.Int64),
    )


def _loss_signs(devices: pl.DataFrame, stored: pl.DataFrame) -> pl.DataFrame:
    events = stored.filter(pl.col("kind").is_in(["lost", "returned"]))
    homes = devices.select("cluster", "node", "device_uuid").unique()
    told = events.select("node", "device_uuid", "occurred_at", "kind").join(
        homes, on=["node", "device_uuid"]
    )
    return pl.concat(
        [
            devices.filter(pl.col("instance_id").is_null()).select(
                *_BOARD, at_us=micros(pl.col("observed_at")), is_lost=~pl.col("is_present")
            ),
            told.select(
                *_BOARD, at_us=micros(pl.col("occurred_at")), is_lost=pl.col("kind") == "lost"
            ),
        ]
    ).with_columns(order=pl.lit(1))


def _cordon_signs(boards: pl.DataFrame, nodes: pl.DataFrame) -> pl.DataFrame:
    """Return when the nodes of boards took no work; not known counts as taking it."""
    states = nodes.select(
        "cluster",
        "node",
        at_us=micros(pl.col("observed_at")),
        is_cordoned=~pl.col("is_schedulable").fill_null(value=True),
    )
    homes = boards.select(*_BOARD, "node")
    changed = pl.col("is_cordoned") != pl.col("is_cordoned").shift(1, fill_value=False).over(
        "cluster", "node", order_by="at_us"
    )
    return (
        homes.join(states.filter(changed), on=["cluster", "node"])
        .drop("node")
        .with_columns(order=pl.lit(1))
    )


def _hold_signs(held: pl.DataFrame, period: Period) -> pl.DataFrame:
    """Return how holders come and go; a board that works for nobody known is not free either."""
    _, until_us = bounds(period)
    units = (pl.col("gpu_share_ratio") * GPU_UNITS).round().cast(pl.Int64)
    spans = held.select(
        *_BOARD,
        start_us=micros(pl.col("started_at")),
        end_us=micros(pl.col("ended_at")),
        held_units=units,
    )
    ends = spans.filter(pl.col("end_us") < until_us)
    return pl.concat(
        [
            spans.select(*_BOARD, "held_units", at_us="start_us"),
            ends.select(*_BOARD, held_units=-pl.col("held_units"), at_us="end_us"),
        ]
    ).with_columns(order=pl.lit(1))


def _levels(signs: pl.DataFrame, period: Period) -> pl.DataFrame:
    from_us, until_us = bounds(period)
    narrow = signs.drop(_BOARD).filter(pl.col("at_us") < until_us)
    timed = narrow.with_columns(told_us=pl.max_horizontal("at_us", _since_us()))
    ordered = timed.sort(_ID, "told_us", "order", "at_us", "is_lost")
    is_first = pl.col(_ID).ne_missing(pl.col(_ID).shift(1))
    held = pl.col("held_units").fill_null(0)
    others = pl.when(is_first).then(held.cum_sum() - held).forward_fill()
    free = pl.col("units") - (held.cum_sum() - others)
    usable = ~(pl.col("is_lost") | pl.col("is_cordoned"))
    at_us = pl.col("told_us").clip(lower_bound=from_us)
    return (
        ordered.with_columns(pl.col("is_lost", "is_cordoned").forward_fill().over(_ID))
        .select(
            _ID,
            at_us=at_us,
            is_usable=usable,
            free_units=pl.when(usable).then(free.clip(pl.lit(0), pl.col("units"))).otherwise(0),
        )
        .filter(_is_last(_ID, "at_us"))
    )


def _since_us() -> pl.Expr:
    """Return when each board was first seen: what is told of it before counts from then on."""
    is_first = pl.col("order") == pl.col("order").min().over(_ID)
    return pl.when(is_first).then("at_us").min().over(_ID)


def _is_last(*columns: str) -> pl.Expr:
    """Return whether the next row differs in one of these columns."""
    return pl.any_horizontal(pl.col(name).ne_missing(pl.col(name).shift(-1)) for name in columns)


def free_levels(free: Free, *keys: str) -> pl.DataFrame:
    """Return the free units over time.

    Args:
        free: of the period.
        keys: columns of its boards to add up by, after the cluster.

    Returns:
        one row per combination of cluster and keys and instant of change, ascending
            cluster, keys, at_us i64, free_units i64 (from this instant to the next row)
    """
    columns = ("cluster", *keys)
    parts = free.boards.select(columns).unique().sort(columns, nulls_last=True)
    numbered = parts.with_row_index(_PART)
    homes = free.boards.join(numbered, on=columns, nulls_equal=True).select(_ID, _PART)
    before = pl.col("free_units").shift(1, fill_value=0).over(_ID)
    return (
        free.changes.select(_ID, "at_us", change=pl.col("free_units") - before)
        .filter(pl.col("change") != 0)
        .join(homes, on=_ID)
        .group_by(_PART, "at_us")
        .agg(pl.col("change").sum())
        .sort(_PART, "at_us")
        .select(_PART, "at_us", free_units=pl.col("change").cum_sum().over(_PART))
        .join(numbered, on=_PART, maintain_order="left")
        .select(*columns, "at_us", "free_units")
    )


def free_at_end(free: Free) -> Free:
    """Return what was free when the period ended: the last change of each board."""
    last = free.changes.unique(_ID, keep="last", maintain_order=True)
    return Free(boards=free.boards, changes=last, has_holders=free.has_holders)
