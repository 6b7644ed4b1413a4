"""Which lines of a text end in a plain number, and whom each speaks of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from collector.sources.exposition import NO_LABELS, Exposition
from collector.sources.exposition_labels import Labels

NUMBER_BYTES: Final = b"0123456789.+-eE"
"""What a plain number is made of: no word, no digit separator, no space."""
Series: TypeAlias = tuple[str, Labels]
"""Metric name and label set."""
_COMMENT_START: Final = ord("#")
_NAME_STARTS: Final = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_:{")


class Line(NamedTuple):
    """A line whose number may change without the line meaning something else."""

    place: int
    """Among the lines of the text."""
    head: bytes
    """All of it up to the number."""


def numbered_lines(
    text: bytes, exposition: Exposition, *, blocks: Mapping[str, Labels]
) -> dict[Series, Line] | None:
    """Return the lines that end in a plain number, the first of each series, in order.

    Only lines that begin with a known name and a known block are among them: whatever plain number
    such a line ends in, the parser reads the same series.

    Args:
        text: as it came.
        exposition: what the parser read in it.
        blocks: label blocks that the parser remembers.

    Returns:
        None where lines were dropped or have times of their own: such a text is read in full.
    """
    lines, samples = text.split(b"\n"), exposition.samples
    places = list(_sample_places(lines))
    if len(places) != len(samples) or any(sample[3] is not None for sample in samples):
        return None
    heads = _Heads(blocks)
    found: dict[Series, Line | None] = {}
    for place, (name, labels, _, _) in zip(places, samples, strict=True):
        series = (name, labels)
        if series not in found:
            found[series] = _line(place, lines[place], head=heads.of(name, labels))
    return {series: line for series, line in found.items() if line is not None}


def _line(place: int, line: bytes, *, head: bytes | None) -> Line | None:
    """Return the line where it is this beginning and a plain number."""
    if head is None or not line.startswith(head):
        return None
    number = line[len(head) :]
    return None if not number or number.translate(None, NUMBER_BYTES) else Line(place, head)


class _Heads:
    """How the lines of known series begin."""

    def __init__(self, blocks: Mapping[str, Labels]) -> None:
        self._names: dict[str, bytes] = {}
        self._blocks = {
            labels: b"{%b} " % raw.encode("utf-8", "surrogateescape")
            for raw, labels in blocks.items()
        }
        self._blocks[NO_LABELS] = b" "

    def of(self, name: str, labels: Labels) -> bytes | None:
        """Return the one beginning by which the parser knows the series; None: there is none."""
        block = self._blocks.get(labels)
        if block is None:
            return None
        written = self._names.get(name)
        if written is None:
            written = self._names[name] = name.encode("utf-8", "surrogateescape")
        return written + block


def _sample_places(lines: Sequence[bytes]) -> Iterator[int]:
    """Yield the places of the lines that the parser reads samples in: no blanks, no comments."""
    for place, line in enumerate(lines):
        if not line or line[0] == _COMMENT_START:
            continue
        if line[0] in _NAME_STARTS or _is_odd_sample(line, is_first=place == 0):
            yield place


def _is_odd_sample(line: bytes, *, is_first: bool) -> bool:
    text = line.decode("utf-8", "surrogateescape")
    if is_first:
        text = text.removeprefix("\ufeff")
    return bool(text) and not text.isspace() and not text.lstrip(" \t").startswith("#")
