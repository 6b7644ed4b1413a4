"""Words of the screens and of a report's frame, in each language, by stable keys.

A report's own titles come from analytics in English; a language that knows a figure or table by
its key replaces the title, any other keeps it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Protocol

from dashboard.i18n.en import TEXTS as EN
from dashboard.i18n.zh import TEXTS as ZH

LANGUAGES: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType({"en": EN, "zh": ZH})
DEFAULT_LANGUAGE: Final = "en"


class Translate(Protocol):
    """Turns a key into words."""

    def __call__(self, key: str, fallback: str | None = None, /) -> str:
        """Return the words of the key, else the fallback.

        Raises:
            KeyError: the key is unknown and there is no fallback.
        """
        ...


def language_of(wanted: str | None, *, otherwise: str = DEFAULT_LANGUAGE) -> str:
    """Return the language that a tag such as ``zh-CN`` names, where we speak it."""
    for tag in (wanted or "", otherwise):
        short = tag.replace("_", "-").split("-")[0].lower()
        if short in LANGUAGES:
            return short
    return DEFAULT_LANGUAGE


def translator(language: str) -> Translate:
    """Return the translation into the language; an unknown one reads in English."""
    texts = LANGUAGES[language_of(language)]

    def translate(key: str, fallback: str | None = None, /) -> str:
        return texts[key] if fallback is None else texts.get(key, fallback)

    return translate


def english(key: str, fallback: str | None = None, /) -> str:
    """Return the English words of the key, else the fallback."""
    return EN[key] if fallback is None else EN.get(key, fallback)
