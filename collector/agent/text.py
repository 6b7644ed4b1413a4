"""Prometheus' text format, writing only (version 0.0.4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_ESCAPES: Final = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


class Kind(StrEnum):
    """A family's type."""

    GAUGE = "gauge"
    COUNTER = "counter"


@dataclass(frozen=True, slots=True)
class Family:
    """One metric: its name, type and help."""

    name: str
    kind: Kind
    help: str


def label_text(labels: Mapping[str, str | int | None]) -> str:
    """Return the labels as they stand between the braces; None is an empty value."""
    return ",".join(
        f'{name}="{"" if value is None else str(value).translate(_ESCAPES)}"'
        for name, value in labels.items()
    )


class Page:
    """The text of one answer, gathered by family and written in the order of first mention."""

    def __init__(self) -> None:
        """Start empty."""
        self._lines: dict[Family, list[str]] = {}

    def add(self, family: Family, value: float, labels: str = "") -> None:
        """Add one sample.

        Args:
            family: whose sample.
            value: finite.
            labels: from ``label_text``.
        """
        braces = f"{{{labels}}}" if labels else ""
        self._lines.setdefault(family, []).append(f"{family.name}{braces} {value!r}\n")

    def text(self) -> str:
        """Return the whole page, each family with its help and type."""
        return "".join(
            f"# HELP {family.name} {family.help}\n# TYPE {family.name} {family.kind}\n"
            + "".join(lines)
            for family, lines in self._lines.items()
        )
