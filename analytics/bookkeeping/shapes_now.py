"""When a free device could be given to something that people ask for: otherwise it is stranded.

Between two changes on a node everything is constant: what is free on each device, and the node's
free processors and memory. A free device is usable while a shape of the target workload fits its
node and may include it.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from analytics.bookkeeping.material import Material
from analytics.bookkeeping.node_room import node_room
from analytics.bookkeeping.pieces import PARTS, Pieces
from analytics.lifetimes import DEVICE
from analytics.shapes import target_workload
from steward.units import GPU_MILLI

NODE: Final = ("cluster", "node")
ROUNDING_PARTS: Final = 5
"""One milli-GPU: 3/7 of a board asked for as 429 milli fits an instance of 3/7."""
_NEVER: Final = 2 * PARTS
"""More than any device has."""
_MAKERS: Final = r"(^|\|)(nvidia|amd|instinct|tesla)+"
_SHARED: Final = r"shared(\||$)"


def model_key(model: pl.Expr) -> pl.Expr:
    """Return a model's name without maker, case and punctuation: flavors and labels differ."""
    plain = model.str.to_lowercase().str.replace_all("[^a-z0-9|]", "")
    return plain.str.replace_all(_MAKERS, "${1}").str.replace_all(_SHARED, "${1}")


def learnt_shapes(workloads: pl.DataFrame) -> pl.DataFrame:
    """Return ``target_workload`` with memory_bytes, the least that a request of the shape named."""
    milli = pl.col("gpu_milli").fill_null(GPU_MILLI)
    shape = ["cpu_milli", "gpu_milli", "gpu_count", "gpu_models"]
    memory = (
        workloads.with_columns(gpu_milli=milli, gpu_models=pl.col("gpu_models").fill_null(""))
        .group_by(shape)
        .agg(pl.col("memory_bytes").min())
    )
    return target_workload(workloads).join(memory, on=shape, how="left", maintain_order="left")


def usable_spans(
    free: pl.DataFrame, cut_up: Pieces, *, stock: Material, shapes: pl.DataFrame
) -> pl.DataFrame:
    """Return when each healthy free slice could be used.

    Args:
        free: rows of ``free.free_slices`` without a reason.
        cut_up: who holds what.
        stock: nodes, devices, and what workloads asked for.
        shapes: rows of ``shapes.target_workload``, with memory_bytes where it is known. Those
            without GPUs say nothing here; without any, nothing is stranded.

    Returns:
        one row per slice and unbroken span, ascending
            slice_id, usable_start_us, usable_end_us
        What is unknown (processors, memory, model) does not strand.
    """
    whole = free.select("slice_id", usable_start_us="start_us", usable_end_us="end_us")
    wanted = _distinct_needs(shapes, stock.devices)
    if wanted.is_empty() or free.is_empty():
        return whole
    rows = free.select(
        "slice_id", *NODE, "start_us", "end_us", "free_parts", model_key=model_key(pl.col("model"))
    )
    steps = node_room(rows, cut_up, stock)
    parts = _per_step(rows, steps)
    ladder = parts.group_by("step_id", "model_key").agg(
        ladder=pl.col("free_parts").sort(descending=True)
    )
    states = ladder.join(steps, on="step_id").with_columns(least=_least_parts(wanted))
    fit = parts.join(
        states.select("step_id", "model_key", "least"),
        on=["step_id", "model_key"],
        nulls_equal=True,
    ).filter(pl.col("free_parts") >= pl.col("least"))
    return _unbroken(fit)


