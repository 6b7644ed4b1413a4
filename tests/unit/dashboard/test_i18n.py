"""Both languages say the same things."""

from __future__ import annotations

import pytest

from dashboard.i18n import LANGUAGES, english, language_of, translator


@pytest.mark.parametrize("language", sorted(LANGUAGES))
def test_every_language_has_the_same_keys_and_no_blank(language: str) -> None:
    assert LANGUAGES[language].keys() == LANGUAGES["en"].keys()
    assert [key for key, text in LANGUAGES[language].items() if not text.strip()] == []


def test_chinese_is_chinese() -> None:
    same = [key for key, text in LANGUAGES["zh"].items() if text.isascii()]
    assert same == []


@pytest.mark.parametrize(
    ("wanted", "spoken"),
    [("zh", "zh"), ("zh-CN", "zh"), ("zh_TW", "zh"), ("EN", "en"), ("fr", "en"), ("", "en")],
)
def test_language_of_a_tag(wanted: str, spoken: str) -> None:
    assert language_of(wanted) == spoken


def test_an_unknown_tag_falls_back_to_the_settings() -> None:
    assert language_of("fr", otherwise="zh") == "zh"
    assert language_of(None, otherwise="zh") == "zh"


def test_an_unknown_key_reads_as_its_fallback_or_fails() -> None:
    assert translator("zh")("figure.none_such", "None such") == "None such"
    assert english("figure.none_such", "None such") == "None such"
    with pytest.raises(KeyError):
        translator("zh")("figure.none_such")
