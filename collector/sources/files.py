"""Reads whole files from outside, plain or gzip, and tells what is wrong with them."""

from __future__ import annotations

import gzip
import io
import zlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from steward.errors import InputError
from steward.units import MIB_BYTES

LIMIT_BYTES: Final = 256 * MIB_BYTES
"""Of a file, and of what it decompresses to: far above any trace, and a few KB may be a bomb."""
_GZIP_MAGIC: Final = b"\x1f\x8b"
FETCH_AGAIN: Final = "fetch or copy the file again, it looks cut off or altered; nothing was stored"


def read_contents(path: Path, what: str) -> bytes:
    """Return the file's bytes; gzip is told by its first bytes and undone.

    Args:
        path: the file.
        what: what the file should be, for messages: "openb node list".

    Raises:
        InputError: it cannot be read, is broken gzip, or larger than the limit.
    """
    try:
        with path.open("rb") as file:
            stored = file.read(LIMIT_BYTES + 1)
    except OSError as error:
        raise InputError(
            f"cannot read {path}: {error.strerror or error}",
            hint=f"give the path of a readable {what}, plain or .gz",
        ) from error
    contents = _gunzipped(stored, path) if stored.startswith(_GZIP_MAGIC) else stored
    if len(contents) > LIMIT_BYTES:
        raise InputError(
            f"{path} holds more than {LIMIT_BYTES:,} bytes",
            hint=f"give an {what}, or split it; nothing was stored",
        )
    return contents


def _gunzipped(stored: bytes, path: Path) -> bytes:
    """Return what the gzip holds, at most one byte more than is accepted."""
    try:
        with gzip.open(io.BytesIO(stored)) as stream:
            return stream.read(LIMIT_BYTES + 1)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"{path} is broken gzip: {error}", hint=FETCH_AGAIN) from error


def modified_at(path: Path) -> datetime:
    """Return when the file was last changed."""
    return datetime.fromtimestamp(path.stat().st_mtime, UTC)
