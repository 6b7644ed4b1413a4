"""What changed about devices since the last scrape: new facts, XIDs, devices gone and back.

An exporter's XID gauge shows the last code for ever, so only a code that was not shown before is an
event. A device is called lost only after it was missing twice while others were there: after an
exporter's restart a scrape may be incomplete, and an empty one says nothing of any device.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final, TypeAlias

from collector.normalize.identity import VENDOR, DeviceKey, Facts
from collector.normalize.rows import Gathering
from collector.normalize.state import KnownDevice, NormalizeState, merged_facts

SOURCE: Final = "exposition"
LOST_AFTER_SCRAPES: Final = 2
_RowValues: TypeAlias = dict[str, Any]


@dataclass(slots=True, kw_only=True)
class Changes:
    """Rows for ``device`` and ``device_event``, without cluster and source."""

    at: datetime
    devices: list[_RowValues] = field(default_factory=list)
    events: list[_RowValues] = field(default_factory=list)

    def add_device(self, key: DeviceKey, known: KnownDevice) -> None:
        """Add a device's present facts."""
        facts = {name: getattr(known.facts, name) for name in Facts.__dataclass_fields__}
        self.devices.append(
            facts
            | {
                "observed_at": self.at,
                "node": known.node,
                "device_uuid": key[0],
                "instance_id": key[1],
                "vendor": VENDOR,
                "is_present": known.is_present,
            }
        )

    def add_event(
        self, key: DeviceKey, *, node: str, kind: str, code: int | None, detail: str | None
    ) -> None:
        """Add something that happened to a device or an instance."""
        self.events.append(
            {
                "occurred_at": self.at,
                "node": node,
                "device_uuid": key[0],
                "instance_id": key[1],
                "kind": kind,
                "code": code,
                "detail": detail,
            }
        )


def changes(gathering: Gathering, *, state: NormalizeState, at: datetime) -> Changes:
    """Return what changed, and remember it."""
    found = Changes(at=at)
    known_boards = {uuid for uuid, instance_id in state.devices if instance_id is None}
    shown = dict(_shown_devices(gathering))
    for key, (node, facts) in shown.items():
        before = state.devices.get(key)
        was_present = before is not None and before.is_present
        news = state.learn(key, node=node, facts=facts)
        if news is not None:
            found.add_device(key, news)
            if not was_present and key[0] in known_boards:
                _note_appearance(found, key, news)
    if shown:
        _note_missing(found, state, shown=set(shown))
    _note_xids(found, gathering, state=state)
    return found


def _shown_devices(gathering: Gathering) -> Iterator[tuple[DeviceKey, tuple[str, Facts]]]:
    """Yield every device of this scrape with its node and facts, boards of instances included."""
    shown: dict[DeviceKey, tuple[str, Facts]] = {}
    for labels in gathering.seen:
        identity = gathering.identity(labels)
        if identity is None:
            continue
        board, facts = (identity.device_uuid, None), identity.facts
        if identity.instance_id is not None:
            instance = (identity.device_uuid, identity.instance_id)
            _add_facts(shown, instance, node=identity.node, facts=facts)
            facts = replace(facts, mig_profile=None, sm_share_ratio=None, memory_share_ratio=None)
        _add_facts(shown, board, node=identity.node, facts=facts)
    for key, (node, facts) in shown.items():
        row = gathering.rows.get(key)
        total = None if row is None else row.memory_total_bytes
        yield key, (node, facts if total is None else replace(facts, memory_total_bytes=total))


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


def _note_xids(found: Changes, gathering: Gathering, *, state: NormalizeState) -> None:
    for uuid, codes in gathering.xids.items():
        before = state.xids.get(uuid)
        state.xids[uuid] = frozenset(codes)
        for code in sorted(set(codes) - (before or frozenset())):
            detail = codes[code] or (None if before is not None else "shown at first sight")
            node = gathering.rows[uuid, None].node
            found.add_event((uuid, None), node=node, kind="xid", code=code, detail=detail)
