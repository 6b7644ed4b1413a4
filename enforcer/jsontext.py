"""Values of the enforcer as JSON texts: the same value gives the same text and the same hash."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime, timedelta

from enforcer.entries import instant_text


def json_text(value: object) -> str:
    """Return dataclasses, instants and sets as JSON, keys ascending."""
    return json.dumps(plain(value), ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def sha256_of(text: str) -> str:
    """Return the hash by which a text is recognised."""
    return hashlib.sha256(text.encode()).hexdigest()


def plain(value: object) -> object:
    """Return a value in the words of JSON; instants are texts in UTC, lengths of time seconds."""
    if isinstance(value, datetime):
        return instant_text(value)
    if isinstance(value, timedelta):
        return value.total_seconds()
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: plain(getattr(value, each.name)) for each in fields(value)}
    return _plain_many(value)


def _plain_many(value: object) -> object:
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, frozenset | set):
        return sorted(str(plain(inner)) for inner in value)
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return value if value is None or isinstance(value, str | int | float) else str(value)
