"""Statistical fragmentation of idle GPUs (FGD: Weng et al., USENIX ATC 2023).

Measures how much of the idle GPU capacity the expected work cannot use. Free capacity is in
milli-GPU per device; memory is not part of the measure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

CATEGORIES: Final = (
    "q1_lack_both",
    "q2_lack_gpu",
    "q3_satisfied",
    "q4_lack_cpu",
    "xl_satisfied",
    "xr_lack_cpu",
    "no_access",
)
"""q1, q2, q4: the shape does not fit for want of both, GPU, CPU (leftovers of a fit count as q2);
xl, xr: shapes without GPU, whose CPU fits or not; no_access: shapes bound to other models."""
SATISFIED: Final = "q3_satisfied"

_Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class FreeNodes:
    """Free capacity as arrays, one entry per node.

    ``gpu_free_milli`` is nodes x devices, padded with zeros; a zero device holds nothing idle.
    """

    cpu_free_milli: _Floats
    gpu_free_milli: _Floats
    models: NDArray[np.str_]

    @property
    def idle_milli(self) -> _Floats:
        """Return each node's idle milli-GPU."""
        idle: _Floats = self.gpu_free_milli.sum(axis=1)
        return idle


def free_nodes(nodes: pl.DataFrame) -> FreeNodes:
    """Return nodes as arrays.

    Args:
        nodes: one row per node: cpu_free_milli f64, gpu_free_milli list of f64, gpu_model str.
    """
    lists = nodes["gpu_free_milli"].to_list()
    width = max((len(free) for free in lists), default=0)
    padded = np.zeros((nodes.height, max(width, 1)))
    for row, free in enumerate(lists):
        padded[row, : len(free)] = free
    return FreeNodes(
        cpu_free_milli=nodes["cpu_free_milli"].to_numpy().astype(np.float64),
        gpu_free_milli=padded,
        models=nodes["gpu_model"].fill_null("").to_numpy().astype(np.str_),
    )


def fragmentation(nodes: FreeNodes, shapes: pl.DataFrame) -> pl.DataFrame:
    """Return the idle milli-GPU of each node by category, weighted by the shapes' shares.

    Args:
        nodes: free capacity.
        shapes: one row per shape of the target workload
            cpu_milli, gpu_milli (per GPU), gpu_count i64, gpu_models str ("" for any, else names
            joined by "|"), share_ratio f64. Shares need not add up to 1.

    Returns:
        one row per node, in the order given: the ``CATEGORIES`` f64, idle_milli f64,
        fragment_milli f64 (all categories but the satisfied one)
    """
    sums = {name: np.zeros(len(nodes.idle_milli)) for name in CATEGORIES}
    for shape in shapes.iter_rows(named=True):
        for name, milli in _one_shape(nodes, shape).items():
            sums[name] += milli * shape["share_ratio"]
    fragments = sum(sums[name] for name in CATEGORIES if name != SATISFIED)
    return pl.DataFrame({**sums, "idle_milli": nodes.idle_milli, "fragment_milli": fragments})


def _one_shape(nodes: FreeNodes, shape: dict[str, int | float | str]) -> dict[str, _Floats]:
    idle = nodes.idle_milli
    cpu_fits = nodes.cpu_free_milli >= float(shape["cpu_milli"])
    demand = float(shape["gpu_milli"])
    if demand == 0:
        return {
            "xl_satisfied": np.where(cpu_fits, idle, 0.0),
            "xr_lack_cpu": np.where(cpu_fits, 0.0, idle),
        }
    access = _access(nodes.models, str(shape["gpu_models"]))
    large = nodes.gpu_free_milli >= demand
    gpu_fits = large.sum(axis=1) >= int(shape["gpu_count"])
    leftovers = np.where(large, 0.0, nodes.gpu_free_milli).sum(axis=1)
    fits = access & gpu_fits & cpu_fits
    lack_gpu = np.where(access & ~gpu_fits & cpu_fits, idle, 0.0)
    return {
        "no_access": np.where(access, 0.0, idle),
        "q1_lack_both": np.where(access & ~gpu_fits & ~cpu_fits, idle, 0.0),
        "q2_lack_gpu": lack_gpu + np.where(fits, leftovers, 0.0),
        "q4_lack_cpu": np.where(access & gpu_fits & ~cpu_fits, idle, 0.0),
        SATISFIED: np.where(fits, idle - leftovers, 0.0),
    }


def _access(models: NDArray[np.str_], allowed: str) -> NDArray[np.bool_]:
    """Return which nodes have an allowed model; labels write its name without spaces."""
    if not allowed:
        return np.ones(len(models), dtype=np.bool_)
    written = [name.replace(" ", "-") for name in models.tolist()]
    names = set(allowed.replace(" ", "-").split("|"))
    return np.fromiter((name in names for name in written), dtype=np.bool_, count=len(written))


STRANDED_REASONS: Final = ("cpu", "pieces", "model")
"""Why no expected shape with GPUs fits on a node: it lacks processors only; its idle GPUs are too
few or too small; no shape may use its model."""


def stranded_reasons(nodes: FreeNodes, shapes: pl.DataFrame) -> list[str | None]:
    """Return why the idle GPUs of each node are of no use to any expected shape with GPUs.

    Args:
        nodes: free capacity.
        shapes: as for ``fragmentation``; shapes without GPUs do not count.

    Returns:
        one of ``STRANDED_REASONS`` per node, None where some shape fits, nothing is idle or no
        shape needs GPUs
    """
    count = len(nodes.idle_milli)
    access, by_gpu, fits = (np.zeros(count, dtype=np.bool_) for _ in range(3))
    with_gpu = shapes.filter(pl.col("gpu_count") > 0)
    for shape in with_gpu.iter_rows(named=True):
        may = _access(nodes.models, str(shape["gpu_models"]))
        large = nodes.gpu_free_milli >= float(shape["gpu_milli"])
        has_gpus = may & (large.sum(axis=1) >= int(shape["gpu_count"]))
        access |= may
        by_gpu |= has_gpus
        fits |= has_gpus & (nodes.cpu_free_milli >= float(shape["cpu_milli"]))
    reason = np.where(by_gpu, "cpu", np.where(access, "pieces", "model"))
    is_told = ~fits & (nodes.idle_milli > 0) & (not with_gpu.is_empty())
    return [str(why) if told else None for why, told in zip(reason, is_told, strict=True)]
