"""Rows about devices that are written when something changed, and only then."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, TypeAlias

from collector.holdings import DeviceKey
from collector.normalize.identity import Facts
from collector.normalize.state import KnownDevice

SOURCE: Final = "exposition"
_LARGEST_CODE: Final = 2**31 - 1
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
                "is_present": known.is_present,
            }
        )

    def add_event(
        self, key: DeviceKey, *, node: str, kind: str, code: int | None, detail: str | None
    ) -> None:
        """Add something that happened to a device or an instance.

        A code beyond 32 bits, as some NPU errors are, is told in the detail only.
        """
        fits = code is None or code <= _LARGEST_CODE
        self.events.append(
            {
                "occurred_at": self.at,
                "node": node,
                "device_uuid": key[0],
                "instance_id": key[1],
                "kind": kind,
                "code": code if fits else None,
                "detail": detail if fits else f"0x{code:X}{f' {detail}' if detail else ''}",
            }
        )
