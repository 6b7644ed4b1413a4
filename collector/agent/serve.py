"""What ``steward agent`` does: read the node in its rhythm, serve the last page, until stopped."""

from __future__ import annotations

import ctypes
import gc
import logging
import math
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Final

from collector.agent.cycle import Cycles
from collector.agent.web import Answer, Route, exposition, serving
from collector.sources.nvml.node import NvmlNode
from collector.sources.podresources.client import PodResourcesClient
from steward.command import Context
from steward.errors import INTERRUPTED_EXIT_CODE, SettingsError
from steward.settings.model import AgentSettings

log = logging.getLogger(__name__)

STALE_AFTER_INTERVALS: Final = 3
"""A page older than this is no reading of now: the probe fails."""


def serve(context: Context) -> int:
    """Serve this machine's GPUs until SIGTERM or Ctrl-C; return the exit code.

    Raises:
        ModuleNotFoundError: a package of the optional part is missing; the front door names it.
        SourceError: there is no NVIDIA driver, or it does not answer.
        SettingsError: the deadline does not fit into the interval.
        PortInUseError: the port is taken.
    """
    settings = context.settings.agent
    if settings.deadline_s >= settings.interval_s:
        raise SettingsError(
            f"agent.deadline_s ({settings.deadline_s:g}) is not below agent.interval_s "
            f"({settings.interval_s:g})",
            hint="choose a shorter deadline or a longer interval",
        )
    if find_spec("h2") is None:
        raise ModuleNotFoundError("No module named 'h2'", name="h2")
    gpus = NvmlNode(deadline_s=settings.deadline_s, proc_root=settings.proc)
    gpu_count = gpus.open()
    give_memory_back()
    kubelet = PodResourcesClient(settings.pod_resources, timeout_s=settings.deadline_s)
    kubelet.load()
    give_memory_back()
    node = node_name(settings)
    cycles = Cycles(node, gpus=gpus, kubelet=kubelet, proc_root=settings.proc, clock=context.clock)
    try:
        return _serve_cycles(cycles, settings=settings, gpu_count=gpu_count)
    finally:
        cycles.close()
        gpus.close()


def node_name(settings: AgentSettings) -> str:
    """Return the node's name: the setting, else ``$NODE_NAME`` of the pod, else the host's name."""
    return settings.node or os.environ.get("NODE_NAME") or socket.gethostname()


def _serve_cycles(cycles: Cycles, *, settings: AgentSettings, gpu_count: int) -> int:
    cycles.run()
    give_memory_back()
    cycles.write_page()
    limit_s = STALE_AFTER_INTERVALS * settings.interval_s
    with (
        _stop_signals() as stop,
        serving(settings.host, settings.port, routes=_routes(cycles, limit_s)) as port,
    ):
        log.info("serving %d GPUs on http://%s:%d/metrics", gpu_count, settings.host, port)
        _cycle_until(stop.event, cycles, interval_s=settings.interval_s)
    return INTERRUPTED_EXIT_CODE if stop.which is signal.SIGINT else 0


def _cycle_until(stop: threading.Event, cycles: Cycles, *, interval_s: float) -> None:
    """Read at the interval; a slot that passed while a reading ran is left out."""
    slot_s = time.monotonic()
    while True:
        late_s = time.monotonic() - slot_s
        slot_s += max(1, math.ceil(late_s / interval_s)) * interval_s
        if stop.wait(max(0.0, slot_s - time.monotonic())):
            return
        cycles.run()


def _routes(cycles: Cycles, limit_s: float) -> Mapping[str, Route]:
    def health() -> Answer:
        age_s = time.monotonic() - cycles.tally.last_ended_s
        if age_s > limit_s:
            return Answer(f"last reading {age_s:.0f} s ago\n".encode(), "503 Service Unavailable")
        return Answer(b"ok\n")

    return {
        "/metrics": lambda: exposition(cycles.text),
        "/healthz": health,
        "/": lambda: Answer(b"steward agent: see /metrics and /healthz\n"),
    }


class _Stop:
    """Set by the first signal, which it keeps."""

    def __init__(self) -> None:
        self.event = threading.Event()
        self.which: signal.Signals | None = None

    def hear(self, number: int, _frame: object) -> None:
        self.which = self.which or signal.Signals(number)
        self.event.set()


@contextmanager
def _stop_signals() -> Iterator[_Stop]:
    stop = _Stop()
    before = {each: signal.signal(each, stop.hear) for each in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stop
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def give_memory_back() -> None:
    """Return to the system what loading modules took and freed: more than 10 MB each time."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:  # glibc only
        trim(0)
