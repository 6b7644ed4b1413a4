"""Random documents in Prometheus text format, with what each of their lines truly says."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Final

_LABEL_PARTS: Final = (
    *("\\", '"', "\n", "}", "{", ",", "=", "#", " # ", "\t", " ", "é", "日本", "a", "Z9", "} 1"),
)
_VALUES: Final = ("0", "1", "-1", "0.714", "1e9", "2.5E-7", "NaN", "+Inf", "-Inf", "Inf", "1e308")
_PREFIXES: Final = ("DCGM_FI_DEV_", "x:", "_", "a")
_TYPES: Final = ("gauge", "counter", "untyped", "summary", "histogram")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrueSample:
    """What one line says."""

    name: str
    labels: dict[str, str]
    value: float
    timestamp_ms: int | None
    has_exemplar: bool
    is_counter: bool
    """Follows a ``TYPE … counter`` of its own name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A text with its samples in order."""

    text: str
    samples: tuple[TrueSample, ...]


def escape(text: str) -> str:
    """Return the text as it is written between quotes."""
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def document(seed: int, *, line_count: int = 100) -> Document:
    """Return the document of this seed."""
    dice = random.Random(seed)  # noqa: S311 - repeatable test input
    lines: list[str] = []
    samples: list[TrueSample] = []
    while len(samples) < line_count:
        name = f"{dice.choice(_PREFIXES)}{len(samples)}"
        kind = dice.choice(_TYPES)
        if dice.random() < 0.7:
            lines += [f"# HELP {name} About {name}\\n{{}}", f"# TYPE {name} {kind}"]
        else:
            kind = "untyped"
        for _ in range(dice.randint(1, 6)):
            text, sample = _line(dice, name, is_counter=kind == "counter")
            lines.append(text)
            samples.append(sample)
        lines += dice.choice(([], [""], ['# a comment, {odd} "quotes'], ["   "]))
    ending = dice.choice(("", "\n", "\n\n"))
    line_end = dice.choice(("\n", "\n", "\r\n"))
    return Document(text=line_end.join(lines) + ending, samples=tuple(samples))


def _line(dice: random.Random, name: str, *, is_counter: bool) -> tuple[str, TrueSample]:
    labels = {f"l{number}": _label(dice) for number in range(dice.randint(0, 5))}
    is_quoted = dice.random() < 0.1 and not is_counter
    shown_name = f"my.{name}" if is_quoted else name
    value = dice.choice((dice.choice(_VALUES), repr(dice.uniform(-1e6, 1e6)), str(2**63 - 14)))
    timestamp_ms = dice.randint(0, 2_000_000_000_000) if dice.random() < 0.2 else None
    has_exemplar = dice.random() < 0.1
    text = _series(dice, shown_name, labels=labels, is_quoted=is_quoted)
    text += dice.choice((" ", "  ")) + value
    text += "" if timestamp_ms is None else f" {timestamp_ms}"
    text += ' # {trace="ab"} 0.5 1700000000.25' if has_exemplar else ""
    return text, TrueSample(
        name=shown_name,
        labels=labels,
        value=float(value),
        timestamp_ms=timestamp_ms,
        has_exemplar=has_exemplar,
        is_counter=is_counter,
    )


def _label(dice: random.Random) -> str:
    return "".join(dice.choice(_LABEL_PARTS) for _ in range(dice.randint(0, 4)))


def _series(dice: random.Random, name: str, *, labels: dict[str, str], is_quoted: bool) -> str:
    pairs = [f'{key}="{escape(text)}"' for key, text in labels.items()]
    if is_quoted:
        pairs.insert(0, f'"{name}"')
    joined = dice.choice((",", ", ")).join(pairs)
    if pairs and dice.random() < 0.1:
        joined += ","
    if not pairs:
        return name + dice.choice(("", "{}"))
    return ("" if is_quoted else name) + "{" + joined + "}"
