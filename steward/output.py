"""Results go to a file or to standard output; a file appears whole or not at all."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from steward.errors import InputError, UsageError

HIDDEN_CHARACTERS = {
    **dict.fromkeys([*range(0x20), *range(0x7F, 0xA0)], "\ufffd"),
    **dict.fromkeys([0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)], "\ufffd"),
    **dict.fromkeys(range(0xD800, 0xE000), "\ufffd"),
}
"""What moves a terminal's cursor, colours it, turns the direction of what follows, or is half a
character, which no output takes."""


def visible(text: str) -> str:
    """Return one line of text in which stored names can neither act nor hide."""
    return text.translate(HIDDEN_CHARACTERS)


def write_output(path: Path | None, content: bytes | str) -> None:
    """Write the content to the path, or to standard output where the path is None.

    A new file takes the place of an old one only once it is complete and on disk.

    Raises:
        UsageError: the folder does not exist, or the path is a folder.
        InputError: the disk is full, or the path may not be written.
    """
    if path is None:
        _print(content)
        return
    _refuse_impossible(path)
    try:
        _replace(path, content.encode() if isinstance(content, str) else content)
    except OSError as error:
        raise InputError(
            f"cannot write {path}: {error.strerror or error}",
            hint="free some space or choose another place with --output; nothing was left behind",
        ) from error


def abandon_stdout() -> None:
    """Point standard output at nothing, so that flushing it at exit does not fail again."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, sys.stdout.fileno())
    os.close(nothing)


def _print(content: bytes | str) -> None:
    try:
        if isinstance(content, str):
            sys.stdout.write(content)
        else:
            sys.stdout.flush()
            sys.stdout.buffer.write(content)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        abandon_stdout()
        raise InputError(
            f"cannot write standard output: {error.strerror or error}",
            hint="free some space, or name another place with --output",
        ) from error


def _refuse_impossible(path: Path) -> None:
    if path.is_dir():
        raise UsageError(f"{path} is a folder", hint="name a file inside it")
    if not path.parent.is_dir():
        raise UsageError(
            f"the folder {path.parent} does not exist",
            hint=f"create it with `mkdir -p {path.parent}`, or name another file",
        )


def _replace(path: Path, content: bytes) -> None:
    """Write beside the target, then rename over it; devices and pipes are written in place."""
    if path.exists() and not path.is_file():
        path.write_bytes(content)
        return
    target = path.resolve()
    mode = target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask()
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    partial = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
