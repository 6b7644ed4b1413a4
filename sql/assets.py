"""The .sql files that ship inside this package, read as text."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib.resources import files


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlFile:
    """One file of statements."""

    name: str
    """The file's name without its extension."""
    text: str

    @property
    def checksum(self) -> str:
        """Return the SHA-256 of the text, hexadecimal."""
        return hashlib.sha256(self.text.encode()).hexdigest()


def sql_files(folder: str) -> tuple[SqlFile, ...]:
    """Return the files of one folder below this package, ascending by name.

    Args:
        folder: relative to the package, with ``/`` between its parts.
    """
    directory = files("sql").joinpath(*folder.split("/"))
    found = [entry for entry in directory.iterdir() if entry.name.endswith(".sql")]
    return tuple(
        SqlFile(name=entry.name.removesuffix(".sql"), text=entry.read_text(encoding="utf-8"))
        for entry in sorted(found, key=lambda entry: entry.name)
    )
