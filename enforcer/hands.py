"""What an act is done with, and how far it may reach."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from enforcer.gateway.port import Gateway, Target, Write
from enforcer.ledger import Ledger
from enforcer.notify import Channel
from steward.clock import Clock
from steward.errors import ConflictError

VERIFY: Final = timedelta(minutes=2)
"""Pods have 30 s to end by default; a checkpoint at the end takes longer."""
INTERRUPTED_AFTER: Final = timedelta(seconds=45)
"""By then no write that an earlier leader began can still be on its way: three times a lease."""


ATTEMPTS: Final = 4
"""Controllers write an object's status at any time; what was read is then a moment too old."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """What the operator allows."""

    kinds: frozenset[str] = frozenset()
    """Kinds of objects that may be written: ``Deployment``, or ``batch/v1/Job``."""
    verify: timedelta = VERIFY
    """Within this time pods must be gone; later the act has failed."""
    interrupted_after: timedelta = INTERRUPTED_AFTER
    """An act that is not seen on its object for so long was never written."""
    undo_after: timedelta | None = None
    """After this time acts are taken back by themselves; None: never."""
    low_priority_class: str | None = None
    """Kueue's WorkloadPriorityClass for work that may be preempted."""
    is_dry_run: bool = False

    def may_write(self, target: Target) -> bool:
        """Tell whether objects of this kind may be written."""
        return bool(self.kinds & {target.kind, f"{target.api_version}/{target.kind}"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Hands:
    """The ports of one replica, or of one person's command."""

    gateway: Gateway
    ledger: Ledger
    clock: Clock
    channels: tuple[Channel, ...]
    """Ways to reach owners, in the order in which they are used."""
    reach: Reach


def carry_out(write: Write, *, again: Callable[[], Write | None], gateway: Gateway) -> None:
    """Rehearse a write and make it.

    Args:
        write: of an object as it was read.
        again: the same write of the object as it is now, after a conflict; None: it would not be
            the same any more.
        gateway: to the cluster.

    Raises:
        ConflictError: the object is gone, is another, or says something else now.
        RefusedError, DeniedError, FencedError, ClusterError: as the gateway.
    """
    for attempt in range(1, ATTEMPTS + 1):
        try:
            gateway.rehearse(write)
            gateway.write(write)
        except ConflictError:
            fresh = again() if attempt < ATTEMPTS else None
            if fresh is None:
                raise
            write = fresh
        else:
            return
