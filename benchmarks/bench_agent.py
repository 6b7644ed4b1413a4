"""Memory and CPU of ``steward agent``, beside the smallest exporter that Python offers.

Starts the real agent on NVIDIA's library without a GPU (8 GPUs, compiled with gcc), beside a real
gRPC server that plays the kubelet of a node with 110 pods, and a bare exporter that serves nothing
but itself with ``prometheus_client``. Both are scraped every 15 s; CPU and memory are what each of
them tells. What the driver itself takes is not in these figures: the stub answers at once.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.support.collector_process import free_port  # noqa: E402 - path set first
from tests.support.kubelet_server import container, pod, running_kubelet  # noqa: E402 - same
from tests.support.nvml_stub import UUIDS, build  # noqa: E402 - same

INTERVAL_S: Final = 15.0
GPUS: Final = 8
PODS: Final = 110
MEMORY_BUDGET_BYTES: Final = 50e6
CPU_BUDGET_RATIO: Final = 0.02
PATIENCE_S: Final = 60.0
BASELINE: Final = (
    "import sys, time\n"
    "from prometheus_client import start_http_server\n"
    "start_http_server(int(sys.argv[1]), addr='127.0.0.1')\n"
    "time.sleep(86_400)\n"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a process says it has used."""

    cpu_s: float
    resident_bytes: float
    page_bytes: int


def usage(port: int) -> Usage:
    """Scrape a process and return what it tells of itself."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        page = answer.read()
    cpu = re.search(rb"^process_cpu_seconds_total (\S+)", page, re.MULTILINE)
    resident = re.search(rb"^process_resident_memory_bytes (\S+)", page, re.MULTILINE)
    if cpu is None or resident is None:
        raise SystemExit(f"the process on port {port} tells nothing of itself")
    return Usage(cpu_s=float(cpu[1]), resident_bytes=float(resident[1]), page_bytes=len(page))


@contextmanager
def running(*command: str, port: int, folder: Path, **environment: str) -> Iterator[None]:
    """Run a command until it answers on its port, for the length of the block."""
    kept = {key: text for key, text in os.environ.items() if not key.startswith("STEWARD_")}
    with (folder / f"{port}.log").open("wb") as log:
        process = subprocess.Popen(
            command, cwd=ROOT, env=kept | environment, stdout=log, stderr=subprocess.STDOUT
        )
    try:
        wait_for_answer(port)
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=PATIENCE_S)


def wait_for_answer(port: int) -> None:
    """Return once the process answers."""
    until_s = time.monotonic() + PATIENCE_S
    while True:
        try:
            usage(port)
        except OSError:
            if time.monotonic() > until_s:
                raise
            time.sleep(0.1)
        else:
            return


def measure(ports: dict[str, int], *, seconds: float) -> dict[str, Usage]:
    """Scrape all at the interval; return the CPU of the window and the largest memory."""
    first = {name: usage(port) for name, port in ports.items()}
    largest = {name: each.resident_bytes for name, each in first.items()}
    last = first
    for _ in range(max(1, round(seconds / INTERVAL_S))):
        time.sleep(INTERVAL_S)
        last = {name: usage(port) for name, port in ports.items()}
        largest = {name: max(largest[name], last[name].resident_bytes) for name in ports}
    return {
        name: Usage(
            cpu_s=last[name].cpu_s - first[name].cpu_s,
            resident_bytes=largest[name],
            page_bytes=last[name].page_bytes,
        )
        for name in ports
    }


def main() -> int:
    """Print the figures; fail where a budget is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="length of the window")
    seconds: float = parser.parse_args().seconds
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        found = run(folder, seconds=seconds)
    agent, bare = found["agent"], found["bare exporter"]
    for name, each in found.items():
        print(
            f"{name:14} {each.resident_bytes / 1e6:6.1f} MB resident, "
            f"{each.cpu_s / seconds:8.3%} of one core, page of {each.page_bytes:,} bytes"
        )
    memory_ratio = agent.resident_bytes / bare.resident_bytes
    print(f"agent ÷ bare prometheus_client exporter, memory: {memory_ratio:.2f}")
    is_small = agent.resident_bytes < MEMORY_BUDGET_BYTES
    is_quiet = agent.cpu_s / seconds < CPU_BUDGET_RATIO
    print(f"budget: {MEMORY_BUDGET_BYTES / 1e6:.0f} MB and {CPU_BUDGET_RATIO:.0%} of one core")
    return 0 if is_small and is_quiet else 1


def run(folder: Path, *, seconds: float) -> dict[str, Usage]:
    """Start everything and return what was used."""
    library = build(folder)
    ports = {"agent": free_port(), "bare exporter": free_port()}
    with running_kubelet(folder / "kubelet.sock") as kubelet:
        kubelet.pods = [
            pod(
                f"pod-{number}",
                container("main", devices={"nvidia.com/gpu": UUIDS[number : number + 1]}),
                container("log"),
            )
            for number in range(PODS)
        ]
        agent = running(
            *(sys.executable, "-m", "steward", "agent", "--interval-s", str(INTERVAL_S)),
            *("--port", str(ports["agent"]), "--pod-resources", str(kubelet.socket)),
            port=ports["agent"],
            folder=folder,
            LD_LIBRARY_PATH=str(library.parent),
            NVMLSTUB_GPUS=str(GPUS),
        )
        bare = running(
            *(sys.executable, "-c", BASELINE, str(ports["bare exporter"])),
            port=ports["bare exporter"],
            folder=folder,
        )
        with agent, bare:
            return measure(ports, seconds=seconds)


if __name__ == "__main__":
    raise SystemExit(main())
