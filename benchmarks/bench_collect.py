"""CPU seconds and memory of one scrape cycle, beside a real Prometheus doing the same scrapes.

Starts 1,000 exporters of 8 GPUs and 25 metrics (200,000 lines over HTTP), a Prometheus server
(the distribution's package) and the real ``steward collect`` and ``steward warehouse``; all of them
scrape the same targets at the same interval. After a warm-up the CPU time (user and system) and
resident memory of each process are read over the same cycles. Takes about two minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.exporter_farm import GPU_COUNT, METRICS, address  # noqa: E402 - path set first
from sql.client import connect  # noqa: E402 - path set first

AIM_RATIO: Final = 1.0
FLOOR_RATIO: Final = 1.5
PATIENCE_S: Final = 60.0
TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")
PAGE_BYTES: Final = os.sysconf("SC_PAGESIZE")
OPEN_FILES: Final = 16_384
STEWARD: Final = (sys.executable, "-m", "steward")
FARM: Final = (sys.executable, str(ROOT / "benchmarks/exporter_farm.py"))
DATA: Final = ("--data-dir=data",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a process has used so far."""

    cpu_s: float
    resident_bytes: int


def usage_of(pid: int) -> Usage:
    """Return what a running process used, user and system together, all threads."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(") ")[2].split()
    ticks = int(fields[11]) + int(fields[12])
    return Usage(cpu_s=ticks / TICKS_PER_S, resident_bytes=int(fields[21]) * PAGE_BYTES)


def free_port() -> int:
    """Return a port that was free a moment ago."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


