"""Reads the text that sacct prints: its header, its lines, and where each of them stands.

sacct does not quote: a job name may hold the separator. Where only one selected column holds free
text, the line can be read all the same; where two do, it cannot, and the error says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

from collector.sources.files import read_contents
from steward.errors import InputError

STANDARD_INPUT: Final = Path("-")
NEEDED: Final = ("JobID", "Submit", "Start", "End", "State")
WANTED: Final = (
    "JobID,JobName,User,Account,Partition,QOS,State,Submit,Eligible,Start,End,"
    "ReqTRES,AllocTRES,NodeList,Priority,Restarts"
)
COMMAND: Final = f"sacct --allusers --duplicates --parsable2 --format={WANTED}"
_FREE_TEXT: Final = frozenset(
    {
        "jobname",
        "comment",
        "admincomment",
        "systemcomment",
        "submitline",
        "workdir",
        "extra",
        "failednode",
        "reason",
        "wckey",
    }
)
_SEPARATOR: Final = "|"
_NOTHING_STORED: Final = "nothing was stored"


@dataclass(frozen=True, slots=True)
class Line:
    """One line with its place, so that a fault in it can be told."""

    source: str
    number: int
    fields: dict[str, str]
    """By column name in small letters."""

    def text(self, column: str) -> str:
        """Return a field; blank where the column was not selected."""
        return self.fields.get(column.lower(), "").strip()

    def fault(self, column: str, what: str) -> InputError:
        """Return the error for this field, to be raised by the caller."""
        return InputError(
            f"{self.source}:{self.number}: column {column} {what}",
            hint=f"correct that line, or run sacct again; {_NOTHING_STORED}",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SacctText:
    """A text with a header that has the needed columns."""

    source: str
    digest: str
    columns: tuple[str, ...]
    """In small letters."""
    is_trailing: bool
    """Each line ends with a separator, as ``--parsable`` prints it."""
    body: tuple[str, ...]
    """The lines below the header."""
    first_number: int
    """The number of the first of them."""

    def lines(self) -> Iterator[Line]:
        """Yield the lines; blank ones are left out.

        Raises:
            InputError: a line has too few or too many fields.
        """
        for number, text in enumerate(self.body, start=self.first_number):
            if text.strip():
                yield Line(self.source, number, self._fields(text, number))

    def _fields(self, text: str, number: int) -> dict[str, str]:
        pieces = text.split(_SEPARATOR)
        if self.is_trailing:
            if pieces[-1].strip():
                raise self._line_fault(number, "does not end with the separator as its header does")
            pieces.pop()
        if len(pieces) > len(self.columns):
            pieces = self._rejoined(pieces, number)
        if len(pieces) < len(self.columns):
            what = f"has {len(pieces)} fields where the header has {len(self.columns)}"
            raise self._line_fault(number, what)
        return dict(zip(self.columns, pieces, strict=True))

    def _rejoined(self, pieces: list[str], number: int) -> list[str]:
        """Return the fields where separators inside the one column of free text are undone."""
        free = [place for place, name in enumerate(self.columns) if name in _FREE_TEXT]
        extra = len(pieces) - len(self.columns)
        if len(free) != 1:
            what = f"has {len(pieces)} fields where the header has {len(self.columns)}"
            raise self._line_fault(number, what)
        (place,) = free
        joined = _SEPARATOR.join(pieces[place : place + extra + 1])
        return [*pieces[:place], joined, *pieces[place + extra + 1 :]]

    def _line_fault(self, number: int, what: str) -> InputError:
        return InputError(
            f"{self.source}:{number}: {what}",
            hint="a job's name may hold the separator or a line break: correct that line, or "
            f"leave JobName and other free text out of --format; {_NOTHING_STORED}",
        )


def read_sacct(path: Path) -> SacctText:
    """Return the text; its header is checked, its lines are not yet.

    Args:
        path: plain or .gz; ``-`` is standard input.

    Raises:
        InputError: unreadable, not UTF-8, empty, or not what ``sacct --parsable2`` prints.
    """
    source = "standard input" if path == STANDARD_INPUT else str(path)
    contents = read_contents(Path("/dev/stdin") if path == STANDARD_INPUT else path, "sacct text")
    try:
        text = contents.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        number = contents.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"{source}:{number}: not UTF-8 (byte 0x{contents[error.start]:02x})",
            hint=f"save the text as UTF-8, or run sacct again; {_NOTHING_STORED}",
        ) from error
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    first = next((place for place, line in enumerate(lines) if line.strip()), None)
    if first is None:
        raise InputError(f"{source} is empty", hint=f"fill it with `{COMMAND}`")
    columns, is_trailing = _columns(lines[first], source=source, number=first + 1)
    return SacctText(
        source=source,
        digest=sha256(contents).hexdigest(),
        columns=columns,
        is_trailing=is_trailing,
        body=tuple(lines[first + 1 :]),
        first_number=first + 2,
    )


def _columns(header: str, *, source: str, number: int) -> tuple[tuple[str, ...], bool]:
    """Return the header's names in small letters, and whether each line ends with a separator."""
    names = [name.strip() for name in header.split(_SEPARATOR)]
    is_trailing = len(names) > 1 and not names[-1]
    if is_trailing:
        names.pop()
    fault = _header_fault(names, header)
    if fault is not None:
        raise InputError(f"{source}:{number}: {fault}", hint=f"run `{COMMAND}`; {_NOTHING_STORED}")
    return tuple(name.lower() for name in names), is_trailing


def _header_fault(names: list[str], header: str) -> str | None:
    known = [name.lower() for name in names]
    missing = [name for name in NEEDED if name.lower() not in known]
    repeated = sorted({name for name in names if known.count(name.lower()) > 1})
    if len(names) == 1 and len(header.split()) > 1:
        return "columns of fixed width, which sacct cuts values to: it needs --parsable2"
    if re.match(r"\d+([_+.]|$)", names[0]):
        return "no header line: sacct was run with --noheader"
    if missing:
        return f"not the header of sacct: missing {', '.join(missing)}"
    return f"repeated columns: {', '.join(repeated)}" if repeated else None
