"""Who bears what: direct cost, the share of idle and the share of what benefits all, kept apart.

None of it changes the total: direct cost and idle of all groups add up to the capacity, and what
no group can be given stays in rows of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import polars as pl

from analytics.cost.account import Account, Key, total
from analytics.cost.costing import Costing
from analytics.cost.settle import IDLE, Line, PlaceResource, Rules, settle
from analytics.cost.shared import SharedCost
from analytics.usage import ALLOCATED

UNATTRIBUTED: Final = "unattributed"
"""The team of device-time whose holder is known to nobody."""
_WITHIN: Final = ("is_held", "tenant_id", "cluster", "model")


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupBill:
    """What one group bears, in parts of the costing's currency."""

    key: Key
    """Values of the grouping's columns."""
    account: Account
    """Its own device-time: what it held, or all of it where the group is a place."""
    idle: Fraction
    """Its share of what nobody held; of a place its own."""
    shared: Fraction
    """Its share of what benefits all."""

    @property
    def direct(self) -> Fraction:
        """Return the cost of what was held."""
        return self.account.allocated

    @property
    def full(self) -> Fraction:
        """Return everything it bears."""
        return self.direct + self.idle + self.shared


@dataclass(frozen=True, slots=True, kw_only=True)
class Bills:
    """All groups, and what none of them can be given."""

    groups: tuple[GroupBill, ...]
    """Ascending by key (nulls last)."""
    idle_left: Fraction
    """Idle where nobody held anything of that model in that cluster."""
    shared_left: Fraction
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Piece:
    """What is of one group, team, cluster and model, held or not."""

    key: Key
    is_held: bool
    team: str
    cluster: str
    model: str
    account: Account


def bills(costing: Costing, keys: Sequence[str], *, is_of_holder: bool) -> Bills:
    """Return what each group bears.

    Idle of a cluster and model goes to its holders there, by their direct cost; a place bears its
    own. Shared cost goes to teams by its rule, and within a team to groups by their direct cost.

    Args:
        costing: the priced ledger.
        keys: its columns that tell groups apart.
        is_of_holder: whether groups are holders of device-time, rather than places.
    """
    pieces = _pieces(costing, keys)
    held = [piece for piece in pieces if piece.is_held]
    own: dict[Key, Account] = {}
    for piece in held if is_of_holder else pieces:
        own[piece.key] = own.get(piece.key, Account()) + piece.account
    if is_of_holder:
        nobody = _of_nobody_known(pieces)
        if nobody.wall_ticks:
            key = tuple(None for _ in keys)
            own[key] = own.get(key, Account()) + nobody
    idle, idle_left = _idle_shares(pieces) if is_of_holder else _own_idle(own)
    shared, shared_left, warnings = _shared_shares(costing.shared, held, keys=keys)
    found = tuple(
        GroupBill(
            key=key,
            account=own.get(key, Account()),
            idle=idle.get(key, Fraction(0)),
            shared=shared.get(key, Fraction(0)),
        )
        for key in sorted({*own, *shared}, key=_order)
    )
    return Bills(groups=found, idle_left=idle_left, shared_left=shared_left, warnings=warnings)


def _pieces(costing: Costing, keys: Sequence[str]) -> list[_Piece]:
    """Return the account of each group in pieces that have one team, cluster and model."""
    within = {f"_{name}": name for name in _WITHIN}
    rows = costing.rows.with_columns(**{alias: pl.col(name) for alias, name in within.items()})
    found = costing.accounts(*keys, *within, rows=rows)
    return [_piece(key, account, count=len(keys)) for key, account in found.items()]


def _piece(key: Key, account: Account, *, count: int) -> _Piece:
    is_held, team, cluster, model = key[count:]
    return _Piece(
        key=key[:count],
        is_held=bool(is_held),
        team=UNATTRIBUTED if team is None else str(team),
        cluster=str(cluster or ""),
        model=str(model or ""),
        account=account,
    )


def _of_nobody_known(pieces: Iterable[_Piece]) -> Account:
    """Return the allocated time of which it is not even known whether somebody held it."""
    return total(piece.account.only(ALLOCATED) for piece in pieces if not piece.is_held)


def _own_idle(own: Mapping[Key, Account]) -> tuple[dict[Key, Fraction], Fraction]:
    """Return what nobody held of each place: nothing is left."""
    return {key: account.unallocated for key, account in own.items()}, Fraction(0)


def _idle_shares(pieces: Iterable[_Piece]) -> tuple[dict[Key, Fraction], Fraction]:
    """Return each holder's share of idle, and the idle that nobody can be given."""
    owners: dict[str, Key] = {}
    names: dict[Key, str] = {}
    lines: list[Line] = []
    idle: dict[PlaceResource, Fraction] = {}
    for piece in pieces:
        where = (piece.cluster, piece.model)
        idle[where] = idle.get(where, Fraction(0)) + piece.account.unallocated
        if piece.is_held:
            name = names.setdefault(piece.key, str(len(names)))
            owners[name] = piece.key
            costs = {piece.model: piece.account.allocated}
            lines.append(Line(owner=name, place=piece.cluster, costs=costs))
    settled = settle(lines, idle=idle, rules=Rules(shares_idle=True)).bills
    left = settled[IDLE].idle if IDLE in settled else Fraction(0)
    return {owners[name]: bill.idle for name, bill in settled.items() if name in owners}, left


def _shared_shares(
    costs: Iterable[SharedCost], held: Sequence[_Piece], *, keys: Sequence[str]
) -> tuple[dict[Key, Fraction], Fraction, tuple[str, ...]]:
    """Return each group's share of shared costs, what is left, and why."""
    shares: dict[Key, Fraction] = {}
    left = Fraction(0)
    warnings: list[str] = []
    for cost in costs:
        here = [piece for piece in held if cost.cluster in {None, piece.cluster}]
        found = cost.split(_by_team(here))
        left += found.undistributed
        warnings += [] if found.warning is None else [found.warning]
        for team, amount in found.shares.items():
            for key, share in _within_team(team, amount, here, keys=keys).items():
                if key is None:
                    left += share
                else:
                    shares[key] = shares.get(key, Fraction(0)) + share
    return shares, left, tuple(warnings)


def _by_team(pieces: Iterable[_Piece]) -> dict[str, Fraction]:
    direct: dict[str, Fraction] = {}
    for piece in pieces:
        direct[piece.team] = direct.get(piece.team, Fraction(0)) + piece.account.allocated
    return direct


def _within_team(
    team: str, amount: Fraction, pieces: Iterable[_Piece], *, keys: Sequence[str]
) -> dict[Key | None, Fraction]:
    """Return a team's amount by group; under None what no group of the team can be given."""
    if amount == 0:
        return {}
    if tuple(keys) == ("tenant_id",):
        return {(None if team == UNATTRIBUTED else team,): amount}
    own = [piece for piece in pieces if piece.team == team]
    direct = sum((piece.account.allocated for piece in own), Fraction(0))
    if direct == 0:
        return {None: amount}
    found: dict[Key | None, Fraction] = {}
    for piece in own:
        share = amount * piece.account.allocated / direct
        found[piece.key] = found.get(piece.key, Fraction(0)) + share
    return found


def _order(key: Key) -> tuple[tuple[bool, str], ...]:
    return tuple((value is None, "" if value is None else str(value)) for value in key)
