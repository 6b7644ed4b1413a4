"""What changed about devices since the last scrape: new facts, devices gone and back.

A device is called lost only after it was missing twice while others were there: after an exporter's
restart a scrape may be incomplete, and an empty one says nothing of any device. Where the source
itself says that a device does not answer, it is lost at once.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Final

from collector.holdings import DeviceKey
from collector.normalize.changes import SOURCE, Changes
from collector.normalize.events import note_codes, note_counts
from collector.normalize.identity import Facts
from collector.normalize.profiling import note_profiling
from collector.normalize.rows import Gathering
from collector.normalize.state import KnownDevice, NormalizeState, merged_facts

__all__ = ["LOST_AFTER_SCRAPES", "SOURCE", "changes"]

LOST_AFTER_SCRAPES: Final = 2


def changes(gathering: Gathering, *, state: NormalizeState, at: datetime) -> Changes:
    """Return what changed, and remember it."""
    found = Changes(at=at)
    known_boards = {uuid for uuid, instance_id in state.devices if instance_id is None}
    shown = _shown_devices(gathering)
    for key, (node, facts) in shown.items():
        before = state.devices.get(key)
        was_present = before is not None and before.is_present
        row = gathering.rows.get(key)
        total = None if row is None else row.memory_total_bytes
        news = state.learn(key, node=node, facts=facts, memory_total_bytes=total)
        if news is not None:
            found.add_device(key, news)
            if not was_present and key[0] in known_boards:
                _note_appearance(found, key, news)
    _note_gone(found, gathering, state=state)
    if shown:
        _note_missing(found, state, shown=set(shown))
    note_profiling(found, gathering, state=state)
    told, boards = gathering.told, {uuid for uuid, _ in shown}
    note_counts(found, told, state=state, known_boards=known_boards, shown=boards)
    note_codes(found, told, state=state, known_boards=known_boards, shown=boards)
    return found


def _shown_devices(gathering: Gathering) -> dict[DeviceKey, tuple[str, Facts]]:
    """Return every device of this scrape with its node and facts, boards of instances included."""
    shown: dict[DeviceKey, tuple[str, Facts]] = {}
    gone = gathering.told.gone
    for identity in gathering.seen.values():
        if identity is None or identity.is_shadow or identity.device_uuid in gone:
            continue
        board, facts = (identity.device_uuid, None), identity.facts
        if identity.instance_id is not None:
            instance = (identity.device_uuid, identity.instance_id)
            _add_facts(shown, instance, node=identity.node, facts=facts)
            facts = replace(facts, mig_profile=None, sm_share_ratio=None, memory_share_ratio=None)
        _add_facts(shown, board, node=identity.node, facts=facts)
    return shown


def _add_facts(
    shown: dict[DeviceKey, tuple[str, Facts]], key: DeviceKey, *, node: str, facts: Facts
) -> None:
    known = shown.get(key)
    shown[key] = (node, facts if known is None else merged_facts(known[1], facts))


def _note_appearance(found: Changes, key: DeviceKey, known: KnownDevice) -> None:
    if key[1] is None:
        found.add_event(key, node=known.node, kind="returned", code=None, detail=None)
    else:
        detail = f"instance {key[1]} ({known.facts.mig_profile or 'unknown profile'}) appeared"
        found.add_event(key, node=known.node, kind="mig_changed", code=None, detail=detail)


def _note_gone(found: Changes, gathering: Gathering, *, state: NormalizeState) -> None:
    """Take devices for lost of which the source says that they do not answer."""
    for (uuid, instance_id), known in state.devices.items():
        if uuid not in gathering.told.gone or not known.is_present:
            continue
        known.is_present = False
        found.add_device((uuid, instance_id), known)
        if instance_id is None:
            detail = f"the source says: {gathering.told.gone[uuid]}"
            found.add_event((uuid, None), node=known.node, kind="lost", code=None, detail=detail)


def _note_missing(found: Changes, state: NormalizeState, *, shown: set[DeviceKey]) -> None:
    """Count devices that others outlived; the second time in a row they are gone."""
    for key, known in state.devices.items():
        if key in shown or not known.is_present:
            continue
        known.missed_scrapes += 1
        if known.missed_scrapes < LOST_AFTER_SCRAPES:
            continue
        known.is_present = False
        found.add_device(key, known)
        if key[1] is None:
            detail = f"missing in {LOST_AFTER_SCRAPES} scrapes that show other devices"
            found.add_event(key, node=known.node, kind="lost", code=None, detail=detail)
        elif (key[0], None) in shown:
            detail = f"instance {key[1]} ({known.facts.mig_profile or 'unknown profile'}) is gone"
            found.add_event(key, node=known.node, kind="mig_changed", code=None, detail=detail)
