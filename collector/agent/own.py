"""What the agent says of itself: its version, its cycles, what it costs."""

from __future__ import annotations

import os
import resource
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from collector.agent import names
from collector.agent.text import Page, label_text
from steward.version import __version__

_SELF: Final = Path("/proc/self")
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")


@dataclass(slots=True, kw_only=True)
class CycleTally:
    """How reading went so far."""

    started_at_s: float
    """Unix time at which the agent started."""
    count: int = 0
    last_began_at_s: float = 0.0
    """Unix time."""
    last_ended_s: float = 0.0
    """On the monotonic clock."""
    last_took_s: float = 0.0


def write_own(tally: CycleTally, *, to: Page) -> None:
    """Write the agent's own metrics."""
    to.add(names.AGENT_INFO, 1, label_text({"version": __version__}))
    to.add(names.CYCLES, tally.count)
    to.add(names.CYCLE_DURATION, tally.last_took_s)
    to.add(names.CYCLE_TIME, tally.last_began_at_s)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    to.add(names.CPU, usage.ru_utime + usage.ru_stime)
    to.add(names.RESIDENT, resident_bytes())
    to.add(names.STARTED, tally.started_at_s)
    to.add(names.OPEN_FILES, sum(1 for _ in (_SELF / "fd").iterdir()))


def resident_bytes() -> int:
    """Return this process's resident memory."""
    pages = (_SELF / "statm").read_text(encoding="ascii").split()[1]
    return int(pages) * _PAGE_BYTES
