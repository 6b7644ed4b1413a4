"""Rules a setting's value must meet, written beside its type; pure, no settings named here."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Annotated


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """A number's allowed span; None leaves that side open."""

    above: float | None = None
    at_least: float | None = None
    at_most: float | None = None

    def fault(self, number: float) -> str | None:
        """Return what is wrong with the number, or None."""
        if not math.isfinite(number):
            return "must be a finite number"
        if self.above is not None and number <= self.above:
            return f"must be greater than {self.above:g}"
        if self.at_least is not None and number < self.at_least:
            return f"must be at least {self.at_least:g}"
        if self.at_most is not None and number > self.at_most:
            return f"must be at most {self.at_most:g}"
        return None

    def schema(self) -> dict[str, object]:
        """Return the rule in JSON Schema's words."""
        words = {
            "exclusiveMinimum": self.above,
            "minimum": self.at_least,
            "maximum": self.at_most,
        }
        return {word: limit for word, limit in words.items() if limit is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """A text's allowed form; the whole text must match."""

    regex: str
    meaning: str
    """Completes the sentence "must be …"."""

    def fault(self, text: str) -> str | None:
        """Return what is wrong with the text, or None."""
        return None if re.fullmatch(self.regex, text) else f"must be {self.meaning}"

    def schema(self) -> dict[str, object]:
        """Return the rule in JSON Schema's words."""
        return {"pattern": f"^(?:{self.regex})$"}


@dataclass(frozen=True, slots=True)
class Secret:
    """Marks a setting whose value is never printed."""


Port = Annotated[int, Bounds(at_least=0, at_most=65_535)]
Seconds = Annotated[float, Bounds(above=0, at_most=86_400)]
Interval = Annotated[float, Bounds(at_least=0.1, at_most=86_400)]
ByteCount = Annotated[int, Bounds(at_least=1_024)]
RowCount = Annotated[int, Bounds(at_least=1)]
Name = Annotated[str, Pattern(regex=r"\S(?:.*\S)?", meaning="a name that is not empty")]
Url = Annotated[
    str,
    Pattern(regex=r"https?://[^\s,]+", meaning="an address that starts with http:// or https://"),
]
SecretUrl = Annotated[
    str, Pattern(regex=r"[a-z][a-z0-9+.-]*://[^\s,]+", meaning="an address with ://"), Secret()
]
TARGET = Pattern(
    regex=r"(?:https?://)?(?:[\w.-]+|\[[0-9a-fA-F:.]+\])(?::\d{1,5})?(?:/[^\s,]*)?",
    meaning="host:port or an address that starts with http:// or https://",
)
Target = Annotated[str, TARGET]
Token = Annotated[
    str,
    Pattern(regex=r"[!-+\--~]+", meaning="printable ASCII without spaces and commas"),
    Secret(),
]
LABEL_KEY = Pattern(
    regex=r"[A-Za-z0-9](?:[\w./-]*[A-Za-z0-9])?",
    meaning="a label key such as team or example.org/team",
)
LabelKey = Annotated[str, LABEL_KEY]
CLASS_RULE = Pattern(
    regex=r"(?:training|inference|development|system): ?\S.*",
    meaning="a class, a colon and conditions, such as 'inference: kind=Deployment'",
)
ClassRule = Annotated[str, CLASS_RULE]
