"""Child processes that live and end together: none outlives the group, or the process itself."""

from __future__ import annotations

import contextlib
import ctypes
import http.client
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import FrameType, TracebackType
from typing import Self

from steward.errors import UnreachableError

POLL_S = 0.1
"""How soon an ended child, a signal or a healthy server is noticed."""
HEALTH_TIMEOUT_S = 2.0
PR_SET_PDEATHSIG = 1
"""``prctl(2)``: the signal a process gets when its parent dies."""


@dataclass(frozen=True, slots=True)
class Ended:
    """A child that ended by itself."""

    name: str
    exit_code: int
    """As shells count: 128 + N for a process that signal N ended."""


class Stopped(Exception):  # noqa: N818  # a request, not a failure
    """The process was asked to stop (Ctrl-C, SIGTERM) while children were running."""

    def __init__(self, number: int) -> None:
        """Keep which signal asked, as the exit code that shells expect of it."""
        super().__init__(f"asked to stop by signal {number}")
        self.exit_code = 128 + number


@dataclass(slots=True, kw_only=True)
class ChildGroup:
    """Children started one after the other and stopped in reverse, on every way out.

    Each child leads a session of its own: Ctrl-C reaches this process only, which then stops the
    children in order. On Linux a child also ends when this process is killed.
    """

    environ: Mapping[str, str]
    """What every child's environment starts from."""
    grace_s: float = 15.0
    """Seconds a child may take to end once asked, before it is killed: a collector takes up to ten
    to deliver what it has read."""
    _running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    _asked_by: int | None = None
    _earlier: dict[int, object] = field(default_factory=dict)

    def __enter__(self) -> Self:
        """Take over the signals that ask this process to stop."""
        for number in (signal.SIGINT, signal.SIGTERM):
            self._earlier[number] = signal.signal(number, self._note_signal)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop every child, then give the signals back."""
        self.stop()
        for number, handler in self._earlier.items():
            signal.signal(number, handler)  # type: ignore[arg-type]  # what signal() itself returned

    def start(
        self, name: str, command: Sequence[str], *, environ: Mapping[str, str] | None = None
    ) -> None:
        """Start a child; it shares this process's terminal."""
        self._running[name] = subprocess.Popen(  # noqa: S603  # our own commands, never a shell
            list(command),
            env={**self.environ, **(environ or {})},
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=die_with_parent(),  # noqa: PLW1509  # only threadless parents start children
        )

    def run(self, name: str, command: Sequence[str]) -> int:
        """Start a child, wait for its end and return its exit code.

        Raises:
            Stopped: the process was asked to stop; the child has been stopped.
        """
        self.start(name, command)
        while (code := self._running[name].poll()) is None:
            self._pause()
        del self._running[name]
        return shell_code(code)

    def wait_healthy(self, name: str, url: str, *, timeout_s: float) -> Ended | None:
        """Wait until the child's address answers 200; return a child that ended instead.

        Raises:
            UnreachableError: no such answer within the time.
            Stopped: the process was asked to stop.
        """
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            if (ended := self.ended()) is not None:
                return ended
            if answers(url):
                return None
            self._pause()
        raise UnreachableError(
            f"the {name} did not answer at {url} within {timeout_s:g} s",
            hint="look at its messages above; --log-level debug shows more",
        )

    def watch(self) -> Ended:
        """Wait until a child ends by itself, and return it.

        Raises:
            Stopped: the process was asked to stop.
        """
        while (ended := self.ended()) is None:
            self._pause()
        return ended

    def ended(self) -> Ended | None:
        """Return the first child found to have ended, or None."""
        for name, process in self._running.items():
            code = process.poll()
            if code is not None:
                return Ended(name, shell_code(code))
        return None

    def stop(self) -> None:
        """Ask each child to end, last started first, and kill it if it does not."""
        while self._running:
            _name, process = self._running.popitem()
            _signal_group(process, signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(self.grace_s)
            _signal_group(process, signal.SIGKILL)
            process.wait()

    def _note_signal(self, number: int, _frame: FrameType | None) -> None:
        self._asked_by = number

    def _pause(self) -> None:
        time.sleep(POLL_S)
        if self._asked_by is not None:
            raise Stopped(self._asked_by)


def _signal_group(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """Signal the child and what it started; all of them may be gone already."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def die_with_parent() -> Callable[[], None] | None:
    """Return what a child calls before it becomes the command, or None where Linux is not.

    Without it a supervisor ended by ``kill -9`` would leave servers behind that hold the ports.
    """
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    parent = os.getpid()

    def ask_kernel() -> None:
        prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:
            os._exit(1)

    return ask_kernel


def shell_code(code: int) -> int:
    """Return a child's exit code as shells count it: 128 + N for signal N."""
    return code if code >= 0 else 128 - code


def answers(url: str) -> bool:
    """Tell whether the address answers 200 now."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=HEALTH_TIMEOUT_S) as response:
            return bool(response.status == 200)
    except (OSError, ValueError, http.client.HTTPException):
        return False
