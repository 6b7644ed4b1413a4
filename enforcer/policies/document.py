"""Text of a policy into plain values, by the YAML 1.2 core words: nothing turns into a surprise.

``22:00`` and ``no`` stay texts, a key that is written twice is refused, and so are aliases, with
which a small text can stand for an endless document.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import yaml

from steward.errors import InputError

TEXT_LIMIT: Final = 1_000_000
"""Characters; a policy of a thousand rules stays below."""
LONGEST_CHARACTER: Final = 4
"""Bytes in UTF-8."""
DEVICES: Final = ("dev",)
"""Where a shell keeps the pipes that somebody writes to."""
DEPTH_LIMIT: Final = 20
"""Lists and mappings within each other; a policy needs seven."""
HINT: Final = "see docs/policies.md, or print the shipped one with: steward policy show default"


class _Loader(yaml.SafeLoader):
    """Reads scalars as YAML 1.2 and JSON do."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 - the base class's own attribute, replaced by an empty one

    def __init__(self, stream: str) -> None:
        """Begin at the outermost value."""
        super().__init__(stream)
        self._depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Refuse aliases, and values that lie too deep."""
        event = self.peek_event()  # type: ignore[no-untyped-call] # the stubs leave it untyped
        words = self._unread(event)
        if words is not None:
            raise yaml.composer.ComposerError(None, None, words, event.start_mark)
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node

    def _unread(self, event: yaml.Event) -> str | None:
        """Return why a value is not read; None: it is."""
        if self._depth > DEPTH_LIMIT:
            return f"values lie more than {DEPTH_LIMIT} deep"
        if isinstance(event, yaml.AliasEvent):
            return "aliases are not read; write shared words under defaults"
        if getattr(event, "tag", None) is not None:
            return "tags are not read; write plain values, and texts in quotes"
        is_half = isinstance(event, yaml.ScalarEvent) and _has_half_characters(event.value)
        return "half a character is no text" if is_half else None

    def construct_mapping(
        self,
        node: yaml.MappingNode,
        deep: bool = False,  # noqa: FBT001, FBT002 - the base's signature
    ) -> dict[object, object]:
        """Refuse a key that is written twice."""
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key.value, str):
                continue  # a list or a mapping: the base class says so
            if key.value in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"{key.value!r} is written twice", key.start_mark
                )
            seen.add(key.value)
        return super().construct_mapping(node, deep=deep)


def _has_half_characters(text: str) -> bool:
    return text.encode(errors="ignore").decode() != text


for _tag, _words, _first in (
    ("bool", r"true|false", "tf"),
    ("null", r"null|~|", "n~\0"),
    ("int", r"-?(0|[1-9][0-9]*)", "-0123456789"),
    ("float", r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?", "-0123456789"),
):
    _Loader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_tag}", re.compile(rf"^(?:{_words})$"), list(_first)
    )


def document_from(text: str, *, name: str) -> object:
    """Return the values that a text writes: mappings, lists, texts, numbers, truth values, None.

    Args:
        text: YAML, or JSON, which is YAML too.
        name: of the file, for messages.

    Raises:
        InputError: it is no YAML, too long, or uses what is not read.
    """
    if len(text) > TEXT_LIMIT:
        raise InputError(f"{name} has more than {TEXT_LIMIT} characters", hint=HINT)
    try:
        document: object = yaml.load(text, Loader=_Loader)  # noqa: S506 - a SafeLoader
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        words = " ".join(str(error).split())
        raise InputError(f"{name} is no YAML: {words}", hint=HINT) from error
    return document


def text_at(path: Path, *, hint: str = HINT) -> str:
    """Return the text of a file; never more is read than a text may have, and none is waited for.

    Raises:
        InputError: it is no file, cannot be read, is too long, or is not UTF-8.
    """
    try:
        if path.is_fifo() and path.parts[1:2] != DEVICES:
            raise InputError(f"cannot read {path}: it is a pipe, not a file", hint=hint)
        with path.open("rb") as file:
            content = file.read(TEXT_LIMIT * LONGEST_CHARACTER + 1)
        if len(content) > TEXT_LIMIT * LONGEST_CHARACTER:
            raise InputError(f"{path} has more than {TEXT_LIMIT} characters", hint=hint)
        return content.decode("utf-8-sig")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise InputError(f"cannot read {path}: {reason}", hint=hint) from error
