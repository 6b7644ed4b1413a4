"""Profiling that was there and is not any more: after an XID it stays away until it is resumed.

A measure that comes blank, or not at all, is null and never 0; this makes it an event besides.
"""

from __future__ import annotations

from typing import Final

from collector.normalize.changes import Changes
from collector.normalize.metric import MEASURES
from collector.normalize.rows import Gathering
from collector.normalize.state import KnownDevice, NormalizeState

LOST_AFTER_SCRAPES: Final = 2
_PROFILING: Final = tuple(
    MEASURES.index(name)
    for name in (
        "graphics_active_ratio",
        "sm_active_ratio",
        "sm_occupancy_ratio",
        "tensor_active_ratio",
        "dram_active_ratio",
        "fp64_active_ratio",
        "fp32_active_ratio",
        "fp16_active_ratio",
        "integer_active_ratio",
    )
)


def note_profiling(found: Changes, gathering: Gathering, *, state: NormalizeState) -> None:
    """Add an event where profiling stays away for the second scrape, and where it is back."""
    divided = {uuid for uuid, instance_id in gathering.rows if instance_id is not None}
    for key, row in gathering.rows.items():
        known = state.devices.get(key)
        if known is None:
            continue
        cells = row.cells
        present = [index for index in _PROFILING if cells[index] is not None]
        if key[1] is None and key[0] in divided:
            known.profiled, known.unprofiled_scrapes = frozenset(), 0
        elif len(present) >= len(known.profiled) and known.profiled.issubset(present):
            if known.unprofiled_scrapes >= LOST_AFTER_SCRAPES:
                _add(found, known, key=key, kind="profiling_returned", missing=frozenset())
            known.unprofiled_scrapes = 0
            if len(present) > len(known.profiled):
                known.profiled = frozenset(present)
        else:
            known.unprofiled_scrapes += 1
            if known.unprofiled_scrapes == LOST_AFTER_SCRAPES:
                missing = known.profiled.difference(present)
                _add(found, known, key=key, kind="profiling_lost", missing=missing)


def _add(
    found: Changes,
    known: KnownDevice,
    *,
    key: tuple[str, int | None],
    kind: str,
    missing: frozenset[int],
) -> None:
    names = ", ".join(MEASURES[index] for index in sorted(missing))
    detail = f"without a value in {LOST_AFTER_SCRAPES} scrapes: {names}" if names else None
    found.add_event(key, node=known.node, kind=kind, code=None, detail=detail)
