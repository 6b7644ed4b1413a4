"""Reads a CSV that must be exactly what it claims to be: every fault names file, line and column.

The whole file is read and checked before a caller sees the first row, so nothing of a broken file
is ever stored.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

from collector.sources.files import FETCH_AGAIN, read_contents
from steward.errors import InputError

_LARGEST_NUMBER: Final = 2**53


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line with its place, so that a fault in it can be told."""

    path: Path
    line: int
    fields: dict[str, str]

    def text(self, column: str) -> str:
        """Return a field that may not be blank."""
        value = self.fields[column].strip()
        if not value:
            raise self.fault(column, "is blank")
        return value

    def optional_text(self, column: str) -> str | None:
        """Return a field; None where it is blank."""
        return self.fields[column].strip() or None

    def count(self, column: str) -> int:
        """Return a whole number, 0 or more."""
        text = self.text(column)
        if not (text.isascii() and text.removeprefix("-").isdigit()):
            raise self.fault(column, f"is not a whole number: {text[:40]!r}")
        number = int(text[:20])
        if not 0 <= number <= _LARGEST_NUMBER:
            word = "negative" if number < 0 else "too large"
            raise self.fault(column, f"is {word}: {text[:40]}")
        return number

    def fault(self, column: str, what: str) -> InputError:
        """Return the error for this field, to be raised by the caller."""
        return InputError(
            f"{self.path}:{self.line}: column {column} {what}",
            hint="correct that line, or fetch the file again; nothing was stored",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StrictCsv:
    """A file that was read to its end and has the expected columns on every line."""

    path: Path
    digest: str
    """SHA-256 of the contents after decompression: plain and .gz of one text are the same."""
    rows: tuple[Row, ...]


def read_strict_csv(path: Path, *, columns: Sequence[str], what: str) -> StrictCsv:
    """Return the rows of a CSV, plain or gzip, that has exactly these columns.

    Args:
        path: the file.
        columns: the names its header must have, in any order.
        what: what the file should be, for messages: "openb node list".

    Raises:
        InputError: unreadable, cut off (be it in its last field), not UTF-8, wrong columns, a line
            with too few or too many fields, no rows at all.
    """
    contents = read_contents(path, what)
    text = _decoded(contents, path)
    rows = _rows(text, path=path, columns=columns, what=what)
    return StrictCsv(path=path, digest=sha256(contents).hexdigest(), rows=rows)


def _decoded(contents: bytes, path: Path) -> str:
    try:
        return contents.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = contents.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"{path}:{line}: not UTF-8 (byte 0x{contents[error.start]:02x})",
            hint="save the file as UTF-8, or fetch it again; nothing was stored",
        ) from error


def _rows(text: str, *, path: Path, columns: Sequence[str], what: str) -> tuple[Row, ...]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = next(reader, None)
        if header is None:
            raise InputError(f"{path} is empty", hint=f"give an {what}; nothing was stored")
        _check_header(header, path=path, columns=columns, what=what)
        rows = tuple(_row(fields, header, path=path, line=reader.line_num) for fields in reader)
    except csv.Error as error:
        raise InputError(
            f"{path}:{reader.line_num}: not CSV ({error})", hint=FETCH_AGAIN
        ) from error
    if not rows:
        raise InputError(f"{path} has a header and no rows", hint=FETCH_AGAIN)
    if not text.endswith(("\n", "\r")):
        raise InputError(
            f"{path}:{reader.line_num}: the last line does not end, so it may be cut off",
            hint="fetch the file again, or end that line if it is whole; nothing was stored",
        )
    return rows


def _check_header(header: list[str], *, path: Path, columns: Sequence[str], what: str) -> None:
    missing = [name for name in columns if name not in header]
    extra = [name for name in header if name not in columns]
    repeated = sorted({name for name in header if header.count(name) > 1 and name in columns})
    faults = [
        f"{word} {', '.join(repr(name[:40]) for name in names[:12])}"
        for word, names in (("missing", missing), ("unknown", extra), ("repeated", repeated))
        if names
    ]
    if faults:
        raise InputError(
            f"{path}:1: not the columns of an {what}: {'; '.join(faults)}",
            hint=f"the columns must be {','.join(columns)}; nothing was stored",
        )


def _row(fields: list[str], header: list[str], *, path: Path, line: int) -> Row:
    if len(fields) != len(header):
        raise InputError(
            f"{path}:{line}: {len(fields)} fields where the header has {len(header)}",
            hint=FETCH_AGAIN,
        )
    return Row(path=path, line=line, fields=dict(zip(header, fields, strict=True)))