def _distinct_needs(shapes: pl.DataFrame, devices: pl.DataFrame) -> pl.DataFrame:
    """Return the shapes with GPUs that no other shape makes needless, in parts of a board.

    A gang larger than the largest node stands for workers of that node's size.
    """
    largest = devices.group_by(NODE).agg(count=pl.col(DEVICE).n_unique())["count"].max()
    most = pl.lit(int(str(largest or 1)), dtype=pl.Int64)
    count = pl.min_horizontal("gpu_count", most)
    memory = pl.col("memory_bytes") if "memory_bytes" in shapes.columns else pl.lit(None)
    asked = (pl.col("gpu_milli") * PARTS) // GPU_MILLI - ROUNDING_PARTS
    needs = shapes.filter((pl.col("gpu_count") > 0) & (pl.col("gpu_milli") > 0)).select(
        cpu_milli=pl.col("cpu_milli") * count // pl.col("gpu_count"),
        memory_bytes=memory.cast(pl.Int64).fill_null(0) * count // pl.col("gpu_count"),
        count=count,
        parts=asked.clip(1, PARTS),
        models=model_key(pl.col("gpu_models").fill_null("")),
    )
    return _without_harder(needs.unique().sort(pl.all()))


def _without_harder(needs: pl.DataFrame) -> pl.DataFrame:
    """Drop shapes that fit only where another one with the same models fits too."""
    amounts = ("cpu_milli", "memory_bytes", "count", "parts")
    numbered = needs.with_row_index("need_id")
    pairs = numbered.join(numbered, how="cross", suffix="_easier")
    easier = (
        (pl.col("need_id") != pl.col("need_id_easier"))
        & ((pl.col("models") == pl.col("models_easier")) | (pl.col("models_easier") == ""))
        & pl.all_horizontal(pl.col(name) >= pl.col(f"{name}_easier") for name in amounts)
    )
    harder = pairs.filter(easier).select("need_id").unique()
    return numbered.join(harder, on="need_id", how="anti").drop("need_id").sort(pl.all())


def _per_step(rows: pl.DataFrame, steps: pl.DataFrame) -> pl.DataFrame:
    """Return one row per slice and step of its node that it lasts through."""
    numbers = steps.select(*NODE, "step_id", "start_us", step_end_us="end_us")
    first = numbers.select(*NODE, "start_us", first_id="step_id")
    last = numbers.select(*NODE, end_us="step_end_us", last_id="step_id")
    spread = (
        rows.join(first, on=[*NODE, "start_us"])
        .join(last, on=[*NODE, "end_us"])
        .with_columns(step_id=pl.int_ranges("first_id", pl.col("last_id") + 1, dtype=pl.Int64))
        .drop("start_us", "end_us", "first_id", "last_id", *NODE)
        .explode("step_id")
    )
    bounds = steps.select("step_id", "start_us", "end_us")
    return spread.join(bounds, on="step_id")


def _least_parts(needs: pl.DataFrame) -> pl.Expr:
    """Return the fewest free parts with which a device is of use to a shape that fits now."""
    least: list[pl.Expr] = []
    for need in needs.iter_rows(named=True):
        models = pl.lit(need["models"].split("|"), dtype=pl.List(pl.String))
        is_model = (
            pl.lit(value=True)
            if need["models"] == ""
            else pl.col("model_key").is_in(models).fill_null(value=True)
        )
        at = pl.col("ladder").list.get(need["count"] - 1, null_on_oob=True)
        fits = (
            is_model
            & (at >= need["parts"]).fill_null(value=False)
            & (pl.col("cpu_free_milli") >= need["cpu_milli"]).fill_null(value=True)
            & (pl.col("memory_free_bytes") >= need["memory_bytes"]).fill_null(value=True)
        )
        least.append(pl.when(fits).then(need["parts"]).otherwise(_NEVER))
    return pl.min_horizontal(*least)


def _unbroken(fit: pl.DataFrame) -> pl.DataFrame:
    is_new = (pl.col("slice_id") != pl.col("slice_id").shift(1)) | (
        pl.col("start_us") != pl.col("end_us").shift(1)
    )
    return (
        fit.select("slice_id", "start_us", "end_us")
        .sort("slice_id", "start_us")
        .with_columns(run_id=is_new.fill_null(value=True).cum_sum())
        .group_by("run_id")
        .agg(
            pl.col("slice_id").first(),
            usable_start_us=pl.col("start_us").first(),
            usable_end_us=pl.col("end_us").last(),
        )
        .drop("run_id")
        .sort("slice_id", "usable_start_us")
    )
