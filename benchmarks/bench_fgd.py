"""FGD fragmentation of a 1,213-node cluster: vectorised, beside the definition in plain Python.

Run: ``python benchmarks/bench_fgd.py``. Nodes and shapes are made up from a fixed seed, of the size
of a public production trace (1,213 nodes, 6,212 GPUs, 35 shapes), partly in use.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable

import polars as pl

from analytics.fragmentation import FreeNodes, fragmentation, free_nodes

NODE_COUNT = 1_213
SHAPE_COUNT = 35
ROUNDS = 9
SEED = 7
GPU_COUNTS = (1, 2, 2, 4, 8, 8, 8, 8)
FREE_MILLI = (0.0, 0.0, 250.0, 500.0, 1000.0, 1000.0)
MODELS = ("T4", "P100", "G2", "G3")

Shape = tuple[int, int, int, str, float]


def cluster() -> pl.DataFrame:
    """Return made-up nodes with free capacity."""
    draw = random.Random(SEED)  # noqa: S311  # a benchmark needs the same nodes, not secrets
    return pl.DataFrame(
        {
            "cpu_free_milli": [float(draw.randrange(0, 128_000)) for _ in range(NODE_COUNT)],
            "gpu_free_milli": [
                [draw.choice(FREE_MILLI) for _ in range(draw.choice(GPU_COUNTS))]
                for _ in range(NODE_COUNT)
            ],
            "gpu_model": [draw.choice(MODELS) for _ in range(NODE_COUNT)],
        }
    )


def workload() -> list[Shape]:
    """Return made-up shapes with equal shares."""
    draw = random.Random(SEED)  # noqa: S311  # as above
    return [
        (
            draw.randrange(1_000, 32_000),
            draw.choice((0, 250, 500, 1_000)),
            draw.choice((1, 1, 1, 2, 8)),
            draw.choice(("", "", "T4", "P100|G2")),
            1 / SHAPE_COUNT,
        )
        for _ in range(SHAPE_COUNT)
    ]


def plain(nodes: pl.DataFrame, shapes: list[Shape]) -> float:
    """Return the fragmented milli-GPU, one node and one shape at a time."""
    return sum(
        share * node_fragment(cpu, gpus, model, (shape_cpu, milli, count, models))
        for cpu, gpus, model in nodes.iter_rows()
        for shape_cpu, milli, count, models, share in shapes
    )


def node_fragment(  # noqa: PLR0917  # the definition's own four facts
    cpu: float, gpus: list[float], model: str, shape: tuple[int, int, int, str]
) -> float:
    """Return the fragmented milli-GPU of one node for one shape."""
    shape_cpu, milli, count, models = shape
    refused = milli == 0 or (bool(models) and model not in models.split("|"))
    fits = sum(free >= milli for free in gpus) >= count and cpu >= shape_cpu
    if refused or not fits:
        return sum(gpus)
    return sum(free for free in gpus if free < milli)


def vectorised(nodes: FreeNodes, shapes: pl.DataFrame) -> float:
    """Return the fragmented milli-GPU, all nodes at a time."""
    return float(fragmentation(nodes, shapes)["fragment_milli"].sum())


def median_ms(run: Callable[[], float]) -> float:
    """Return the median time of a run."""
    times = []
    for _ in range(ROUNDS):
        before = time.perf_counter()
        run()
        times.append((time.perf_counter() - before) * 1_000)
    return statistics.median(times)


def main() -> None:
    """Print both times, their ratio, and that both say the same."""
    nodes, shapes = cluster(), workload()
    columns = ["cpu_milli", "gpu_milli", "gpu_count", "gpu_models", "share_ratio"]
    frame = pl.DataFrame(shapes, schema=columns, orient="row")
    arrays = free_nodes(nodes)
    slow, fast = plain(nodes, shapes), vectorised(arrays, frame)
    if abs(slow - fast) > 1e-6 * slow:
        message = f"the two disagree: {slow} and {fast}"
        raise SystemExit(message)
    slow_ms = median_ms(lambda: plain(nodes, shapes))
    fast_ms = median_ms(lambda: vectorised(arrays, frame))
    print(f"FGD, {NODE_COUNT} nodes x {SHAPE_COUNT} shapes, F = {fast:,.2f} milli-GPU")
    print(f"  plain Python, node by node  {slow_ms:8.2f} ms")
    print(f"  vectorised                  {fast_ms:8.2f} ms")
    print(f"  ratio                       {slow_ms / fast_ms:8.1f} x")


if __name__ == "__main__":
    main()
