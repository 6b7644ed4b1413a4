"""Which exporters of the cluster are wanted, as an operator writes it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from collector.discovery_kubernetes import Role, Selection
from steward.errors import SettingsError

HINT: Final = "write [pod|endpointslice|endpoints:]LABEL=VALUE[@NAMESPACE][:PORT]"
_FORM: Final = re.compile(
    r"(?:(?P<role>pod|endpointslice|endpoints):)?"
    r"(?P<selector>[^@:]*[^@:\s])"
    r"(?:@(?P<namespace>[a-z0-9]([a-z0-9-]*[a-z0-9])?))?"
    r"(?::(?P<port>[a-z0-9-]{1,15}))?"
)
MOST_PORT: Final = 65_535
_REQUIREMENT: Final = re.compile(
    r"!?[\w./-]+(\s*(==?|!=)\s*[\w.-]*|\s+(not)?in\s*\([\w.,\s-]*\))?", re.ASCII
)


def selections(texts: Iterable[str]) -> tuple[Selection, ...]:
    """Return the selections that the texts of ``kubernetes.exporters`` state.

    Raises:
        SettingsError: one of them is none.
    """
    return tuple(map(selection, texts))


def selection(text: str) -> Selection:
    """Return one selection: a label selector, perhaps with role, namespace and port.

    Raises:
        SettingsError: it is none.
    """
    found = _FORM.fullmatch(text.strip())
    if found is None or not _is_selector(found["selector"]) or not _is_port(found["port"]):
        raise SettingsError(
            f"kubernetes.exporters: {text!r} selects no exporters by their labels", hint=HINT
        )
    return Selection(
        role=Role(found["role"] or Role.POD),
        label_selector=found["selector"],
        namespace=found["namespace"],
        port=found["port"],
    )


def _is_selector(text: str) -> bool:
    requirements = re.split(r",(?![^(]*\))", text)
    return all(_REQUIREMENT.fullmatch(one.strip()) for one in requirements)


def _is_port(text: str | None) -> bool:
    """Return whether it is a port's name or number, or is not said."""
    return text is None or not text.isdecimal() or 0 < int(text) <= MOST_PORT
