"""The named queries: what each answers, and the parameters it takes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import get_close_matches
from functools import cache
from typing import Final

from sql.assets import SqlFile, sql_files
from steward.errors import QueryError
from steward.ports import Parameter

HEADER: Final = re.compile(r"^--\s*(purpose|grain|parameters|columns)\s+(.*)$")
CONTINUED: Final = re.compile(r"^--\s+(.*)$")
PARAMETER: Final = re.compile(r"\$([a-z][a-z0-9_]*)\s+([a-z]+)")

TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "timestamptz": (datetime,),
    "varchar": (str,),
    "integer": (int,),
    "bigint": (int,),
    "double": (float, int),
    "boolean": (bool,),
}
"""What a declared parameter type accepts; null is accepted by all but timestamptz."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedQuery:
    """One question with a name."""

    name: str
    purpose: str
    grain: str
    """What one row is."""
    parameters: Mapping[str, str]
    """Declared type by name."""
    text: str


def parse_query(file: SqlFile) -> NamedQuery:
    """Read the header of one query file.

    Raises:
        QueryError: the purpose, the grain or a parameter's type is not stated.
    """
    header = _header(file.text)
    missing = [key for key in ("purpose", "grain", "parameters") if not header.get(key)]
    if missing:
        raise QueryError(
            f"query {file.name} does not state its {', '.join(missing)}",
            hint="complete the comment lines at the top of its file",
        )
    parameters = dict(PARAMETER.findall(header["parameters"]))
    unknown = sorted(kind for kind in parameters.values() if kind not in TYPES)
    if unknown:
        raise QueryError(
            f"query {file.name} declares the unknown types {', '.join(unknown)}",
            hint=f"choose from {', '.join(TYPES)}",
        )
    return NamedQuery(
        name=file.name,
        purpose=header["purpose"],
        grain=header["grain"],
        parameters=parameters,
        text=file.text,
    )


def _header(text: str) -> dict[str, str]:
    header: dict[str, str] = {}
    key = ""
    for line in text.splitlines():
        start, more = HEADER.match(line), CONTINUED.match(line)
        if start:
            key = start.group(1)
            header[key] = start.group(2).strip()
        elif more and key:
            header[key] += f" {more.group(1).strip()}"
        elif line.strip():
            break
    return header


@cache
def named_queries() -> Mapping[str, NamedQuery]:
    """Return all shipped queries by name."""
    return {file.name: parse_query(file) for file in sql_files("queries")}


def named_query(name: str) -> NamedQuery:
    """Return one query.

    Raises:
        QueryError: there is none of that name; the nearest one is named.
    """
    queries = named_queries()
    if name in queries:
        return queries[name]
    near = get_close_matches(name, queries, n=1)
    raise QueryError(
        f"there is no query named {name!r}",
        hint=f"did you mean {near[0]!r}?" if near else f"choose one of {', '.join(queries)}",
    )


def bind(query: NamedQuery, parameters: Mapping[str, Parameter]) -> dict[str, Parameter]:
    """Return the parameters, checked against what the query declares.

    Raises:
        QueryError: one is missing, not declared, or of another type.
    """
    missing = sorted(set(query.parameters).difference(parameters))
    extra = sorted(set(parameters).difference(query.parameters))
    faults = [f"${name} is missing" for name in missing] + [f"${name} is unknown" for name in extra]
    if faults:
        raise QueryError(f"query {query.name}: {', '.join(faults)}", hint=_usage(query))
    return {
        name: _fit(parameters[name], name=name, query=query) for name in sorted(query.parameters)
    }


def _fit(value: Parameter, *, name: str, query: NamedQuery) -> Parameter:
    kind = query.parameters[name]
    if kind == "timestamptz":
        return _instant(value, name=name, query=query)
    is_fit = value is None or isinstance(value, TYPES[kind])
    if not is_fit or (isinstance(value, bool) and kind != "boolean"):
        raise QueryError(
            f"query {query.name}: ${name} is {type(value).__name__}, not {kind}",
            hint=_usage(query),
        )
    return value


def _instant(value: Parameter, *, name: str, query: NamedQuery) -> datetime:
    try:
        found = datetime.fromisoformat(value) if isinstance(value, str) else value
        if isinstance(found, datetime) and found.tzinfo is not None:
            return found.astimezone(UTC)
    except (ValueError, OverflowError):
        pass  # no instant, or one whose zone lifts it out of the calendar
    raise QueryError(
        f"query {query.name}: ${name} is no instant with a time zone",
        hint="write it as 2026-05-01T00:00:00Z",
    )


def _usage(query: NamedQuery) -> str:
    takes = ", ".join(f"${name} {kind}" for name, kind in query.parameters.items())
    return f"it takes {takes}" if takes else "it takes no parameters"
