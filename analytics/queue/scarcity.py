"""Placement or capacity: whether there were enough free GPUs while work waited for them.

After quota and admission a wait is one of *placement* (fragmentation) while the GPUs free in the
cluster, of one model that the work accepts, would have been enough; and one of *capacity* while
they were not. This is decided for each moment of the wait, not once for all of it.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

from analytics.queue.free import GPU_UNITS, Free, free_levels, offers_for
from steward.units import GPU_MILLI

_ASK: Final = ("gpu_models", "need_units", "gpu_milli")
Whole = npt.NDArray[np.int64]


def asks(asked: pl.DataFrame) -> pl.DataFrame:
    """Return what each attempt needs free.

    Args:
        asked: rows of ``stages.numbered``.

    Returns:
        one row per attempt that asks for GPUs and says how many, in order
            attempt_id, cluster, gpu_models str ("" accepts any), need_units i64, gpu_milli i64
        A part of a GPU is told in thousandths, rounded: half a thousandth less is enough.
    """
    milli = pl.col("gpu_milli").fill_null(GPU_MILLI)
    part = ((milli - 0.5) * GPU_UNITS / GPU_MILLI).floor().cast(pl.Int64)
    is_whole = milli >= GPU_MILLI
    return asked.filter(pl.col("gpu_count") > 0).select(
        "attempt_id",
        "cluster",
        gpu_models=pl.col("gpu_models").fill_null(""),
        need_units=pl.col("gpu_count") * pl.when(is_whole).then(GPU_UNITS).otherwise(part),
        gpu_milli=milli,
    )


def placement_us(spans: pl.DataFrame, asked: pl.DataFrame, free: Free) -> pl.Series:
    """Return for how long of each span there were enough free GPUs.

    Args:
        spans: attempt_id, start_us, end_us, as rows of ``stages.stages``.
        asked: rows of ``stages.numbered``.
        free: of the period that the spans lie in.

    Returns:
        i64 in the order of the spans; null where what was free, or asked for, is not known
    """
    known = free.boards.select("cluster").unique() if free.has_holders else free.boards.clear()
    numbered = spans.with_row_index("span_id")
    wanted = numbered.join(asks(asked), on="attempt_id", maintain_order="left")
    wanted = wanted.join(known.select("cluster"), on="cluster", how="semi", maintain_order="left")
    parts = [
        part.select("span_id", enough_us=pl.Series(_enough(part, ask, levels)))
        for cluster, levels in _grids(wanted, free).items()
        for ask, part in wanted.filter(pl.col("cluster") == cluster)
        .partition_by(_ASK, as_dict=True)
        .items()
    ]
    found = pl.concat(parts) if parts else pl.DataFrame(schema=_FOUND)
    return numbered.join(found, on="span_id", how="left", maintain_order="left")["enough_us"]


_FOUND: Final = {"span_id": pl.UInt32, "enough_us": pl.Int64}


class Grid:
    """Free units of each model of one cluster on one axis of instants."""

    def __init__(self, levels: pl.DataFrame) -> None:
        """Lay the rows of ``free_levels`` by model and offer on one axis, nothing free before."""
        changes = levels["at_us"].unique().sort().to_numpy()
        self.at_us: Whole = np.concatenate([np.zeros(1, dtype=np.int64), changes])
        self._by_model = {
            (model, offer): self._spread(part)
            for (model, offer), part in levels.partition_by("model", "offer", as_dict=True).items()
        }

    def _spread(self, part: pl.DataFrame) -> Whole:
        index = np.searchsorted(part["at_us"].to_numpy(), self.at_us, side="right")
        values = np.concatenate([np.zeros(1, dtype=np.int64), part["free_units"].to_numpy()])
        spread: Whole = values[index]
        return spread

    def has_enough(self, models: str, need_units: int, *, gpu_milli: int) -> npt.NDArray[np.bool_]:
        """Return at each instant whether the need is met: by one named model, or by any mix."""
        named = models.split("|") if models else []
        offers = {
            key: units
            for key, units in self._by_model.items()
            if key[1] in offers_for(gpu_milli) and (not named or key[0] in named)
        }
        sums: dict[object, Whole] = {}
        for (model, _), units in offers.items():
            name = model if named else None
            sums[name] = sums[name] + units if name in sums else units
        flags = np.zeros(len(self.at_us), dtype=np.bool_)
        for units in sums.values():
            flags |= units >= need_units
        return flags


def _grids(wanted: pl.DataFrame, free: Free) -> dict[str, Grid]:
    levels = free_levels(free, "model", "offer")
    return {
        cluster: Grid(levels.filter(pl.col("cluster") == cluster))
        for cluster in wanted["cluster"].unique().sort()
    }


def _enough(part: pl.DataFrame, ask: tuple[object, ...], grid: Grid) -> Whole:
    models, need, milli = ask
    flags = grid.has_enough(str(models), int(str(need)), gpu_milli=int(str(milli)))
    steps = np.diff(grid.at_us, append=grid.at_us[-1:]) * flags
    before = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(steps)])
    start, end = (
        _integral(part[name].to_numpy(), grid.at_us, flags=flags, before=before)
        for name in ("start_us", "end_us")
    )
    return end - start


def _integral(at_us: Whole, axis: Whole, *, flags: npt.NDArray[np.bool_], before: Whole) -> Whole:
    """Return the time with enough free GPUs before each instant."""
    index = np.searchsorted(axis, at_us, side="right") - 1
    total: Whole = before[index] + (at_us - axis[index]) * flags[index]
    return total
