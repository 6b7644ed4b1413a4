"""Lines per second of the exposition parser and of normalize, and the ratio to prometheus_client.

Generates a cluster's scrape as dcgm-exporter prints it: 1,000 pages of 8 GPUs, 25 metrics and 10
labels, so 200,000 samples. Both parsers read pages one by one, as a collector does, in this run.
"""

from __future__ import annotations

import argparse
import gc
import random
import statistics
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final

from prometheus_client.parser import text_string_to_metric_families

from collector.normalize import NormalizeState, normalize
from collector.sources.exposition import Exposition, ExpositionParser

GPU_COUNT: Final = 8
AIM_RATIO: Final = 40.0
FLOOR_RATIO: Final = 20.0
METRICS: Final = {
    "DCGM_FI_DEV_SM_CLOCK": ("SM clock frequency (in MHz).", 210, 1980, 0),
    "DCGM_FI_DEV_MEM_CLOCK": ("Memory clock frequency (in MHz).", 1215, 2619, 0),
    "DCGM_FI_DEV_MEMORY_TEMP": ("Memory temperature (in C).", 28, 90, 0),
    "DCGM_FI_DEV_GPU_TEMP": ("GPU temperature (in C).", 28, 85, 0),
    "DCGM_FI_DEV_POWER_USAGE": ("Power draw (in W).", 60, 700, 6),
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": ("Total energy (in mJ).", 10**9, 10**12, 0),
    "DCGM_FI_DEV_PCIE_REPLAY_COUNTER": ("Total number of PCIe retries.", 0, 4, 0),
    "DCGM_FI_DEV_GPU_UTIL": ("GPU utilization (in %).", 0, 100, 0),
    "DCGM_FI_DEV_MEM_COPY_UTIL": ("Memory utilization (in %).", 0, 100, 0),
    "DCGM_FI_DEV_ENC_UTIL": ("Encoder utilization (in %).", 0, 1, 0),
    "DCGM_FI_DEV_DEC_UTIL": ("Decoder utilization (in %).", 0, 1, 0),
    "DCGM_FI_DEV_XID_ERRORS": ("Value of the last XID error encountered.", 0, 0, 0),
    "DCGM_FI_DEV_FB_FREE": ("Framebuffer memory free (in MiB).", 0, 40000, 0),
    "DCGM_FI_DEV_FB_USED": ("Framebuffer memory used (in MiB).", 0, 40000, 0),
    "DCGM_FI_DEV_FB_RESERVED": ("Framebuffer memory reserved (in MiB).", 500, 900, 0),
    "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL": ("NVLink bandwidth.", 0, 400000, 0),
    "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS": ("Uncorrectable remapped rows.", 0, 1, 0),
    "DCGM_FI_DEV_ROW_REMAP_FAILURE": ("Whether remapping of rows has failed.", 0, 0, 0),
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": ("Graphics engine active (in %).", 0, 1, 6),
    "DCGM_FI_PROF_SM_ACTIVE": ("SM active.", 0, 1, 6),
    "DCGM_FI_PROF_SM_OCCUPANCY": ("SM occupancy.", 0, 1, 6),
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": ("Tensor pipe active.", 0, 1, 6),
    "DCGM_FI_PROF_DRAM_ACTIVE": ("Memory interface active.", 0, 1, 6),
    "DCGM_FI_PROF_PCIE_TX_BYTES": ("PCIe bytes sent per second.", 10**4, 10**10, 0),
    "DCGM_FI_PROF_PCIE_RX_BYTES": ("PCIe bytes received per second.", 10**4, 10**10, 0),
}
"""Name: help, lowest value, highest value, decimals."""


def label_block(node: int, gpu: int) -> str:
    """Return the ten labels of one GPU."""
    return (
        f'gpu="{gpu}",UUID="GPU-{node:08x}-aaaa-bbbb-cccc-{gpu:012x}",'
        f'pci_bus_id="00000000:{gpu + 16:02X}:00.0",device="nvidia{gpu}",'
        f'modelName="NVIDIA H100 80GB HBM3",Hostname="gpu-node-{node:04d}",'
        f'DCGM_FI_DRIVER_VERSION="550.90.07",container="main",'
        f'namespace="team-{node % 17}",pod="train-{node:04d}-{gpu}-7f9c8"'
    )


