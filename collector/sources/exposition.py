"""Reads Prometheus text (format 0.0.4, and OpenMetrics leniently): tolerant and fast.

One bad line costs one line, counted with its reason. The text between a line's braces is the same
for every metric of a GPU and in every scrape until its pod changes, so it is read once and looked
up afterwards: keep one ``ExpositionParser`` per target.

Knows nothing of GPUs: what the names mean is decided in ``normalize``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias

from collector.sources.exposition_labels import (
    EXACT_FLOAT_LIMIT,
    Comment,
    Labels,
    is_metric_name,
    read_block,
    read_comment,
    read_timestamp_ms,
    read_value,
)
from steward.errors import InputError

Sample: TypeAlias = tuple[str, Labels, float, int | None]
"""Metric name, labels, value, own timestamp in ms since 1970 (None where the line has none)."""

NO_LABELS: Final = Labels({})
_EXAMPLE_LIMIT: Final = 5
_EXCERPT_LENGTH: Final = 120
_SERIES: Final = re.compile(
    r"""[ \t]*(?P<name>[^\s{}"\#]++)?[ \t]*
    (?:(?P<brace>\{)(?P<block>(?:[^"{}]++|"(?:[^"\\]++|\\.)*+")*+)\})?""",
    re.VERBOSE | re.DOTALL,
)
_READING: Final = re.compile(
    r"""[ \t]*(?P<value>[^\s\#]++)
    (?:[ \t]++(?P<timestamp>[^\s\#]++))?
    (?:[ \t]++\#[ \t]*+\{.*)?[ \t\r]*$""",
    re.VERBOSE | re.DOTALL,
)
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


class Fault(StrEnum):
    """Why a line was dropped."""

    NOT_UTF8 = "not_utf8"
    BAD_NAME = "bad_name"
    BAD_LABELS = "bad_labels"
    NO_VALUE = "no_value"
    BAD_VALUE = "bad_value"
    BAD_TIMESTAMP = "bad_timestamp"
    TRAILING_TEXT = "trailing_text"


@dataclass(frozen=True, slots=True, kw_only=True)
class DroppedLine:
    """One line that could not be read."""

    line_number: int
    fault: Fault
    excerpt: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Exposition:
    """What one text said, in its own names, units and order."""

    samples: list[Sample]
    types: Mapping[str, str]
    """``TYPE`` by metric name, as written: exporters type gauges as counters."""
    helps: Mapping[str, str]
    dropped: Mapping[Fault, int]
    """Dropped lines by reason."""
    dropped_examples: tuple[DroppedLine, ...]
    """The first few of them."""

    @property
    def dropped_line_count(self) -> int:
        """Return how many lines were dropped."""
        return sum(self.dropped.values())


class ExpositionParser:
    """Reads the texts of one target, one after another.

    Remembers label blocks, names and comments of the target. Whenever a new one comes, those that
    the text no longer holds are forgotten, so memory follows what the target shows.
    """

    __slots__ = ("_blocks", "_comments", "_names")

    def __init__(self) -> None:
        """Start with nothing remembered."""
        self._blocks: dict[str, Labels] = {}
        self._names: dict[str, str] = {}
        self._comments: dict[str, Comment | None] = {}

    @property
    def remembered_block_count(self) -> int:
        """Return how many label blocks are kept for the next text."""
        return len(self._blocks)

    @property
    def remembered_blocks(self) -> Mapping[str, Labels]:
        """Return the label blocks of the last text, as written and as read."""
        return self._blocks

    def parse(self, text: str | bytes, *, target: str = "exposition") -> Exposition:
        """Return what the text says.

        Args:
            text: the whole answer; bytes are read as UTF-8, a line with other bytes is dropped.
            target: names the text in an error.

        Raises:
            InputError: the text is not an exposition at all (HTML, JSON, binary).
        """
        page = text if isinstance(text, str) else text.decode("utf-8", "surrogateescape")
        lines = page.removeprefix("\ufeff").split("\n")
        reading = _Reading(
            blocks=self._blocks,
            names=self._names,
            comments=self._comments,
            is_ascii=page.isascii(),
            is_openmetrics=page[-64:].rstrip().endswith("# EOF"),
        )
        reading.read(lines)
        self._comments = reading.new_comments
        self._forget(reading)
        if reading.dropped:
            _refuse_other_text(reading, lines, target=target)
        return _exposition(reading, lines)

    def _forget(self, reading: _Reading) -> None:
        """Drop what this text no longer holds; only needed when something new came in."""
        if not reading.has_news:
            return
        seen_labels = {sample[1] for sample in reading.samples}
        seen_names = {sample[0] for sample in reading.samples}
        self._blocks = {
            raw: labels for raw, labels in self._blocks.items() if labels in seen_labels
        }
        self._names = {name: name for name in self._names if name in seen_names}


class _Reading:
    """One pass over one text."""

    __slots__ = (
        "blocks",
        "comments",
        "dropped",
        "has_news",
        "helps",
        "is_ascii",
        "is_openmetrics",
        "names",
        "new_comments",
        "samples",
        "types",
    )

    def __init__(
        self,
        *,
        blocks: dict[str, Labels],
        names: dict[str, str],
        comments: dict[str, Comment | None],
        is_ascii: bool,
        is_openmetrics: bool,
    ) -> None:
        self.blocks = blocks
        self.names = names
        self.comments = comments
        self.is_ascii = is_ascii
        self.is_openmetrics = is_openmetrics
        self.new_comments: dict[str, Comment | None] = {}
        self.samples: list[Sample] = []
        self.dropped: list[tuple[str, Fault]] = []
        self.types: dict[str, str] = {}
        self.helps: dict[str, str] = {}
        self.has_news = False

    def read(self, lines: Iterable[str]) -> None:
        """Read all lines: known series on the quick path, anything else in full.

        The quick path is right because a remembered block was read in full once: a line that
        starts with a known name, a brace, such a block and ``"} "`` can only be that series.
        """
        append = self.samples.append
        name_of, labels_of = self.names.get, self.blocks.get
        is_ascii = self.is_ascii
        for line in lines:
            head, _, rest = line.partition("{")
            block, _, tail = rest.rpartition("} ")
            name, labels = name_of(head), labels_of(block)
            if name is None or labels is None:
                self._read_other(line)
                continue
            try:
                value = float(tail)
            except ValueError:
                self._read_other(line)
                continue
            if value >= EXACT_FLOAT_LIMIT or "_" in tail or not (is_ascii or tail.isascii()):
                self._read_other(line)
            else:
                append((name, labels, value, None))

    def _read_other(self, line: str) -> None:
        """Read a comment, a blank line or a series in full."""
        if line.startswith("#"):
            self._read_comment(line)
        elif not line or line.isspace():
            return
        elif line.lstrip(" \t").startswith("#"):
            self._read_comment(line.lstrip(" \t"))
        elif not self.is_ascii and _SURROGATE.search(line):
            self.dropped.append((line, Fault.NOT_UTF8))
        else:
            result = self._series(line)
            if isinstance(result, Fault):
                self.dropped.append((line, result))
            else:
                self.samples.append(result)

    def _read_comment(self, line: str) -> None:
        known = self.comments
        comment = known[line] if line in known else read_comment(line)
        self.new_comments[line] = comment
        if comment is not None:
            texts = self.types if comment.kind == "TYPE" else self.helps
            texts[comment.name] = comment.text

    def _series(self, line: str) -> Sample | Fault:
        """Return the line's sample, or why there is none."""
        found = _SERIES.match(line)
        if found is None:  # the pattern also matches nothing; a border for the type checker
            return Fault.BAD_NAME
        name, raw = found["name"], found["block"]
        if raw is None and "{" in line[found.end() :].partition("#")[0]:
            return Fault.BAD_LABELS
        named = self._named(name, raw)
        if isinstance(named, Fault):
            return named
        reading = self._value_and_timestamp(line[found.end() :])
        if isinstance(reading, Fault):
            return reading
        return (*named, *reading)

    def _named(self, name: str | None, raw: str | None) -> tuple[str, Labels] | Fault:
        """Return name and labels of a series, remembered for the next line."""
        labels = NO_LABELS if not raw else self.blocks.get(raw)
        if labels is None:
            block = read_block(raw or "")
            if block is None:
                return Fault.BAD_LABELS
            if block.name is not None:
                return Fault.BAD_NAME if name is not None else (block.name, block.labels)
            labels = block.labels
            self.blocks[raw or ""] = labels
            self.has_news = True
        if name is None or not is_metric_name(name):
            return Fault.BAD_NAME
        if name not in self.names:
            self.names[name] = name
            self.has_news = True
        return self.names[name], labels

    def _value_and_timestamp(self, rest: str) -> tuple[float, int | None] | Fault:
        found = _READING.match(rest)
        if found is None:
            return Fault.TRAILING_TEXT if rest.strip() else Fault.NO_VALUE
        value = read_value(found["value"])
        if value is None:
            return Fault.BAD_VALUE
        token = found["timestamp"]
        if token is None:
            return value, None
        timestamp_ms = read_timestamp_ms(token, is_seconds=self.is_openmetrics)
        return Fault.BAD_TIMESTAMP if timestamp_ms is None else (value, timestamp_ms)


def _exposition(reading: _Reading, lines: list[str]) -> Exposition:
    return Exposition(
        samples=reading.samples,
        types=reading.types,
        helps=reading.helps,
        dropped=Counter(fault for _, fault in reading.dropped),
        dropped_examples=tuple(
            DroppedLine(line_number=lines.index(line) + 1, fault=fault, excerpt=_excerpt(line))
            for line, fault in reading.dropped[:_EXAMPLE_LIMIT]
        ),
    )


def _excerpt(line: str) -> str:
    # Bytes that were not UTF-8 must not travel on as half characters.
    whole = line.encode("utf-8", "replace").decode("utf-8")
    return whole if len(whole) <= _EXCERPT_LENGTH else whole[: _EXCERPT_LENGTH - 1] + "…"


def _refuse_other_text(reading: _Reading, lines: list[str], *, target: str) -> None:
    """Raise where the text is something else: nothing readable, or a bad start and mostly bad."""
    first = next(line for line in lines if line and not line.isspace())
    starts_badly = first == reading.dropped[0][0]
    if reading.samples and not (starts_badly and len(reading.dropped) > len(reading.samples)):
        return
    raise InputError(
        f"{target} is not a Prometheus exposition: {len(reading.dropped)} of its lines cannot be "
        f"read, the first is {_excerpt(first)[:60]!r}",
        hint="give the exporter's own address or text, usually http://HOST:PORT/metrics",
    )
