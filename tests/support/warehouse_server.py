"""A real owner process on a free port, and a writer process to kill."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sql.client import RemoteWarehouse, connect

START_LIMIT_S = 30.0
POLL_S = 0.005


@dataclass(slots=True, kw_only=True)
class Owner:
    """A running ``steward warehouse``."""

    process: subprocess.Popen[bytes]
    url: str
    ready_after_s: float
    """From the start of the process to its first answer."""

    def kill(self) -> None:
        """End it as ``kill -9`` does."""
        self.process.kill()
        self.process.wait()


def start_owner(data_dir: Path, environ: Mapping[str, str] | None = None) -> Owner:
    """Start an owner process and return once it answers."""
    started_s = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "steward", "warehouse", "--port", "0", "--data-dir", str(data_dir)],
        env={**os.environ, **(environ or {})},
    )
    while time.monotonic() - started_s < START_LIMIT_S and process.poll() is None:
        url = _address(data_dir, process.pid)
        if url is not None and _answers(url):
            after_s = time.monotonic() - started_s
            return Owner(process=process, url=url, ready_after_s=after_s)
        time.sleep(POLL_S)
    process.kill()
    raise AssertionError(f"no answer from the owner process, exit code {process.wait()}")


def _address(data_dir: Path, pid: int) -> str | None:
    try:
        card = json.loads((data_dir / "owner.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return str(card["url"]) if card["pid"] == pid else None


def _answers(url: str) -> bool:
    remote = connect(url)
    try:
        return remote.is_ready()
    finally:
        remote.close()


@contextmanager
def owner(data_dir: Path, environ: Mapping[str, str] | None = None) -> Iterator[Owner]:
    """Run an owner process for the length of a ``with`` block."""
    running = start_owner(data_dir, environ)
    try:
        yield running
    finally:
        running.process.terminate()
        running.process.wait(timeout=20)


@contextmanager
def remote(data_dir: Path) -> Iterator[RemoteWarehouse]:
    """Return a client of a real owner process."""
    with owner(data_dir) as running:
        client = connect(running.url)
        try:
            yield client
        finally:
            client.close()
