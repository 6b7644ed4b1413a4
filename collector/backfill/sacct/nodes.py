"""Expands Slurm's lists of nodes: ``gpu[001-004,007],login1``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product
from typing import Final

from collector.backfill.sacct.lines import Line
from collector.backfill.sacct.values import is_nothing

_LARGEST_LIST: Final = 100_000
_NONE: Final = "none assigned"
_NAME: Final = re.compile(r"(?:[^\[\],\s]+|\[[^\[\]]*\])+")
_PIECE: Final = re.compile(r"\[(?P<ranges>[^\[\]]*)\]|(?P<plain>[^\[\]]+)")
_RANGE: Final = re.compile(r"(?P<first>[0-9]{1,12})(?:-(?P<last>[0-9]{1,12}))?")


def node_names(line: Line) -> tuple[str, ...]:
    """Return the nodes of a line's ``NodeList`` in their order; none where none was assigned.

    Raises:
        InputError: it is no list of nodes, or longer than any machine has.
    """
    text = line.text("NodeList")
    if is_nothing(text) or text.lower() == _NONE:
        return ()
    names: list[str] = []
    at = 0
    while at < len(text):
        found = _NAME.match(text, at)
        if found is None or text[found.end() : found.end() + 1] not in {"", ","}:
            raise line.fault("NodeList", f"is no list of nodes: {text[:60]!r}")
        names.extend(_expanded(found[0], line))
        at = found.end() + 1
    if text.endswith(","):
        raise line.fault("NodeList", f"is no list of nodes: {text[:60]!r}")
    return tuple(names)


def _expanded(name: str, line: Line) -> Iterator[str]:
    """Yield the names that one name with brackets stands for, leading zeros kept."""
    choices: list[list[str]] = []
    count = 1
    for piece in _PIECE.finditer(name):
        ranges = piece["ranges"]
        choice = [piece["plain"]] if ranges is None else _numbers(ranges, line)
        count *= len(choice)
        if count > _LARGEST_LIST:
            raise line.fault("NodeList", f"has more than {_LARGEST_LIST:,} nodes")
        choices.append(choice)
    return ("".join(parts) for parts in product(*choices))


def _numbers(ranges: str, line: Line) -> list[str]:
    numbers: list[str] = []
    for piece in ranges.split(","):
        found = _RANGE.fullmatch(piece.strip())
        if found is None:
            raise line.fault("NodeList", f"has no range of numbers: [{ranges[:40]}]")
        first, last = found["first"], found["last"] or found["first"]
        if int(last) - int(first) >= _LARGEST_LIST:
            raise line.fault("NodeList", f"has more than {_LARGEST_LIST:,} nodes")
        numbers.extend(str(n).zfill(len(first)) for n in range(int(first), int(last) + 1))
    return numbers
