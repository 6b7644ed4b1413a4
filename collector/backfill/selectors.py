"""Writes the selectors that are asked of a Prometheus server, and reads the one a person gives."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import timedelta
from typing import Final

from steward.errors import UsageError

_NAME: Final = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_SPECIAL: Final = re.compile(r"[\\.+*?()|\[\]{}^$]")
_MATCHERS: Final = re.compile(
    r"""\s*(?:[a-zA-Z_][a-zA-Z0-9_]*\s*(?:=~|!~|!=|=)\s*"(?:[^"\\]|\\.)*"\s*(?:,\s*|$))+""",
    re.DOTALL,
)


def matchers_from(text: str) -> str:
    """Return the label matchers that a person gives, without braces.

    Args:
        text: ``{cluster="a",job=~"dcgm.*"}``, with or without the braces; blank means none.

    Raises:
        UsageError: it is no list of matchers.
    """
    inner = text.strip()
    if inner.startswith("{") and inner.endswith("}"):
        inner = inner[1:-1].strip()
    if not inner:
        return ""
    if _MATCHERS.fullmatch(inner) is None:
        raise UsageError(
            f"--match {text!r} is no selector of labels",
            hint="""write matchers as Prometheus does: --match '{cluster="a",job=~"dcgm.*"}'""",
        )
    return inner.rstrip(", ")


def selector(names: Iterable[str], *, matchers: str = "", **labels: Iterable[str]) -> str:
    """Return the selector of these metric names.

    Args:
        names: metric names; what is none is left out.
        matchers: from ``matchers_from``.
        labels: by label, the values that it may have.
    """
    known = sorted(name for name in set(names) if _NAME.fullmatch(name))
    terms = [f'__name__=~"{"|".join(known)}"']
    terms += [
        f'{label}=~"{_quoted("|".join(_literal(value) for value in sorted(set(values))))}"'
        for label, values in labels.items()
    ]
    return "{" + ",".join([*terms, *([matchers] if matchers else [])]) + "}"


def duration(length: timedelta) -> str:
    """Return a length as Prometheus writes it, to the millisecond."""
    return f"{round(length / timedelta(milliseconds=1))}ms"


def _literal(value: str) -> str:
    """Return a pattern for the value alone; Go's RE2 refuses some escapes of Python's."""
    return _SPECIAL.sub(r"\\\g<0>", value)


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
