"""A thousand exporters in one lean process, each on a loopback address of its own.

``python benchmarks/exporter_farm.py --targets 1000 --port 9400`` answers on 127.0.1.1:9400,
127.0.1.2:9400, … until it is ended. Bodies are those of dcgm-exporter: 8 GPUs, 25 metrics and 10
labels. Values change with each scrape; each GPU's pod is another one every hour, at its own time.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import time
from typing import Final, cast

import uvloop

GPU_COUNT: Final = 8
POD_LIFE_S: Final = 3_600
VALUE_SETS: Final = 97
"""Prepared sets of values; targets walk through them from different starts."""
BOARD_MIB: Final = 81_559
HELD_MIB: Final = 643
_HEAD: Final = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/plain; version=0.0.4; charset=utf-8\r\n"
    b"content-length: %d\r\n\r\n"
)
METRICS: Final = {
    "DCGM_FI_DEV_SM_CLOCK": ("SM clock frequency (in MHz).", 1900, 1980, 0),
    "DCGM_FI_DEV_MEM_CLOCK": ("Memory clock frequency (in MHz).", 2619, 2619, 0),
    "DCGM_FI_DEV_MEMORY_TEMP": ("Memory temperature (in C).", 38, 90, 0),
    "DCGM_FI_DEV_GPU_TEMP": ("GPU temperature (in C).", 28, 85, 0),
    "DCGM_FI_DEV_POWER_USAGE": ("Power draw (in W).", 60, 700, 6),
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": ("Total energy (in mJ).", 10**9, 10**12, 0),
    "DCGM_FI_DEV_PCIE_REPLAY_COUNTER": ("Total number of PCIe retries.", 0, 0, 0),
    "DCGM_FI_DEV_GPU_UTIL": ("GPU utilization (in %).", 0, 100, 0),
    "DCGM_FI_DEV_MEM_COPY_UTIL": ("Memory utilization (in %).", 0, 100, 0),
    "DCGM_FI_DEV_ENC_UTIL": ("Encoder utilization (in %).", 0, 0, 0),
    "DCGM_FI_DEV_DEC_UTIL": ("Decoder utilization (in %).", 0, 0, 0),
    "DCGM_FI_DEV_XID_ERRORS": ("Value of the last XID error encountered.", 0, 0, 0),
    "DCGM_FI_DEV_FB_FREE": ("Framebuffer memory free (in MiB).", 0, 0, 0),
    "DCGM_FI_DEV_FB_USED": ("Framebuffer memory used (in MiB).", 0, 0, 0),
    "DCGM_FI_DEV_FB_RESERVED": ("Framebuffer memory reserved (in MiB).", 0, 0, 0),
    "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL": ("NVLink bandwidth.", 0, 400000, 0),
    "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS": ("Uncorrectable remapped rows.", 0, 0, 0),
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


def address(number: int) -> str:
    """Return the loopback address of a target, counted from 0."""
    return f"127.0.{1 + number // 250}.{1 + number % 250}"


def label_block(node: int, gpu: int, *, pod_number: int) -> str:
    """Return the ten labels of one GPU."""
    return (
        f'gpu="{gpu}",UUID="GPU-{node:08x}-aaaa-bbbb-cccc-{gpu:012x}",'
        f'pci_bus_id="00000000:{gpu + 16:02X}:00.0",device="nvidia{gpu}",'
        f'modelName="NVIDIA H100 80GB HBM3",Hostname="gpu-node-{node:04d}",'
        f'DCGM_FI_DRIVER_VERSION="550.90.07",container="main",'
        f'namespace="team-{(node + pod_number) % 17}",pod="train-{pod_number:06d}-{gpu}-7f9c8"'
    )


def value_set(seed: int) -> list[bytes]:
    """Return one scrape's values as they are printed: metric by metric, GPU by GPU.

    Used, free and reserved memory add up to the board's, as they do on a GPU.
    """
    dice = random.Random(seed)  # noqa: S311 - a benchmark's filling
    used = [float(dice.randint(0, BOARD_MIB - HELD_MIB)) for _ in range(GPU_COUNT)]
    memory = {
        "DCGM_FI_DEV_FB_USED": used,
        "DCGM_FI_DEV_FB_FREE": [BOARD_MIB - HELD_MIB - one for one in used],
        "DCGM_FI_DEV_FB_RESERVED": [float(HELD_MIB)] * GPU_COUNT,
    }
    values: list[bytes] = []
    for name, (_, low, high, decimals) in METRICS.items():
        drawn = memory.get(name) or [dice.uniform(low, high) for _ in range(GPU_COUNT)]
        values += [f"{value:.{decimals}f}".encode() for value in drawn]
    return values


class Node:
    """One exporter: the fixed text between its values, and which values come next."""

    __slots__ = ("_number", "_pieces", "_pods", "_turn", "_values")

    def __init__(self, number: int, *, values: list[list[bytes]]) -> None:
        """Prepare the text of one node."""
        self._number = number
        self._values = values
        self._turn = number * 13
        self._pods: list[int] = []
        self._pieces: list[bytes] = []

    def body(self, now_s: float) -> bytes:
        """Return the next answer."""
        pods = [self._pod_number(gpu, now_s) for gpu in range(GPU_COUNT)]
        if pods != self._pods:
            self._pods = pods
            self._pieces = self._text_around_values()
        self._turn += 1
        self._pieces[1::2] = self._values[self._turn % VALUE_SETS]
        return b"".join(self._pieces)

    def _pod_number(self, gpu: int, now_s: float) -> int:
        """Return which pod holds the GPU now: each GPU changes hands at its own second."""
        place = self._number * GPU_COUNT + gpu
        return int((now_s + place * 7_919 % POD_LIFE_S) // POD_LIFE_S) + place

    def _text_around_values(self) -> list[bytes]:
        blocks = [
            label_block(self._number, gpu, pod_number=pod) for gpu, pod in enumerate(self._pods)
        ]
        pieces, between = list[bytes](), ""
        for name, (text, *_) in METRICS.items():
            between += f"# HELP {name} {text}\n# TYPE {name} gauge\n"
            for block in blocks:
                pieces += [f"{between}{name}{{{block}}} ".encode(), b""]
                between = "\n"
        return [*pieces, b"\n"]


class Exporter(asyncio.Protocol):
    """Answers every request of one connection with the node's next body."""

    def __init__(self, node: Node) -> None:
        """Serve this node."""
        self._node = node
        self._transport: asyncio.WriteTransport | None = None
        self._head = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep where to write."""
        self._transport = cast("asyncio.WriteTransport", transport)

    def data_received(self, data: bytes) -> None:
        """Answer once the request's head is whole; hang up where the client asks for it."""
        self._head += data
        if not self._head.endswith(b"\r\n\r\n") or self._transport is None:
            return
        is_last = b"connection: close" in self._head.lower()
        self._head = b""
        body = self._node.body(time.time())
        self._transport.writelines([_HEAD % len(body), body])
        if is_last:
            self._transport.close()


async def serve(*, target_count: int, port: int) -> None:
    """Answer on all addresses until the process is ended."""
    values = [value_set(seed) for seed in range(VALUE_SETS)]
    loop = asyncio.get_running_loop()
    for number in range(target_count):
        node = Node(number, values=values)

        def answer(node: Node = node) -> Exporter:
            return Exporter(node)

        await loop.create_server(answer, address(number), port, backlog=16)
    print("ready", flush=True)
    await asyncio.Event().wait()


def main() -> None:
    """Serve as many targets as asked for."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--targets", type=int, default=1_000)
    arguments.add_argument("--port", type=int, default=9_400)
    chosen = arguments.parse_args()
    uvloop.run(serve(target_count=chosen.targets, port=chosen.port))


if __name__ == "__main__":
    main()
