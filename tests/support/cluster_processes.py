"""Upstream programs as processes: free ports, logs in files, and an end that comes in any case.

A small guard process learns each start and each end through a pipe. When the pipe closes, however
the tests ended (also by ``kill -9``), it kills what still runs, and nothing else.
"""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import httpx

START_PATIENCE_S = 60.0
STOP_PATIENCE_S = 15.0
POLL_S = 0.05
LOG_TAIL_LINES = 40
PORTS = range(20_000, 32_000)
"""Below the kernel's ephemeral range, so that no outgoing connection takes a port in between."""

GUARD = """
import os, signal, sys
running = set()
for line in sys.stdin:
    change, pid = line[0], int(line[1:])
    (running.add if change == "+" else running.discard)(pid)
for pid in running:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
"""


class ProgramFailedError(Exception):
    """A program ended or did not become ready; the message ends with the tail of its log."""


def free_ports(count: int) -> list[int]:
    """Return ports of 127.0.0.1 on which nothing listens."""
    found: list[int] = []
    for port in random.SystemRandom().sample(PORTS, k=len(PORTS)):
        try:
            socket.create_server(("127.0.0.1", port)).close()
        except OSError:
            continue
        found.append(port)
        if len(found) == count:
            return found
    raise ProgramFailedError(f"no {count} free ports between {PORTS.start} and {PORTS.stop}")


def wait_until(
    condition: Callable[[], bool], *, what: str, patience_s: float = START_PATIENCE_S
) -> None:
    """Return once the condition holds.

    Raises:
        TimeoutError: it does not hold in time; names what was awaited.
    """
    until_s = time.monotonic() + patience_s
    while not condition():
        if time.monotonic() > until_s:
            raise TimeoutError(f"waited {patience_s:g} s in vain for {what}")
        time.sleep(POLL_S)


def answers(address: str) -> bool:
    """Whether an address answers a plain GET with success now."""
    try:
        return httpx.get(address, trust_env=False).is_success
    except httpx.TransportError:
        return False


@dataclass(slots=True)
class Program:
    """One running program and its log file."""

    name: str
    process: subprocess.Popen[bytes]
    log_path: Path

    @property
    def log_tail(self) -> str:
        """Return the last lines that it wrote."""
        lines = self.log_path.read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join(lines[-LOG_TAIL_LINES:])

    def wait_ready(self, is_ready: Callable[[], bool], *, patience_s: float) -> None:
        """Return once it is ready.

        Raises:
            ProgramFailedError: it ended before, or was not ready in time.
        """

        def ready_or_ended() -> bool:
            return self.process.poll() is not None or is_ready()

        try:
            wait_until(ready_or_ended, what=f"{self.name} to be ready", patience_s=patience_s)
        except TimeoutError as error:
            raise ProgramFailedError(f"{error}; {self.log_path}:\n{self.log_tail}") from None
        self.check()

    def check(self) -> None:
        """Do nothing while it runs.

        Raises:
            ProgramFailedError: it has ended.
        """
        code = self.process.poll()
        if code is not None:
            raise ProgramFailedError(
                f"{self.name} ended with code {code}; {self.log_path}:\n{self.log_tail}"
            )

    @property
    def resident_bytes(self) -> int:
        """Return its resident memory now."""
        pages = Path(f"/proc/{self.process.pid}/statm").read_text(encoding="ascii").split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")


@dataclass(slots=True)
class Programs:
    """Starts programs, remembers them, stops exactly those, the last first."""

    folder: Path
    running: dict[str, Program] = field(default_factory=dict)
    guard: subprocess.Popen[bytes] | None = None

    def start(
        self, name: str, *command: str | Path, environment: Mapping[str, str] | None = None
    ) -> Program:
        """Start a program in a session of its own; a name that ran before goes on in its log."""
        log_path = self.folder / f"{name}.log"
        with log_path.open("ab") as log_file:
            process = subprocess.Popen(
                command,
                cwd=self.folder,
                env={**os.environ, **(environment or {})},
                stdin=subprocess.DEVNULL,
                stdout=log_file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._tell_guard("+", process.pid)
        started = Program(name, process, log_path)
        self.running[name] = started
        return started

    def stop(self, name: str, which: signal.Signals = signal.SIGTERM) -> None:
        """Send the signal and wait for the end; after a while, kill."""
        process = self.running.pop(name).process
        process.send_signal(which)
        try:
            process.wait(timeout=STOP_PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self._tell_guard("-", process.pid)

    def stop_all(self) -> None:
        """Kill what still runs (nothing of it is kept), the last started first, then the guard."""
        for name in reversed(tuple(self.running)):
            self.stop(name, signal.SIGKILL)
        if self.guard is not None and self.guard.stdin is not None:
            self.guard.stdin.close()
            self.guard.wait(timeout=STOP_PATIENCE_S)
            self.guard = None

    def _tell_guard(self, change: str, pid: int) -> None:
        if self.guard is None:
            self.guard = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", GUARD],
                stdin=subprocess.PIPE,
                start_new_session=True,
            )
        assert self.guard.stdin is not None
        self.guard.stdin.write(f"{change}{pid}\n".encode())
        self.guard.stdin.flush()
