"""Values of a policy file: texts, words, numbers, lengths of time, choices, truth."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from typing import Generic, TypeVar

from enforcer.policies.durations import DURATION_PATTERN, duration_from, duration_text
from enforcer.policies.shapes import At, Schema, is_list, shown

E = TypeVar("E", bound=Enum)


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """One text or a list of some, each of at least one character."""

    @property
    def blank(self) -> tuple[str, ...]:
        """Return no words."""
        return ()

    def read(self, value: object, at: At) -> tuple[str, ...]:
        """Return the words, as written."""
        written = value if is_list(value) else (value,)
        words = tuple(one for one in written if isinstance(one, str) and one)
        if len(words) < len(written) or not written:
            at.fault(f"must be a word or a list of words (in quotes), not {shown(value)}")
            return ()
        return words

    def schema(self) -> Schema:
        """Describe both spellings."""
        word: Schema = {"type": "string", "minLength": 1}
        return {"anyOf": [word, {"type": "array", "minItems": 1, "items": word}]}


@dataclass(frozen=True, slots=True, kw_only=True)
class TextOf:
    """A text that fits a pattern."""

    pattern: str = ""
    words: str = "a text"

    @property
    def blank(self) -> str:
        """Return the empty text."""
        return ""

    def read(self, value: object, at: At) -> str:
        """Return the text."""
        is_whole = isinstance(value, str) and (
            not self.pattern or re.fullmatch(self.pattern, value)
        )
        if isinstance(value, str) and is_whole:
            return value
        at.fault(f"must be {self.words} (in quotes where in doubt), not {shown(value)}")
        return ""

    def schema(self) -> Schema:
        """Describe it."""
        return {"type": "string", **({"pattern": self.pattern} if self.pattern else {})}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """Keys with texts."""

    @property
    def blank(self) -> tuple[tuple[str, str], ...]:
        """Return no pairs."""
        return ()

    def read(self, value: object, at: At) -> tuple[tuple[str, str], ...]:
        """Return the pairs, ascending by key."""
        if not isinstance(value, Mapping):
            at.fault(f"must map keys to texts, not {shown(value)}")
            return ()
        for key, text in value.items():
            if not isinstance(key, str) or not isinstance(text, str):
                at.key(str(key)).fault(f"must be a text (in quotes), not {shown(text)}")
        pairs = value.items()
        return tuple(sorted((k, v) for k, v in pairs if isinstance(k, str) and isinstance(v, str)))

    def schema(self) -> Schema:
        """Describe it."""
        return {"type": "object", "additionalProperties": {"type": "string"}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """A number within bounds, both inclusive."""

    least: float
    most: float

    @property
    def blank(self) -> float:
        """Return the lower bound."""
        return self.least

    def read(self, value: object, at: At) -> float:
        """Return the number."""
        if (
            isinstance(value, int | float)
            and not isinstance(value, bool)
            and self.least <= value <= self.most
        ):
            return float(value)
        at.fault(f"must be a number from {self.least:g} to {self.most:g}, not {shown(value)}")
        return self.least

    def schema(self) -> Schema:
        """Describe it."""
        return {"type": "number", "minimum": self.least, "maximum": self.most}


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """A whole number within bounds, both inclusive."""

    least: int
    most: int

    @property
    def blank(self) -> int:
        """Return the lower bound."""
        return self.least

    def read(self, value: object, at: At) -> int:
        """Return the number."""
        if (
            isinstance(value, int | float)
            and not isinstance(value, bool)
            and self.least <= value <= self.most
            and value == int(value)
        ):
            return int(value)
        at.fault(f"must be a whole number from {self.least} to {self.most}, not {shown(value)}")
        return self.least

    def schema(self) -> Schema:
        """Describe it."""
        return {"type": "integer", "minimum": self.least, "maximum": self.most}


@dataclass(frozen=True, slots=True, kw_only=True)
class Length:
    """A length of time within bounds, both inclusive."""

    least: timedelta = timedelta()
    most: timedelta

    @property
    def blank(self) -> timedelta:
        """Return the lower bound."""
        return self.least

    def read(self, value: object, at: At) -> timedelta:
        """Return the length."""
        length = duration_from(value) if isinstance(value, str) else None
        if length is None:
            at.fault(f"must be a length such as 90s, 15m, 2h30m or 7d, not {shown(value)}")
            return self.least
        if not self.least <= length <= self.most:
            bounds = f"from {duration_text(self.least)} to {duration_text(self.most)}"
            at.fault(f"must be {bounds}, not {shown(value)}")
            return self.least
        return length

    def schema(self) -> Schema:
        """Describe how it is written."""
        return {"type": "string", "pattern": DURATION_PATTERN}


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice(Generic[E]):
    """One word of an enumeration."""

    of: type[E]

    @property
    def blank(self) -> E:
        """Return the first."""
        return next(iter(self.of))

    def read(self, value: object, at: At) -> E:
        """Return the member."""
        found = next((one for one in self.of if one.value == value), None)
        if found is not None and isinstance(value, str):
            return found
        at.fault(
            f"must be one of {', '.join(str(one.value) for one in self.of)}, not {shown(value)}"
        )
        return self.blank

    def schema(self) -> Schema:
        """Describe it."""
        return {"enum": [one.value for one in self.of]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """True or false."""

    @property
    def blank(self) -> bool:
        """Return false."""
        return False

    def read(self, value: object, at: At) -> bool:
        """Return the truth value."""
        if isinstance(value, bool):
            return value
        at.fault(f"must be true or false, not {shown(value)}")
        return False

    def schema(self) -> Schema:
        """Describe it."""
        return {"type": "boolean"}
