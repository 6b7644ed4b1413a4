"""A real Prometheus server on 127.0.0.1, as a distribution packages it, and made-up history for it.

``prometheus_server`` scrapes what it is told and answers until its block ends; its data lives in a
temporary folder. ``history_blocks`` writes months of samples as Prometheus's own blocks, so that a
server can be started on a past that nobody waited for.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from tests.conftest import skip_aloud
from tests.support.cluster_processes import Program, Programs, free_ports, wait_until

PROGRAM = "prometheus"
PACKAGE_HINT = "apt-get install --no-install-recommends prometheus, and stop its service"
READY_PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PrometheusOptions:
    """What a server may be told beside its targets and its interval."""

    labels: Mapping[str, str] = field(default_factory=dict)
    """Target labels, as discovery adds them."""
    honor_labels: bool = False
    flags: tuple[str, ...] = ()
    """Further command-line flags, such as ``--query.max-samples=1000``."""
    blocks: Path | None = None
    """A folder of blocks from ``history_blocks``; copied, so it may be used again."""


PLAIN = PrometheusOptions()


@dataclass(slots=True, kw_only=True)
class PrometheusServer:
    """A running server."""

    url: str
    program: Program

    @property
    def pid(self) -> int:
        """Return the process, for those who measure it."""
        return self.program.process.pid

    def query(self, expression: str) -> list[dict[str, object]]:
        """Return the result of an instant query now."""
        answer = httpx.get(f"{self.url}/api/v1/query", params={"query": expression}, timeout=10)
        answer.raise_for_status()
        result: list[dict[str, object]] = answer.json()["data"]["result"]
        return result

    def wait_for(self, expression: str, *, patience_s: float = READY_PATIENCE_S) -> None:
        """Return once the expression has a result: ``count_over_time(up[1m]) >= 10``."""
        wait_until(lambda: bool(self.query(expression)), what=expression, patience_s=patience_s)


@contextmanager
def prometheus_server(
    targets: Sequence[str], scrape_interval_s: float = 1.0, *, options: PrometheusOptions = PLAIN
) -> Iterator[PrometheusServer]:
    """Run a server for the length of the block.

    Args:
        targets: ``http://host:port/path``; each distinct path is a job of its own, named ``gpu``
            for ``/metrics`` and ``gpu/path`` for another.
        scrape_interval_s: for all targets; below the interval's half a scrape times out.
        options: labels, flags and made-up history.
    """
    program = program_path(PROGRAM)
    with tempfile.TemporaryDirectory(prefix="steward-prometheus-") as name:
        folder = Path(name)
        if options.blocks is not None:
            shutil.copytree(options.blocks, folder / "tsdb")
        config = folder / "prometheus.json"
        config.write_text(_config(targets, scrape_interval_s, options), encoding="utf-8")
        (port,) = free_ports(1)
        programs = Programs(folder)
        try:
            started = programs.start(
                PROGRAM,
                program,
                f"--config.file={config}",
                f"--storage.tsdb.path={folder / 'tsdb'}",
                f"--web.listen-address=127.0.0.1:{port}",
                "--log.level=warn",
                *options.flags,
            )
            url = f"http://127.0.0.1:{port}"
            started.wait_ready(lambda: _is_ready(url), patience_s=READY_PATIENCE_S)
            yield PrometheusServer(url=url, program=started)
        finally:
            programs.stop_all()


def history_blocks(folder: Path, openmetrics_lines: Sequence[str]) -> Path:
    """Write samples with their own times as blocks; return the folder of blocks.

    Args:
        folder: where to work; left with the blocks.
        openmetrics_lines: OpenMetrics without ``# EOF``: ``name{labels} value seconds``.
    """
    promtool = program_path("promtool")
    text, blocks = folder / "history.om", folder / "blocks"
    text.write_text("\n".join([*openmetrics_lines, "# EOF"]) + "\n", encoding="utf-8")
    subprocess.run(
        [promtool, "tsdb", "create-blocks-from", "openmetrics", str(text), str(blocks)],
        check=True,
        capture_output=True,
        timeout=120,
    )
    return blocks


def program_path(name: str) -> str:
    """Return the program; skip aloud where the machine has none."""
    found = shutil.which(name)
    if found is None:
        skip_aloud(f"no {name} on this machine ({PACKAGE_HINT})")
        raise AssertionError
    return found


def _is_ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/-/ready", timeout=5).status_code == httpx.codes.OK
    except httpx.HTTPError:
        return False


def _config(targets: Sequence[str], scrape_interval_s: float, options: PrometheusOptions) -> str:
    """Return the configuration; JSON is YAML too."""
    by_path: dict[tuple[str, str], list[str]] = {}
    for target in targets:
        parts = urlsplit(target)
        by_path.setdefault((parts.scheme, parts.path or "/metrics"), []).append(parts.netloc)
    interval = f"{round(scrape_interval_s * 1000)}ms"
    jobs = [
        {
            "job_name": "gpu" if path == "/metrics" else f"gpu{path}",
            "scheme": scheme,
            "metrics_path": path,
            "honor_labels": options.honor_labels,
            "static_configs": [{"targets": hosts, "labels": dict(options.labels)}],
        }
        for (scheme, path), hosts in by_path.items()
    ]
    everywhere = {"scrape_interval": interval, "scrape_timeout": interval}
    return json.dumps({"global": everywhere, "scrape_configs": jobs})
