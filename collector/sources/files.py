"""Reads whole files from outside, plain or gzip, and tells what is wrong with them."""

from __future__ import annotations

import gzip
import zlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from steward.errors import InputError

_GZIP_MAGIC: Final = b"\x1f\x8b"
FETCH_AGAIN: Final = "fetch or copy the file again, it looks cut off or altered; nothing was stored"


def read_contents(path: Path, what: str) -> bytes:
    """Return the file's bytes; gzip is told by its first bytes and undone.

    Args:
        path: the file.
        what: what the file should be, for messages: "openb node list".

    Raises:
        InputError: it cannot be read, or is broken gzip.
    """
    try:
        stored = path.read_bytes()
    except OSError as error:
        raise InputError(
            f"cannot read {path}: {error.strerror or error}",
            hint=f"give the path of a readable {what}, plain or .gz",
        ) from error
    if not stored.startswith(_GZIP_MAGIC):
        return stored
    try:
        return gzip.decompress(stored)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"{path} is broken gzip: {error}", hint=FETCH_AGAIN) from error


def modified_at(path: Path) -> datetime:
    """Return when the file was last changed."""
    return datetime.fromtimestamp(path.stat().st_mtime, UTC)
