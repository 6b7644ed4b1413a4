"""Which target's rows of a device are kept where several targets show the same one.

Two exporters on a node, or an exporter and a federating server, would count every device twice. The
first target that shows a device keeps it for as long as it goes on showing it; one whose exporter
tells more takes it over. Kept for all targets of a collector together; pure, no clock of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

FRESH_FOR: Final = timedelta(minutes=2)
"""Several scrapes of the default interval: one that was missed changes nothing."""


@dataclass(slots=True)
class _Claim:
    target: str
    precedence: int
    shown_at: datetime


@dataclass(slots=True)
class DeviceClaims:
    """The target that each device belongs to.

    Args:
        fresh_for: how long a device stays with a target that does not show it any more.
    """

    fresh_for: timedelta = FRESH_FOR
    _claims: dict[str, _Claim] = field(default_factory=dict)
    _rivals: dict[tuple[str, str], Counter[str]] = field(default_factory=dict)

    def foreign(
        self, devices: Iterable[str], *, target: str, precedence: int, at: datetime
    ) -> frozenset[str]:
        """Return which of these devices belong to another target; claim the others.

        Args:
            devices: UUIDs that the target shows now.
            target: the scraped address.
            precedence: how much its exporter tells, see ``Dialect.precedence``.
            at: when it was scraped.
        """
        return frozenset(
            device
            for device in devices
            if not self._claim(device, target=target, precedence=precedence, at=at)
        )

    def rivals(self) -> dict[tuple[str, str], int]:
        """Return pairs of targets (owner, other) with how many devices both show."""
        return {pair: len(devices) for pair, devices in self._rivals.items()}

    def release(self, target: str) -> None:
        """Forget what a target owns: it is not scraped any more."""
        self._claims = {
            device: claim for device, claim in self._claims.items() if claim.target != target
        }
        self._rivals = {
            pair: devices for pair, devices in self._rivals.items() if target not in pair
        }

    def _claim(self, device: str, *, target: str, precedence: int, at: datetime) -> bool:
        """Tell whether the target may keep the device."""
        claim = self._claims.get(device)
        if claim is None:
            self._claims[device] = _Claim(target, precedence, at)
            return True
        if claim.target == target:
            claim.precedence, claim.shown_at = precedence, max(at, claim.shown_at)
            return True
        is_stale = at - claim.shown_at > self.fresh_for
        if is_stale or precedence > claim.precedence:
            self._claims[device] = _Claim(target, precedence, at)
            if not is_stale:
                self._note_rivals(device, owner=target, other=claim.target)
            return True
        self._note_rivals(device, owner=claim.target, other=target)
        return False

    def _note_rivals(self, device: str, *, owner: str, other: str) -> None:
        self._rivals.setdefault((owner, other), Counter())[device] += 1
