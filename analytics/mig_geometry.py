"""Which MIG instances still go onto a board: external and internal fragmentation of slices.

A MIG board has memory slices in a row; a profile takes some of them and may start only at certain
ones, so free slices need not be usable. Where instances lie is not recorded, only which there are:
every answer therefore has a lower and an upper bound over all arrangements they may be in.
Source of placements: ``nvidia-smi mig -lgipp`` and NVIDIA's MIG user guide, "Supported profiles".
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Final

import polars as pl

from analytics.schemas.columns import rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A size of instance on one kind of board."""

    compute_slices: int
    memory_slices: int
    starts: tuple[int, ...]
    """First memory slices it may take."""
    is_single: bool = False
    """True: a board takes one of them at most (media extensions)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """A kind of board: its slices and the profiles it takes, by short name (``3g``)."""

    compute_slices: int
    memory_slices: int
    profiles: Mapping[str, Profile]


def _profile(
    compute: int, memory: int, starts: tuple[int, ...], *, is_single: bool = False
) -> Profile:
    return Profile(compute_slices=compute, memory_slices=memory, starts=starts, is_single=is_single)


SEVEN_SLICES: Final = Board(
    compute_slices=7,
    memory_slices=8,
    profiles=MappingProxyType(
        {
            "1g": _profile(1, 1, (0, 1, 2, 3, 4, 5, 6)),
            "1g+me": _profile(1, 1, (0, 1, 2, 3, 4, 5, 6), is_single=True),
            "1g.double": _profile(1, 2, (0, 2, 4, 6)),
            "2g": _profile(2, 2, (0, 2, 4)),
            "3g": _profile(3, 4, (0, 4)),
            "4g": _profile(4, 4, (0,)),
            "7g": _profile(7, 8, (0,)),
        }
    ),
)
"""A100, A800, H100, H200, H20, H800, B200 and their kin."""
FOUR_SLICES: Final = Board(
    compute_slices=4,
    memory_slices=4,
    profiles=MappingProxyType(
        {
            "1g": _profile(1, 1, (0, 1, 2, 3)),
            "1g+me": _profile(1, 1, (0, 1, 2, 3), is_single=True),
            "2g": _profile(2, 2, (0, 2)),
            "4g": _profile(4, 4, (0,)),
        }
    ),
)
"""A30."""
DOUBLE_MEMORY_RATIO: Final = 0.75
"""A 1g profile whose memory is at least this share of two slices is the one with twice the memory:
names state rounded sizes (10 of 80 GB is one slice, 20 is two)."""
_NAME: Final = re.compile(
    r"(?:\d+c\.)?(?P<slices>\d+)g\.(?P<gb>\d+)gb(?P<extension>\+me)?(?:[+-][\w.+-]+)?",
    re.IGNORECASE,
)
_FOUR_SLICE_MODELS: Final = frozenset({"A30"})


def board_of(model: str | None) -> Board:
    """Return the kind of board a GPU model is; every MIG board but the A30 has seven slices."""
    words = re.split(r"[\s_-]", (model or "").upper())
    return FOUR_SLICES if _FOUR_SLICE_MODELS.intersection(words) else SEVEN_SLICES


def short_name(profile: str | None, board: Board, *, memory_gb: float | None = None) -> str | None:
    """Return a profile's short name on a board, None where the board has no such profile.

    Args:
        profile: as exporters label it, ``3g.40gb`` or ``1g.10gb+me``.
        board: the kind of board.
        memory_gb: of the whole board; without it a 1g profile counts as the plain one.
    """
    found = _NAME.fullmatch(profile or "")
    if found is None:
        return None
    name = f"{int(found['slices'])}g{(found['extension'] or '').lower()}"
    if name == "1g" and "1g.double" in board.profiles and memory_gb:
        two_slices = 2 * memory_gb / board.memory_slices
        name = "1g.double" if int(found["gb"]) >= DOUBLE_MEMORY_RATIO * two_slices else name
    return name if name in board.profiles else None


def is_offered(profile: str, board: Board, *, memory_gb: float | None) -> bool:
    """Tell whether a board of this memory offers a profile of this very name.

    A 1g.5gb is one slice of a board of 40 GB, and no profile of one of 80. Without the board's
    memory the number of slices decides.
    """
    name, found = short_name(profile, board, memory_gb=memory_gb), _NAME.fullmatch(profile)
    if name is None or found is None:
        return False
    if memory_gb is None:
        return True
    stated = int(found["gb"])
    return abs(stated - board.profiles[name].memory_slices * memory_gb / board.memory_slices) <= (
        ROUNDED_RATIO * stated + 1
    )


ROUNDED_RATIO: Final = 0.05
"""Names round memory, up to this part and 1 GB: 18 is an eighth of 141, 11 or 12 one of 96."""
Spans = frozenset[tuple[int, int]]


@cache
def _arrangements(names: tuple[str, ...], *, is_four: bool) -> frozenset[Spans]:
    """Return the ways in which instances of these profiles can lie on one board."""
    board = FOUR_SLICES if is_four else SEVEN_SLICES
    if not _is_within(names, board):
        return frozenset()
    found: set[Spans] = {frozenset()}
    for name in names:
        profile = board.profiles[name]
        found = {
            spans | {(start, start + profile.memory_slices)}
            for spans in found
            for start in profile.starts
            if _is_free(spans, start, start + profile.memory_slices)
        }
    return frozenset(found)


def _is_within(names: tuple[str, ...], board: Board) -> bool:
    compute = sum(board.profiles[name].compute_slices for name in names)
    singles = sum(board.profiles[name].is_single for name in names)
    return compute <= board.compute_slices and singles <= 1


def _is_free(spans: Spans, start: int, end: int) -> bool:
    return all(end <= first or last <= start for first, last in spans)


def is_possible(names: tuple[str, ...], board: Board) -> bool:
    """Tell whether instances of these profiles can be on one board together."""
    return bool(_arrangements(tuple(sorted(names)), is_four=board is FOUR_SLICES))


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """How many more instances of one profile a board takes."""

    at_least: int
    """If the instances there lie as badly as they may."""
    at_most: int
    """If they lie as well as they may; also what re-creating them would allow."""
    by_slices: int
    """If only free slices counted, not where they are."""


@cache
def _room(names: tuple[str, ...], wanted: str, *, is_four: bool) -> Room | None:
    board = FOUR_SLICES if is_four else SEVEN_SLICES
    arranged = _arrangements(names, is_four=is_four)
    if not arranged:
        return None
    counts = [_more(spans, names, wanted, board=board) for spans in sorted(arranged, key=sorted)]
    profile = board.profiles[wanted]
    used = [board.profiles[name] for name in names]
    compute = board.compute_slices - sum(each.compute_slices for each in used)
    memory = board.memory_slices - sum(each.memory_slices for each in used)
    by_slices = min(compute // profile.compute_slices, memory // profile.memory_slices)
    if profile.is_single:
        by_slices = min(by_slices, 1 - sum(each.is_single for each in used))
    return Room(at_least=min(counts), at_most=max(counts), by_slices=max(by_slices, 0))


def room_for(names: tuple[str, ...], wanted: str, board: Board) -> Room | None:
    """Return how many more instances of a profile go beside those there, by bounds.

    Args:
        names: short names of the instances there, any order.
        wanted: short name of the profile asked for.
        board: the kind of board.

    Returns:
        None where the instances there cannot be on one board together: the record is torn.
    """
    return _room(tuple(sorted(names)), wanted, is_four=board is FOUR_SLICES)


def _more(spans: Spans, names: tuple[str, ...], wanted: str, *, board: Board) -> int:
    """Return the most instances of one profile beside fixed ones.

    They are of one length, so taking the earliest free start each time leaves the most room.
    """
    profile, count, taken, there = board.profiles[wanted], 0, spans, names
    for start in profile.starts:
        end = start + profile.memory_slices
        if _is_free(taken, start, end) and _is_within((*there, wanted), board):
            taken, there, count = taken | {(start, end)}, (*there, wanted), count + 1
    return count


def board_room(boards: pl.DataFrame) -> pl.DataFrame:
    """Return, per model and profile, how many instances could be created and what blocks the rest.

    Args:
        boards: rows of ``partitioned_boards``.

    Returns:
        one row per model and profile of its kind of board, ascending
            model str | null, profile str, board_count i64, at_least_count, at_most_count i64
            (instances that could be created), by_slice_count i64 (if free slices alone decided),
            blocked_count i64 (boards with enough free slices and surely no legal start),
            perhaps_blocked_count i64 (no legal start in some arrangement, but not in all)
    """
    told = []
    for board_row in boards.iter_rows(named=True):
        board = board_of(board_row["model"])
        names = tuple(board_row["profiles"])
        for wanted in board.profiles:
            room = room_for(names, wanted, board)
            if room is not None:
                told.append({"model": board_row["model"], "profile": wanted, **_told(room)})
    frame = pl.DataFrame(told, schema=_ROOM)
    return (
        frame.group_by("model", "profile")
        .agg(pl.len().cast(pl.Int64).alias("board_count"), *[pl.col(n).sum() for n in _COUNTS])
        .sort("model", "profile", nulls_last=True)
    )


_COUNTS: Final = (
    "at_least_count",
    "at_most_count",
    "by_slice_count",
    "blocked_count",
    "perhaps_blocked_count",
)


_ROOM: Final = pl.Schema(
    [("model", pl.String), ("profile", pl.String), *((name, pl.Int64) for name in _COUNTS)]
)


def _told(room: Room) -> dict[str, int]:
    has_slices = room.by_slices > 0
    return {
        "at_least_count": room.at_least,
        "at_most_count": room.at_most,
        "by_slice_count": room.by_slices,
        "blocked_count": int(has_slices and room.at_most == 0),
        "perhaps_blocked_count": int(has_slices and room.at_least == 0 and room.at_most > 0),
    }


def partitioned_boards(instances: pl.DataFrame, homes: pl.DataFrame) -> pl.DataFrame:
    """Return boards that have instances, with their profiles.

    Args:
        instances: rows of ``inventory.current_instances``.
        homes: rows of ``inventory.current_devices``.

    Returns:
        one row per board whose instances all have a known profile, ascending
            cluster, node, device_uuid, model str | null, profiles list[str] (short names, sorted),
            memory_gb f64 | null
    """
    known = instances.join(homes, on="device_uuid")
    boards = []
    for (uuid,), part in known.group_by("device_uuid", maintain_order=True):
        first = part.row(0, named=True)
        memory = first["memory_total_bytes"]
        board = board_of(first["model"])
        gb = None if memory is None else memory / _BYTES_PER_GB
        names = [short_name(each, board, memory_gb=gb) for each in part["mig_profile"]]
        if None not in names:
            place = {name: first[name] for name in ("cluster", "node", "model")}
            told = {"device_uuid": uuid, "profiles": sorted(map(str, names)), "memory_gb": gb}
            boards.append({**place, **told})
    return pl.DataFrame(boards, schema=_BOARDS).sort("cluster", "node", "device_uuid")


_BYTES_PER_GB: Final = 2**30
"""Profiles are named in GB of which a board of 80 has 80 x 2^30 bytes, less a reserve."""
_BOARDS: Final = rows(
    cluster=pl.String,
    node=pl.String,
    device_uuid=pl.String,
    model=pl.String,
    profiles=pl.List(pl.String),
    memory_gb=pl.Float64,
)


def oversized(instances: pl.DataFrame, readings: pl.DataFrame) -> pl.DataFrame:
    """Return instances whose memory in use would fit a smaller profile (internal fragmentation).

    Args:
        instances: rows of ``inventory.current_instances`` with model str | null.
        readings: rows of ``latest_device_sample``, whose memory is the need.

    Returns:
        one row per profile, ascending
            mig_profile str, instance_count, known_count i64 (memory in use known), oversized_count
            i64 | null (null: none known), excess_slice_count i64 | null (compute slices that the
            smallest profile that holds the memory would leave free)
    """
    used = readings.filter(pl.col("instance_id").is_not_null()).select(
        "device_uuid", "instance_id", "memory_used_bytes", "memory_total_bytes"
    )
    read = instances.join(used, on=["device_uuid", "instance_id"], how="left")
    excesses = [
        {"mig_profile": row["mig_profile"], "excess": _excess(row)}
        for row in read.iter_rows(named=True)
    ]
    frame = pl.DataFrame(excesses, schema={"mig_profile": pl.String, "excess": pl.Int64})
    known = pl.col("excess").is_not_null()
    return (
        frame.group_by("mig_profile")
        .agg(
            instance_count=pl.len().cast(pl.Int64),
            known_count=known.sum().cast(pl.Int64),
            oversized_count=pl.when(known.any()).then((pl.col("excess") > 0).sum().cast(pl.Int64)),
            excess_slice_count=pl.when(known.any()).then(pl.col("excess").sum()),
        )
        .sort("mig_profile", nulls_last=True)
    )


def _excess(row: Mapping[str, object]) -> int | None:
    """Return compute slices beyond the smallest profile that holds the memory in use."""
    used, total = row["memory_used_bytes"], row["memory_total_bytes"]
    board = board_of(None if row["model"] is None else str(row["model"]))
    name = short_name(None if row["mig_profile"] is None else str(row["mig_profile"]), board)
    if not isinstance(used, int) or not isinstance(total, int) or not total or name is None:
        return None
    own = board.profiles[name]
    slices = max(1, math.ceil(used / total * own.memory_slices))
    enough = [
        each.compute_slices
        for each in board.profiles.values()
        if each.memory_slices >= slices and not each.is_single
    ]
    return max(0, own.compute_slices - min(enough))