def page(node: int, *, seed: int) -> str:
    """Return what one node's exporter answers."""
    values = random.Random(node * 1_000_003 + seed)  # noqa: S311 - a benchmark's filling
    blocks = [label_block(node, gpu) for gpu in range(GPU_COUNT)]
    lines = []
    for name, (text, low, high, decimals) in METRICS.items():
        lines += [f"# HELP {name} {text}", f"# TYPE {name} gauge"]
        lines += [f"{name}{{{block}}} {values.uniform(low, high):.{decimals}f}" for block in blocks]
    return "\n".join(lines) + "\n"


def seconds(work: Callable[[], object]) -> float:
    """Return how long the work took."""
    gc.collect()
    started_s = time.perf_counter()
    work()
    return time.perf_counter() - started_s


def read_all(parsers: list[ExpositionParser], pages: list[str]) -> None:
    """Read each page with its own parser and let the result go."""
    for parser, text in zip(parsers, pages, strict=True):
        parser.parse(text)


def read_all_reference(pages: list[str]) -> None:
    """Read each page with prometheus_client and walk its samples."""
    for text in pages:
        for family in text_string_to_metric_families(text):
            for _ in family.samples:
                pass


def normalize_all(states: list[NormalizeState], read: list[Exposition], at: datetime) -> int:
    """Turn every exposition into rows; return how many device rows came out."""
    return sum(
        normalize(
            exposition,
            target=f"http://10.0.{number // 250}.{number % 250}:9400/metrics",
            cluster="bench",
            scraped_at=at,
            state=state,
        ).samples.num_rows
        for number, (state, exposition) in enumerate(zip(states, read, strict=True))
    )


def bench_normalize(parsers: list[ExpositionParser], pages: list[str]) -> None:
    """Print samples per second of normalize, first and following scrapes."""
    at = datetime(2026, 5, 1, tzinfo=UTC)
    read = [parser.parse(text) for parser, text in zip(parsers, pages, strict=True)]
    states = [NormalizeState() for _ in pages]
    sample_count = len(pages) * GPU_COUNT * len(METRICS)
    for name in ("first", "second", "third"):
        at += timedelta(seconds=15)
        spent_s = seconds(partial(normalize_all, states, read, at))
        print(f"normalize, {name} scrape:     {sample_count / spent_s:>12,.0f} samples/s")


def main() -> int:
    """Print the figures; fail below the floor."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--pages", type=int, default=1000)
    arguments.add_argument("--reference-pages", type=int, default=60)
    arguments.add_argument("--rounds", type=int, default=5)
    chosen = arguments.parse_args()
    pages = [page(node, seed=0) for node in range(chosen.pages)]
    later = [page(node, seed=1) for node in range(chosen.pages)]
    line_count = len(pages) * GPU_COUNT * len(METRICS)
    size_mb = sum(map(len, pages)) / 1e6
    print(f"{len(pages):,} pages, {line_count:,} sample lines, {size_mb:.1f} MB, 10 labels")
    parsers = [ExpositionParser() for _ in pages]
    cold = line_count / seconds(partial(read_all, parsers, pages))
    print(f"parser, cold:                {cold:>12,.0f} lines/s")
    rounds = [
        line_count / seconds(partial(read_all, parsers, turn))
        for turn in [later, pages] * chosen.rounds
    ]
    warm = statistics.median(rounds)
    print(f"parser, warm (median of {len(rounds)}): {warm:>12,.0f} lines/s")
    subset = pages[: chosen.reference_pages]
    reference_lines = len(subset) * GPU_COUNT * len(METRICS)
    reference = reference_lines / seconds(partial(read_all_reference, subset))
    print(f"prometheus_client:           {reference:>12,.0f} lines/s (first {len(subset)} pages)")
    print(f"ratio: warm {warm / reference:.1f}x, cold {cold / reference:.1f}x (aim {AIM_RATIO:g}x)")
    bench_normalize(parsers, later)
    return 0 if warm / reference >= FLOOR_RATIO else 1


if __name__ == "__main__":
    raise SystemExit(main())
