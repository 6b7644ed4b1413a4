"""Whether conditions of two rules can meet in one workload, as far as their words show.

Both answers err to the safe side: rules overlap unless their words exclude it, and one covers the
other only if its words show it.
"""

from __future__ import annotations

from typing import Final

from enforcer.policies.matching import PATTERN_MARKS, is_like
from enforcer.policies.model import Match

EVERYTHING: Final = "*"
SINGLE_NAMES: Final = (
    *("workload_class", "tenant", "namespace", "kind", "queue", "priority_class", "owner"),
)
"""Facts of which a workload has one; it may have several GPU models."""
MANY_NAMES: Final = ("gpu_model", "model_tier")
LABEL_NAMES: Final = ("labels", "namespace_labels")


def can_overlap(one: Match, other: Match) -> bool:
    """Tell whether some workload may meet both."""
    return all(
        _words_meet(getattr(one, name), getattr(other, name)) for name in SINGLE_NAMES
    ) and all(_labels_meet(getattr(one, name), getattr(other, name)) for name in LABEL_NAMES)


def covers(wide: Match, narrow: Match) -> bool:
    """Tell whether every workload that meets ``narrow`` is shown to meet ``wide``."""
    return all(
        _words_cover(getattr(wide, name), getattr(narrow, name))
        for name in (*SINGLE_NAMES, *MANY_NAMES)
    ) and all(_labels_cover(getattr(wide, name), getattr(narrow, name)) for name in LABEL_NAMES)


def _is_pattern(word: str) -> bool:
    return not PATTERN_MARKS.isdisjoint(word)


def _word_meets(one: str, other: str) -> bool:
    if _is_pattern(one):
        return _is_pattern(other) or is_like(other, one)
    return is_like(one, other)


def _words_meet(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    if not one or not other:
        return True
    return any(_word_meets(first, second) for first in one for second in other)


def _word_covers(wide: str, narrow: str) -> bool:
    if wide in {narrow, EVERYTHING}:
        return True
    return not _is_pattern(narrow) and is_like(narrow, wide)


def _words_cover(wide: tuple[str, ...], narrow: tuple[str, ...]) -> bool:
    if not wide:
        return True
    return bool(narrow) and all(any(_word_covers(w, word) for w in wide) for word in narrow)


def _labels_meet(one: tuple[tuple[str, str], ...], other: tuple[tuple[str, str], ...]) -> bool:
    words = dict(one)
    return all(key not in words or _word_meets(words[key], word) for key, word in other)


def _labels_cover(wide: tuple[tuple[str, str], ...], narrow: tuple[tuple[str, str], ...]) -> bool:
    words = dict(narrow)
    return all(key in words and _word_covers(word, words[key]) for key, word in wide)
