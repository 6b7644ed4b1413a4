"""Codes that exporters show become events, once each.

A gauge of the last code shows it for ever, so only a code that was not shown before is an event. A
counter of codes tells repetitions too: where a device has one, the gauge adds nothing.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Final

from collector.normalize.changes import Changes
from collector.normalize.state import NormalizeState
from collector.normalize.told import Told
from collector.normalize.vendors.ascend import NPU_ERROR

_CLEARED_WHEN_ABSENT: Final = frozenset({NPU_ERROR})
"""Kinds of which an exporter prints no line at all while there is no error."""
_FIRST_SIGHT: Final = "shown at first sight"


def note_codes(
    found: Changes,
    told: Told,
    *,
    state: NormalizeState,
    known_boards: AbstractSet[str],
    shown: AbstractSet[str],
) -> None:
    """Add an event for each code that a device did not show in the scrape before.

    Args:
        found: takes the events.
        told: what this scrape shows.
        state: what the one before showed; changed in place.
        known_boards: devices that were known before this scrape.
        shown: devices of this scrape: silence about any other means nothing.
    """
    counted = {(uuid, kind) for uuid, kind, _ in state.counts}
    for key, codes in told.codes.items():
        uuid, kind = key
        before = state.codes.get(key)
        was_known = before is not None or (kind in _CLEARED_WHEN_ABSENT and uuid in known_boards)
        state.codes[key] = frozenset(codes)
        if key in counted:
            continue
        for code in sorted(set(codes) - (before or frozenset())):
            detail = codes[code] or (None if was_known else _FIRST_SIGHT)
            found.add_event(
                (uuid, None), node=told.nodes[uuid], kind=kind, code=code, detail=detail
            )
    for key in state.codes.keys() - told.codes.keys():
        if key[0] in shown and key[1] in _CLEARED_WHEN_ABSENT:
            state.codes[key] = frozenset()


def note_counts(
    found: Changes,
    told: Told,
    *,
    state: NormalizeState,
    known_boards: AbstractSet[str],
    shown: AbstractSet[str],
) -> None:
    """Add an event for each code that happened again; a count that fell is a window that passed.

    The arguments are those of ``note_codes``.
    """
    for key, count in told.counts.items():
        uuid, kind, code = key
        if count > state.counts.get(key, 0):
            detail = None if uuid in known_boards else _FIRST_SIGHT
            found.add_event(
                (uuid, None), node=told.nodes[uuid], kind=kind, code=code, detail=detail
            )
        state.counts[key] = count
    for key in state.counts.keys() - told.counts.keys():
        if key[0] in shown:
            state.counts[key] = 0
