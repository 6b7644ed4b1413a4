"""The pieces of one exposition line: its label block, its value, its timestamp, its comment.

Nothing here keeps state; the parser in ``exposition`` decides what is read and what is cached.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

EXACT_FLOAT_LIMIT: Final = 2**53
"""From here on a float no longer holds every integer, so integers are kept as integers."""
_LONGEST_INTEGER: Final = 20
_LATEST_TIMESTAMP_MS: Final = 253_402_300_799_000

_PAIR: Final = re.compile(
    r"""[ \t]*
    (?:(?P<bare>[a-zA-Z_][a-zA-Z0-9_]*+)|"(?P<quoted>(?:[^"\\]++|\\.)*+)")[ \t]*
    (?P<assigned>=[ \t]*"(?P<value>(?:[^"\\]++|\\.)*+)"[ \t]*)?
    (?:,|$)""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE: Final = re.compile(r'\\([\\n"])')
_ESCAPED: Final = {"\\": "\\", "n": "\n", '"': '"'}
_NAME: Final = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_COMMENT: Final = re.compile(
    r"""\#[ \t]*(?P<kind>HELP|TYPE)[ \t]+
    (?:(?P<bare>[a-zA-Z_:][a-zA-Z0-9_:]*+)|"(?P<quoted>(?:[^"\\]++|\\.)++)")
    (?:[ \t]++(?P<text>.*))?$""",
    re.VERBOSE | re.DOTALL,
)
_NAME_LABEL: Final = "__name__"


@dataclass(frozen=True, slots=True, eq=False)
class Labels:
    """The labels of a series.

    Compared and hashed by identity: one text between braces is one object for as long as a parser
    keeps it, so that whatever is known of a label set can be looked up without comparing strings.
    """

    pairs: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """What stood between the braces."""

    labels: Labels
    name: str | None
    """The metric's name, where it was written inside the braces."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comment:
    """A ``HELP`` or ``TYPE`` line."""

    kind: str
    name: str
    text: str


def is_metric_name(text: str) -> bool:
    """Tell whether the text is a metric name that needs no quotes."""
    return _NAME.fullmatch(text) is not None


def unescape(text: str) -> str:
    r"""Return the text with ``\\``, ``\"`` and ``\n`` resolved; other backslashes stay."""
    if "\\" not in text:
        return text
    return _ESCAPE.sub(lambda found: _ESCAPED[found[1]], text)


def read_block(raw: str) -> Block | None:
    """Return the labels written between braces, or None where they cannot be read.

    A label given twice, a name given twice and an empty term are faults.
    """
    pairs: dict[str, str] = {}
    names: list[str] = []
    at, end = 0, len(raw.rstrip(" \t"))
    while at < end:
        found = _PAIR.match(raw, at)
        if found is None:
            return None
        at = found.end()
        if not _keep_term(found, pairs=pairs, names=names):
            return None
    return _block(pairs, names)


def _keep_term(found: re.Match[str], *, pairs: dict[str, str], names: list[str]) -> bool:
    """Add one term to the labels or the names; False where it may not stand there."""
    bare, quoted = found["bare"], found["quoted"]
    key = bare if bare is not None else unescape(quoted)
    if found["assigned"] is None:
        names.append(key)
        return bare is None
    if key in pairs:
        return False
    pairs[key] = unescape(found["value"])
    return True


def _block(pairs: dict[str, str], names: list[str]) -> Block | None:
    if _NAME_LABEL in pairs:
        names.append(pairs.pop(_NAME_LABEL))
    if len(names) > 1 or (names and not names[0]):
        return None
    return Block(labels=Labels(pairs), name=names[0] if names else None)


def read_value(token: str) -> float | None:
    """Return the number, or None where the token is not one.

    Python's own reading is wider than the format's: digit separators (``1_0``) and digits of
    other scripts are refused. Hexadecimal floats are refused as Prometheus refuses them.
    Integers that a float cannot hold stay exact.
    """
    if "_" in token or not token.isascii():
        return None
    try:
        value = float(token)
    except ValueError:
        return None
    if value >= EXACT_FLOAT_LIMIT and token.isdigit() and len(token) <= _LONGEST_INTEGER:
        return int(token)
    return value


def read_timestamp_ms(token: str, *, is_seconds: bool) -> int | None:
    """Return milliseconds since 1970, or None where the token is no instant of a four-digit year.

    Args:
        token: what stood after the value.
        is_seconds: the text is OpenMetrics, which counts seconds instead of milliseconds.
    """
    value = read_value(token)
    if value is None or value != value:  # noqa: PLR0124 - only NaN differs from itself
        return None
    if abs(value) > _LATEST_TIMESTAMP_MS:
        return None
    instant_ms = round(value * 1000) if is_seconds else round(value)
    return instant_ms if abs(instant_ms) <= _LATEST_TIMESTAMP_MS else None


def read_comment(line: str) -> Comment | None:
    """Return a ``HELP`` or ``TYPE`` line's content; None for any other comment."""
    found = _COMMENT.match(line.rstrip(" \t\r"))
    if found is None:
        return None
    quoted = found["quoted"]
    name = found["bare"] if quoted is None else unescape(quoted)
    return Comment(kind=found["kind"], name=name, text=unescape(found["text"] or ""))
