"""The real command as a process of its own, and how to wait for what it does."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PATIENCE_S = 40.0


def environment() -> dict[str, str]:
    """Return this process's environment without any setting of Steward."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith("STEWARD_")}
    return kept | {"XDG_CONFIG_HOME": os.devnull, "PYTHONPATH": str(ROOT)}


def steward(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run one command to its end."""
    return subprocess.run(
        [sys.executable, "-m", "steward", *arguments],
        cwd=cwd,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )


@dataclass(slots=True)
class RunningSteward:
    """One command that runs; its log grows in a file."""

    process: subprocess.Popen[bytes]
    log_path: Path

    @property
    def log(self) -> str:
        """Return what it wrote so far."""
        return self.log_path.read_text(encoding="utf-8")

    def stop(self, which: signal.Signals = signal.SIGTERM) -> int:
        """Send the signal; return the exit code."""
        self.process.send_signal(which)
        return self.process.wait(timeout=PATIENCE_S)

    def wait_for(self, condition: Callable[[], bool]) -> None:
        """Return once the condition holds; fail with the log when the process ends before."""
        until_s = time.monotonic() + PATIENCE_S
        while not condition():
            assert self.process.poll() is None, self.log
            assert time.monotonic() < until_s, self.log
            time.sleep(0.05)


@contextmanager
def running_steward(*arguments: str, cwd: Path, name: str) -> Iterator[RunningSteward]:
    """Run a command for the length of the block; kill what is left of it."""
    log_path = cwd / f"{name}.log"
    with log_path.open("wb") as log_file:
        process = subprocess.Popen(
            [sys.executable, "-m", "steward", *arguments],
            cwd=cwd,
            env=environment(),
            stdout=log_file,
            stderr=subprocess.STDOUT,
        )
    try:
        yield RunningSteward(process, log_path)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(timeout=PATIENCE_S)


def free_port() -> int:
    """Return a port that was free a moment ago."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port
