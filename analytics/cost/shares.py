"""Shares of one device: MIG slices on a declared basis, and time-sliced replicas.

Whatever the basis, the shares and what is left add up to one device: the seventh compute slice and
the eighth memory slice never vanish.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from itertools import pairwise
from typing import Final

UNALLOCATED: Final = "unallocated"
"""What is left of a device and could still be allocated."""
STRANDED_SLICE: Final = "stranded_slice"
"""What is left of a device and fits no profile: lost to geometry."""
REMAINDER: Final = "idle"
"""Time of a shared device that nobody held."""


class MigBasis(StrEnum):
    """What a MIG slice is charged by; one per rate card, printed on each report."""

    COMPUTE = "compute"
    MEMORY = "memory"
    DOMINANT = "dominant"
    """The larger of both; scaled to one device where they add up to more."""


@dataclass(frozen=True, slots=True)
class Slices:
    """Compute and memory slices of an instance or a board."""

    compute: int
    memory: int


SEVEN_BY_EIGHT: Final = Slices(7, 8)
"""A100, H100, H200, B200."""
SMALLEST: Final = (Slices(1, 1),)
"""The profile that fits where any does."""


def mig_shares(
    held: Mapping[str, Slices],
    basis: MigBasis,
    *,
    board: Slices = SEVEN_BY_EIGHT,
    profiles: Iterable[Slices] = SMALLEST,
) -> dict[str, Fraction]:
    """Return each instance's share of its board, and the rest by name.

    Args:
        held: slices of each allocated instance.
        basis: what a slice is charged by.
        board: slices of the whole.
        profiles: what could still be made of the rest; if none fits, the rest is stranded.

    Returns:
        the instances in their order, then ``UNALLOCATED`` or ``STRANDED_SLICE``; sums to 1

    Raises:
        ValueError: the instances have more slices than the board.
    """
    left = Slices(
        board.compute - sum(one.compute for one in held.values()),
        board.memory - sum(one.memory for one in held.values()),
    )
    if left.compute < 0 or left.memory < 0:
        raise ValueError(f"instances {sorted(held)} have more slices than their board")
    raw = {name: _share(one, basis, board) for name, one in held.items()}
    total = sum(raw.values(), Fraction(0))
    shares = {name: share / max(total, Fraction(1)) for name, share in raw.items()}
    fits = any(one.compute <= left.compute and one.memory <= left.memory for one in profiles)
    rest = UNALLOCATED if fits else STRANDED_SLICE
    return shares | {rest: 1 - sum(shares.values(), Fraction(0))}


def replica_shares(
    holders: Mapping[str, Sequence[tuple[int, int]]], life: tuple[int, int], *, replicas: int
) -> dict[str, Fraction]:
    """Return each holder's share of a device in which every replica is worth the same.

    Args:
        holders: half-open spans each one held a replica, clipped to the life; overlapping spans
            of one holder are several replicas.
        life: the half-open span the device exists.
        replicas: how many the device offers.

    Returns:
        the holders in their order, then ``REMAINDER``; sums to 1. A replica that nobody holds is
        idle, however busy the others make the device.

    Raises:
        ValueError: a life of no length, no replica, or more holders at once than replicas.
    """
    if replicas < 1:
        raise ValueError(f"a device has at least one replica, not {replicas}")
    shares = dict.fromkeys(holders, Fraction(0))
    for start, end, active in _segments(holders, life):
        if sum(active.values()) > replicas:
            raise ValueError(f"{sum(active.values())} holders of {replicas} replicas at once")
        for name, count in active.items():
            shares[name] += _of_life(start, end, life) * Fraction(count, replicas)
    return _with_remainder(shares)


def active_shares(
    holders: Mapping[str, Sequence[tuple[int, int]]], life: tuple[int, int]
) -> dict[str, Fraction]:
    """Return each holder's share of something divided evenly among whoever holds it just then.

    Args:
        holders: half-open spans each one held it, clipped to the life; overlapping spans of one
            holder count once.
        life: the half-open span it exists.

    Returns:
        the holders in their order, then ``REMAINDER`` for time without a holder; sums to 1

    Raises:
        ValueError: a life of no length.
    """
    shares = dict.fromkeys(holders, Fraction(0))
    for start, end, active in _segments(holders, life):
        for name in active:
            shares[name] += _of_life(start, end, life) / len(active)
    return _with_remainder(shares)


def even_use(used: Fraction | None, sharers: Sequence[str]) -> dict[str, Fraction | None]:
    """Return what a device was used, measured once per device, divided evenly over its sharers.

    Null stays null: without a reading nobody's use is known.
    """
    return dict.fromkeys(sharers, None if used is None else used / max(len(sharers), 1))


def _share(one: Slices, basis: MigBasis, board: Slices) -> Fraction:
    compute = Fraction(one.compute, board.compute)
    memory = Fraction(one.memory, board.memory)
    return {
        MigBasis.COMPUTE: compute,
        MigBasis.MEMORY: memory,
        MigBasis.DOMINANT: max(compute, memory),
    }[basis]


def _segments(
    holders: Mapping[str, Sequence[tuple[int, int]]], life: tuple[int, int]
) -> list[tuple[int, int, dict[str, int]]]:
    """Return the pieces of a life in which the holders stay the same, each with its holders."""
    first, last = life
    if last <= first:
        raise ValueError(f"a life from {first} to {last} has no length")
    ends = {end for spans in holders.values() for span in spans for end in span}
    cuts = sorted({first, last, *(end for end in ends if first < end < last)})
    pieces = []
    for start, end in pairwise(cuts):
        counts = {
            name: sum(begun <= start and end <= ended for begun, ended in spans)
            for name, spans in holders.items()
        }
        pieces.append((start, end, {name: count for name, count in counts.items() if count}))
    return pieces


def _of_life(start: int, end: int, life: tuple[int, int]) -> Fraction:
    return Fraction(end - start, life[1] - life[0])


def _with_remainder(shares: dict[str, Fraction]) -> dict[str, Fraction]:
    return shares | {REMAINDER: 1 - sum(shares.values(), Fraction(0))}
