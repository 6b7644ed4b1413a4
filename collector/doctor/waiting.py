"""What waits on disk, who holds it and whether there is room; nothing is changed there."""

from __future__ import annotations

import fcntl
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote

from collector.doctor.codes import Code
from collector.doctor.finding import Finding, counted, fault, fine, gap, note
from collector.spool import spool_path
from steward.ids import ClusterName
from steward.settings import Settings

DISK_LOW_BYTES: Final = 1_073_741_824
"""Less free space is used up within hours."""
FULL_RATIO: Final = 0.5
"""Of what may wait: from here on the loss of samples is near."""
_COUNT: Final = "select coalesce(sum(row_count), 0), coalesce(sum(length(body)), 0) from batch"


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """What the spool of a cluster holds."""

    row_count: int
    byte_count: int
    is_held: bool
    """A running collector has it open."""


def folder_findings(settings: Settings) -> list[Finding]:
    """Return how it goes with the data folder: the spool, what waits in it, and the disk."""
    folder = nearest_folder(settings.data_dir)
    if not os.access(folder, os.W_OK | os.X_OK) or not folder.is_dir():
        return [_unwritable(settings.data_dir)]
    path = spool_path(settings.data_dir, ClusterName(settings.cluster))
    limit_bytes = settings.collect.spool_limit_bytes
    try:
        waiting = read_waiting(path)
    except (sqlite3.Error, OSError) as error:
        return [_unreadable(path, error)]
    found = (
        [] if waiting is None else list(spool_findings(waiting, path=path, limit_bytes=limit_bytes))
    )
    room_bytes = limit_bytes - (0 if waiting is None else waiting.byte_count)
    free_bytes = shutil.disk_usage(folder).free
    return [*found, *disk_findings(folder, free_bytes=free_bytes, room_bytes=room_bytes)]


def nearest_folder(path: Path) -> Path:
    """Return the path, or the nearest part of it that exists."""
    return next(part for part in (path, *path.absolute().parents) if part.exists())


def read_waiting(path: Path) -> Waiting | None:
    """Return what waits in a spool; None where there is none.

    Raises:
        sqlite3.Error: it is no spool, or damaged.
        OSError: it may not be read.
    """
    if not path.exists():
        return None
    is_held = _is_held(path.with_suffix(".lock"))
    with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)) as connection:
        row_count, byte_count = connection.execute(_COUNT).fetchone()
    return Waiting(row_count=row_count, byte_count=byte_count, is_held=is_held)


def _is_held(lock: Path) -> bool:
    if not lock.exists():
        return False
    descriptor = os.open(lock, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def spool_findings(waiting: Waiting, *, path: Path, limit_bytes: int) -> Iterator[Finding]:
    """Yield what a spool's content means.

    Args:
        waiting: what it holds.
        path: names it.
        limit_bytes: what may wait.
    """
    rows = counted(waiting.row_count, "row")
    if waiting.is_held:
        message = f"a collector of this cluster runs; {rows} not yet delivered"
        yield fine(Code.SPOOL_IN_USE, str(path), message=message)
    elif waiting.row_count:
        yield gap(
            Code.SPOOL_WAITS,
            str(path),
            message=f"{rows} not yet delivered, and no collector runs that would do it",
            remedy="start `steward collect` with the same data folder and cluster",
        )
    if waiting.byte_count >= FULL_RATIO * limit_bytes:
        yield gap(
            Code.SPOOL_FILLS,
            str(path),
            message=f"what waits takes {waiting.byte_count:,} of {limit_bytes:,} bytes; beyond "
            "that the oldest samples are given up",
            remedy="bring the warehouse back, or raise collect.spool_limit_bytes",
        )


def disk_findings(folder: Path, *, free_bytes: int, room_bytes: int) -> Iterator[Finding]:
    """Yield whether the disk has room.

    Args:
        folder: on the disk.
        free_bytes: of the disk.
        room_bytes: what may still be added to the spool.
    """
    if free_bytes < DISK_LOW_BYTES:
        yield gap(
            Code.DISK_SHORT,
            str(folder),
            message=f"its disk has only {free_bytes:,} bytes free",
            remedy="free space, or choose another disk with --data-dir",
        )
    elif free_bytes < room_bytes:
        yield note(
            Code.DISK_SHORT,
            str(folder),
            message=f"its disk has {free_bytes:,} bytes free, and the spool may grow by "
            f"{room_bytes:,}",
            remedy="free space, or lower collect.spool_limit_bytes",
        )


def _unwritable(folder: Path) -> Finding:
    return fault(
        Code.FOLDER_UNWRITABLE,
        str(folder),
        message="this user may not write there: rows cannot wait on disk",
        remedy="choose another folder with --data-dir, or grant write permission",
    )


def _unreadable(path: Path, error: Exception) -> Finding:
    return fault(
        Code.SPOOL_UNREADABLE,
        str(path),
        message=f"it cannot be read: {error}",
        remedy="see that this user may read it; if it is damaged move it away: what it holds is "
        "then not delivered",
    )
