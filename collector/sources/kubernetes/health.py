"""What the collector knows of its own view of the cluster, kind by kind."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from collector.sources.kubernetes.api_error import ApiError, ApiFault


@dataclass(slots=True, kw_only=True)
class ResourceHealth:
    """How one kind of objects is seen; instants are None where it never happened."""

    name: str
    """As people have it: ``pods``, ``jobsets.jobset.x-k8s.io``, ``pods (app=exporter)``."""
    is_optional: bool
    version: str | None = None
    """The version that is read; None where the server serves none."""
    is_served: bool | None = None
    """None until the server was asked."""
    is_permitted: bool | None = None
    """None until it was tried."""
    is_synced: bool = False
    """Whether a complete list was read since the start."""
    object_count: int = 0
    list_count: int = 0
    """Complete lists, the first included."""
    watch_count: int = 0
    """Watches opened."""
    silent_count: int = 0
    """Watches given up since nothing came for long."""
    undecodable_count: int = 0
    """Objects left out since they are not of the expected shape."""
    error_count: int = 0
    last_list_at: datetime | None = None
    last_event_at: datetime | None = None
    """The last event or bookmark of a watch."""
    error: str | None = None
    """What is wrong now; None while it works."""
    hint: str | None = None
    fault: ApiFault | None = None

    def note_error(self, error: ApiError) -> None:
        """Keep a failure and count it."""
        self.error_count += 1
        self.error, self.hint, self.fault = error.message, error.hint, error.fault
        if error.fault is ApiFault.FORBIDDEN:
            self.is_permitted = False

    def forget_error(self) -> bool:
        """Note that the failure is over; return whether there was one."""
        had_failed = self.fault is not None
        self.error, self.hint, self.fault = None, None, None
        return had_failed
