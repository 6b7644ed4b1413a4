"""Versions of policies in the state: all are kept, one of each name holds.

Nothing is overwritten: a change of mode and a retirement are versions too. What is read again holds
from the next round on; a version that cannot be understood stops the round, not the safety.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from enforcer.policies.matching import DEFAULT_NAME
from enforcer.policies.model import Policy
from enforcer.policies.reading import read_policy
from enforcer.policies.shipped import default_policy
from enforcer.policies.writing import json_text
from steward.errors import InputError, WarehouseError
from steward.ports import StateLog, StateReader, StateValue

TABLE: Final = "policy_version"
AUDIT: Final = "audit"
RETIRED: Final = "is_retired"
"""Key of the body of a version that ends a policy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """One stored version of one policy."""

    row_id: int
    name: str
    number: int
    body: str
    """JSON."""
    author: str
    note: str | None
    valid_from_at: datetime

    @property
    def is_retirement(self) -> bool:
        """Tell whether this version ends the policy."""
        document = json.loads(self.body)
        return isinstance(document, dict) and document.get(RETIRED) is True

    def policy(self) -> Policy:
        """Return the policy that it holds.

        Its windows were held against the scrapes when it was stored.

        Raises:
            InputError: it cannot be understood any more.
        """
        return read_policy(
            self.body,
            name=f"policy {self.name} version {self.number}",
            version=self.number,
            valid_from_at=self.valid_from_at,
            scrape_interval=timedelta(),
        )


def versions(state: StateReader) -> tuple[Version, ...]:
    """Return all stored versions, by name and number, ascending."""
    found = (_version(row) for row in state.state_rows(TABLE))
    return tuple(sorted(found, key=lambda one: (one.name, one.number)))


def _version(row: Mapping[str, object]) -> Version:
    note = row["note"]
    return Version(
        row_id=int(str(row["policy_version_id"])),
        name=str(row["policy"]),
        number=int(str(row["version_number"])),
        body=str(row["body_json"]),
        author=str(row["author"]),
        note=None if note is None else str(note),
        valid_from_at=datetime.fromisoformat(str(row["valid_from_at"])),
    )


def in_force(found: Iterable[Version], now: datetime) -> tuple[Version, ...]:
    """Return of each name the newest version that holds by now, ascending; retired ones too."""
    newest: dict[str, Version] = {}
    for version in sorted(found, key=lambda one: (one.name, one.number)):
        if version.valid_from_at <= now:
            newest[version.name] = version
    return tuple(newest[name] for name in sorted(newest))


class Policies:
    """The policies that hold, read again whenever asked; a version is parsed once."""

    def __init__(self, state: StateReader) -> None:
        """Read nothing yet; ``state`` is where versions are kept."""
        self._state = state
        self._parsed: dict[int, Policy] = {}

    def current(self, now: datetime) -> tuple[Policy, ...]:
        """Return the policies that hold now, ascending by name.

        The shipped policy is among them as long as no version of its name is stored.

        Raises:
            InputError: a version that holds cannot be understood.
            WarehouseError: the state cannot be read.
        """
        holding = in_force(versions(self._state), now)
        found = [self._policy(one) for one in holding if not one.is_retirement]
        if all(one.name != DEFAULT_NAME for one in holding):
            found.append(default_policy())
        return tuple(sorted(found, key=lambda one: one.name))

    def _policy(self, version: Version) -> Policy:
        if version.row_id not in self._parsed:
            self._parsed[version.row_id] = version.policy()
        return self._parsed[version.row_id]


def readable(found: Iterable[Version]) -> tuple[Policy, ...]:
    """Return the shipped policy and every version that can still be understood, as it was read."""
    policies = [default_policy()]
    for version in found:
        if version.is_retirement:
            continue
        try:
            policies.append(version.policy())
        except InputError:
            continue  # of an older grammar: it is kept, and shows nothing about a newer one
    return tuple(policies)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Who changes a policy, why, and from when on."""

    author: str
    note: str
    valid_from_at: datetime
    now: datetime


def put(state: StateLog, name: str, *, document: Mapping[str, object], change: Change) -> int:
    """Store the next version of a policy with its row of the audit; return its number.

    Raises:
        WarehouseError: somebody else stored a version at the same moment, or the state cannot be
            written.
    """
    known = versions(state)
    number = max((one.number for one in known if one.name == name), default=0) + 1
    row: dict[str, StateValue] = {
        "policy": name,
        "version_number": number,
        "body_json": json_text(document),
        "author": change.author,
        "note": change.note,
        "valid_from_at": _iso(change.valid_from_at),
    }
    seen = max((one.row_id for one in known), default=0)
    audit = _audit(name, number, document=document, change=change)
    if state.state_append([(TABLE, row), (AUDIT, audit)], seen={TABLE: seen}) is None:
        raise WarehouseError(
            f"somebody else stored a policy while {name} was checked; nothing was stored",
            hint="look at it with `steward policy list --all`, then repeat the command",
        )
    return number


def _audit(
    name: str, number: int, *, document: Mapping[str, object], change: Change
) -> dict[str, StateValue]:
    body = {
        "version": number,
        "note": change.note,
        "mode": document.get("mode"),
        "valid_from_at": _iso(change.valid_from_at),
    }
    return {
        "occurred_at": _iso(change.now),
        "actor": change.author,
        "action": "policy_retired" if document.get(RETIRED) is True else "policy_stored",
        "subject_kind": "policy",
        "subject_uid": name,
        "body_json": json_text(body),
    }


def chosen(found: Iterable[Version], name: str, number: int | None, *, now: datetime) -> Version:
    """Return a version by its number, or the one that holds now.

    Raises:
        InputError: there is none, or it is retired.
    """
    own = [one for one in found if one.name == name]
    fitting = [one for one in own if one.number == number] if number else in_force(own, now)
    if fitting and not fitting[0].is_retirement:
        return fitting[0]
    word = f" version {number}" if number else ""
    said = "is retired" if fitting else "is not stored"
    raise InputError(f"policy {name}{word} {said}", hint="see `steward policy list --all`")


def _iso(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
