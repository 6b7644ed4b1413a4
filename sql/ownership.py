"""Who owns a data directory: a lock that dies with its process, and a card with its address.

The lock (``owner.lock``) is the truth; the card (``owner.json``) only says where to ask.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from steward.errors import OwnedElsewhereError, WarehouseError

LOCK_FILE: Final = "owner.lock"
CARD_FILE: Final = "owner.json"
PATIENCE_S: Final = 2.0
"""How long a taken directory is waited for: a collector opens it for each flush, then lets go."""
RETRY_S: Final = 0.05


class OwnerLock:
    """An exclusive lock on a data directory, held until ``release`` or the end of the process."""

    def __init__(self, descriptor: int) -> None:
        """Keep the locked file's descriptor."""
        self._descriptor: int | None = descriptor

    @classmethod
    def acquire(cls, data_dir: Path, *, patience_s: float = PATIENCE_S) -> OwnerLock:
        """Lock the directory, made when absent; wait a moment for one who holds it briefly.

        Args:
            data_dir: the directory.
            patience_s: how long to wait for its owner to let go.

        Raises:
            OwnedElsewhereError: it is locked; the owner's process id is named where known.
            WarehouseError: the directory cannot be written.
        """
        try:
            data_dir.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(data_dir / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise WarehouseError(
                f"cannot use the data directory {data_dir}: {error.strerror}",
                hint="choose another with --data-dir, or grant write permission",
            ) from error
        if not _is_taken_over(descriptor, patience_s=patience_s):
            owner = os.pread(descriptor, 32, 0).decode(errors="replace").strip()
            os.close(descriptor)
            raise _owned(data_dir, owner=owner)
        _write_pid(descriptor)
        return cls(descriptor)

    def release(self) -> None:
        """Let go; a second call does nothing."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _is_taken_over(descriptor: int, *, patience_s: float) -> bool:
    """Tell whether the lock could be had before the patience ended."""
    gives_up_at_s = time.monotonic() + patience_s
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= gives_up_at_s:
                return False
            time.sleep(RETRY_S)
        else:
            return True


def _write_pid(descriptor: int) -> None:
    """Leave the process id for the next one's message; a full disk must not keep us out."""
    try:
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    except OSError:
        return


def _owned(data_dir: Path, *, owner: str) -> OwnedElsewhereError:
    who = f"process {owner}" if owner.isdigit() else "another process"
    return OwnedElsewhereError(
        f"the warehouse in {data_dir} is owned by {who}",
        hint="ask the owner with --warehouse-url, stop it, or choose another --data-dir",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerCard:
    """Where a running owner answers."""

    pid: int
    url: str
    started_at: str
    """ISO 8601, UTC."""

    def is_alive(self) -> bool:
        """Tell whether a process with that id runs."""
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True


def write_card(data_dir: Path, card: OwnerCard) -> None:
    """Write the card so that readers see all of it or nothing."""
    draft = data_dir / f"{CARD_FILE}.{os.getpid()}"
    draft.write_text(json.dumps(asdict(card)), encoding="utf-8")
    draft.replace(data_dir / CARD_FILE)


def read_card(data_dir: Path) -> OwnerCard | None:
    """Return the card of a live owner; None when there is none, or none to believe.

    The card only says where to ask: whoever owns the directory nevertheless is told by the lock.
    """
    try:
        fields = json.loads((data_dir / CARD_FILE).read_text(encoding="utf-8"))
        card = OwnerCard(
            pid=int(fields["pid"]), url=str(fields["url"]), started_at=str(fields["started_at"])
        )
        return card if card.is_alive() else None
    except (OSError, ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return None


def remove_card(data_dir: Path, card: OwnerCard) -> None:
    """Remove the card if it is still this owner's."""
    if read_card(data_dir) == card:
        (data_dir / CARD_FILE).unlink(missing_ok=True)
