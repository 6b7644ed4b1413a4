"""What the collector stores to remember over restarts, where it cannot be read any more."""

from __future__ import annotations

from steward.errors import InputError


def unreadable(what: str, error: Exception) -> InputError:
    """Return the failure: what was stored of this is not what this program stores."""
    return InputError(
        f"what the collector remembers of {what} cannot be read: {error!r}",
        hint="move the collector's spool away: it is damaged, or of another version",
    )