@contextmanager
def running(name: str, *command: str, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command for the length of the block; its output goes to a file in the folder."""
    kept = {key: text for key, text in os.environ.items() if not key.startswith("STEWARD_")}
    environment = kept | {"XDG_CONFIG_HOME": os.devnull, "PYTHONPATH": str(ROOT)}
    with (folder / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=log, stderr=subprocess.STDOUT
        )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def wait_for_text(path: Path, text: str) -> None:
    """Return once a log holds the text."""
    until_s = time.monotonic() + PATIENCE_S
    while text not in path.read_text(encoding="utf-8", errors="replace"):
        if time.monotonic() > until_s:
            raise SystemExit(f"{path.name} never said {text!r}: {path.read_text()[-2_000:]}")
        time.sleep(0.1)


def wait_for_answer(url: str) -> None:
    """Return once the address answers with success."""
    until_s = time.monotonic() + PATIENCE_S
    while True:
        try:
            with urllib.request.urlopen(url, timeout=5):  # noqa: S310 - our own http address
                return
        except OSError as error:
            if time.monotonic() > until_s:
                raise SystemExit(f"{url} does not answer: {error}") from error
        time.sleep(0.2)


def write_configuration(folder: Path, targets: list[str], *, interval_s: float) -> Path:
    """Write one configuration for Prometheus, checked by promtool, and one for Steward."""
    listed = json.dumps(targets)
    path = folder / "prometheus.yml"
    path.write_text(
        f"global: {{scrape_interval: {interval_s:g}s, scrape_timeout: {min(10, interval_s):g}s}}\n"
        f"scrape_configs: [{{job_name: dcgm, static_configs: [{{targets: {listed}}}]}}]\n",
        encoding="utf-8",
    )
    promtool = shutil.which("promtool")
    if promtool is not None:
        subprocess.run(
            [promtool, "check", "config", "--syntax-only", str(path)],
            check=True,
            capture_output=True,
        )
    (folder / "steward.toml").write_text(f"[collect]\ntargets = {listed}\n", encoding="utf-8")
    return path


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """All processes of a run, and where each tells of itself."""

    pids: Mapping[str, int]
    warehouse_url: str
    prometheus_url: str
    collector_url: str

    def scrape_counts(self) -> dict[str, float]:
        """Return how many scrapes each scraper has done."""
        return {
            "prometheus": counted(
                self.prometheus_url, "prometheus_target_interval_length_seconds_count"
            ),
            "collector": counted(self.collector_url, "steward_collect_scrapes_total"),
        }

    def full_reads(self) -> float:
        """Return how many texts the collector had to read in full."""
        return counted(self.collector_url, "steward_collect_full_reads_total")


def counted(url: str, name: str) -> float:
    """Return the sum of a metric's series on a page of metrics."""
    with urllib.request.urlopen(f"{url}/metrics", timeout=5) as page:  # noqa: S310 - our own address
        text = page.read().decode()
    found = re.findall(rf"^{name}(?:{{[^}}]*}})? (\S+)$", text, re.MULTILINE)
    return sum(map(float, found))


@contextmanager
def everything(
    folder: Path, targets: list[str], *, port: int, interval_s: float
) -> Iterator[Running]:
    """Run farm, Prometheus, warehouse and collector for the length of the block."""
    prometheus = shutil.which("prometheus")
    if prometheus is None:
        raise SystemExit("prometheus is not installed; on Debian: apt-get install prometheus")
    configuration = write_configuration(folder, targets, interval_s=interval_s)
    ports = [free_port() for _ in range(3)]
    urls = [f"http://127.0.0.1:{one}" for one in ports]
    with ExitStack() as stack:

        def start(name: str, *command: str) -> int:
            return stack.enter_context(running(name, *command, folder=folder)).pid

        pids = {"farm": start("farm", *FARM, f"--targets={len(targets)}", f"--port={port}")}
        pids["warehouse"] = start("warehouse", *STEWARD, "warehouse", f"--port={ports[0]}", *DATA)
        wait_for_text(folder / "farm.log", "ready")
        wait_for_answer(f"{urls[0]}/health")
        pids["prometheus"] = start(
            "prometheus",
            prometheus,
            f"--config.file={configuration}",
            f"--storage.tsdb.path={folder / 'tsdb'}",
            f"--web.listen-address=127.0.0.1:{ports[1]}",
        )
        pids["collector"] = start(
            "collector",
            *(*STEWARD, "collect", *DATA, "--config=steward.toml"),
            f"--interval-s={interval_s:g}",
            f"--timeout-s={min(10, interval_s):g}",
            f"--warehouse-url={urls[0]}",
            f"--metrics-port={ports[2]}",
        )
        wait_for_answer(f"{urls[1]}/-/ready")
        wait_for_answer(f"{urls[2]}/metrics")
        yield Running(
            pids=pids, warehouse_url=urls[0], prometheus_url=urls[1], collector_url=urls[2]
        )


def measure(everyone: Running, *, target_count: int, length_s: float) -> dict[str, Usage]:
    """Return CPU seconds per cycle over this time, and memory at its end.

    A cycle is one scrape of every target: each scraper's own count of scrapes tells how many there
    were. Farm and warehouse serve the collector's cycles.
    """
    began = everyone.scrape_counts()
    before = {name: usage_of(pid) for name, pid in everyone.pids.items()}
    time.sleep(length_s)
    after = {name: usage_of(pid) for name, pid in everyone.pids.items()}
    ended = everyone.scrape_counts()
    cycles = {name: (ended[name] - began[name]) / target_count for name in began}
    print(", ".join(f"{name}: {count:.2f} cycles" for name, count in sorted(cycles.items())))
    return {
        name: Usage(
            cpu_s=(after[name].cpu_s - before[name].cpu_s) / cycles.get(name, cycles["collector"]),
            resident_bytes=after[name].resident_bytes,
        )
        for name in everyone.pids
    }


def stored(url: str) -> tuple[int, int, int]:
    """Return how many device rows, good scrapes and failed scrapes the warehouse holds."""
    with closing(connect(url)) as warehouse:
        (counts,) = warehouse.sql(
            "select (select count(*) from device_sample) as sample_count,"
            " (select count(*) from scrape where is_ok) as good_count,"
            " (select count(*) from scrape where not is_ok) as failed_count"
        ).to_pylist()
    return counts["sample_count"], counts["good_count"], counts["failed_count"]


def report(used: Mapping[str, Usage]) -> float:
    """Print what each process used; return the collector's share of Prometheus's CPU time."""
    print("per cycle                          CPU s    resident MB")
    for name in ("collector", "warehouse", "prometheus", "farm"):
        one = used[name]
        print(f"  {name:<28}{one.cpu_s:>10.3f}{one.resident_bytes / 1e6:>15,.0f}")
    reference_s = used["prometheus"].cpu_s
    ratio = used["collector"].cpu_s / reference_s
    both = (used["collector"].cpu_s + used["warehouse"].cpu_s) / reference_s
    print(f"collector / Prometheus:              {ratio:.2f} (aim {AIM_RATIO:g}, at most 1.5)")
    print(f"collector + warehouse / Prometheus:  {both:.2f}")
    return ratio


def main() -> int:
    """Print the figures; fail above the floor, and where scrapes failed or rows are missing."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--targets", type=int, default=1_000)
    arguments.add_argument("--interval-s", type=float, default=15.0)
    arguments.add_argument("--warm-cycles", type=int, default=3)
    arguments.add_argument("--cycles", type=int, default=4)
    arguments.add_argument("--keep", type=Path, help="folder to leave logs and data in")
    chosen = arguments.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(OPEN_FILES, hard), hard))
    port = free_port()
    targets = [f"{address(number)}:{port}" for number in range(chosen.targets)]
    lines = chosen.targets * GPU_COUNT * len(METRICS)
    print(f"{chosen.targets:,} targets every {chosen.interval_s:g} s, {lines:,} lines per cycle")
    with ExitStack() as stack:
        folder = chosen.keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        everyone = stack.enter_context(
            everything(folder, targets, port=port, interval_s=chosen.interval_s)
        )
        time.sleep(chosen.warm_cycles * chosen.interval_s)
        earlier, full_before = stored(everyone.warehouse_url), everyone.full_reads()
        used = measure(
            everyone, target_count=len(targets), length_s=chosen.cycles * chosen.interval_s
        )
        full_count = everyone.full_reads() - full_before
        now = stored(everyone.warehouse_url)
    rows, good, failed = (after - before for after, before in zip(now, earlier, strict=True))
    print(
        f"stored meanwhile: {rows:,} device rows of {good:,} good scrapes, {failed:,} failed; "
        f"{full_count:,.0f} read in full"
    )
    ratio = report(used)
    is_whole = failed == 0 and rows == good * GPU_COUNT
    return 0 if is_whole and ratio <= FLOOR_RATIO else 1


if __name__ == "__main__":
    raise SystemExit(main())
