"""Where MIG instances go on a board, and what room is left, by bounds."""

from __future__ import annotations

import polars as pl
import pytest

from analytics.inventory import current_devices, current_instances
from analytics.mig_geometry import (
    FOUR_SLICES,
    SEVEN_SLICES,
    Board,
    Room,
    board_of,
    board_room,
    is_offered,
    is_possible,
    oversized,
    partitioned_boards,
    room_for,
    short_name,
)
from tests.support.analytics_frames import Row, rows

GIB = 2**30


@pytest.mark.parametrize(
    ("profile", "starts", "size"),
    [
        ("1g", (0, 1, 2, 3, 4, 5, 6), 1),
        ("1g+me", (0, 1, 2, 3, 4, 5, 6), 1),
        ("1g.double", (0, 2, 4, 6), 2),
        ("2g", (0, 2, 4), 2),
        ("3g", (0, 4), 4),
        ("4g", (0,), 4),
        ("7g", (0,), 8),
    ],
)
def test_placements_as_the_driver_lists_them(
    profile: str, starts: tuple[int, ...], size: int
) -> None:
    known = SEVEN_SLICES.profiles[profile]
    assert (known.starts, known.memory_slices) == (starts, size)


@pytest.mark.parametrize(
    ("there", "wanted", "room"),
    [
        pytest.param((), "1g", Room(at_least=7, at_most=7, by_slices=7), id="empty takes 7 of 1g"),
        pytest.param((), "1g.double", Room(at_least=4, at_most=4, by_slices=4), id="4 doubles"),
        pytest.param((), "1g+me", Room(at_least=1, at_most=1, by_slices=1), id="media once"),
        pytest.param((), "2g", Room(at_least=3, at_most=3, by_slices=3), id="3 of 2g"),
        pytest.param((), "3g", Room(at_least=2, at_most=2, by_slices=2), id="2 of 3g"),
        pytest.param((), "4g", Room(at_least=1, at_most=1, by_slices=1), id="1 of 4g"),
        pytest.param((), "7g", Room(at_least=1, at_most=1, by_slices=1), id="1 of 7g"),
        pytest.param(("7g",), "1g", Room(at_least=0, at_most=0, by_slices=0), id="full"),
        pytest.param(
            ("3g", "3g"), "1g", Room(at_least=0, at_most=0, by_slices=0),
            id="two of 3g strand a compute slice for want of memory",
        ),
        pytest.param(
            ("3g",), "4g", Room(at_least=0, at_most=1, by_slices=1), id="4g only at the first slice"
        ),
        pytest.param(("4g",), "3g", Room(at_least=1, at_most=1, by_slices=1), id="4g and 3g"),
        pytest.param(
            ("1g",) * 3, "4g", Room(at_least=0, at_most=1, by_slices=1), id="depends on where"
        ),
        pytest.param(("1g", "4g"), "2g", Room(at_least=0, at_most=1, by_slices=1), id="at 4 only"),
        pytest.param(("1g+me",), "1g+me", Room(at_least=0, at_most=0, by_slices=0), id="no second"),
        pytest.param(("4g", "4g"), "1g", None, id="cannot be: 4g twice"),
        pytest.param(("7g", "1g"), "1g", None, id="cannot be: more than the board"),
    ],
)  # fmt: skip
def test_room_beside_instances(there: tuple[str, ...], wanted: str, room: Room | None) -> None:
    assert room_for(there, wanted, SEVEN_SLICES) == room


def test_a_board_of_four_slices() -> None:
    assert room_for((), "1g", FOUR_SLICES) == Room(at_least=4, at_most=4, by_slices=4)
    assert room_for(("1g",), "2g", FOUR_SLICES) == Room(at_least=1, at_most=1, by_slices=1)
    assert room_for(("1g", "1g"), "2g", FOUR_SLICES) == Room(at_least=0, at_most=1, by_slices=1)
    assert "3g" not in FOUR_SLICES.profiles


@pytest.mark.parametrize(
    ("there", "possible"),
    [
        (("3g", "3g"), True),
        (("4g", "2g", "1g"), True),
        (("2g", "2g", "2g", "1g"), True),
        (("3g", "2g", "1g", "1g"), True),
        (("4g", "3g", "1g"), False),
        (("3g", "3g", "1g"), False),
        (("1g",) * 8, False),
    ],
)
def test_known_layouts(there: tuple[str, ...], *, possible: bool) -> None:
    assert is_possible(there, SEVEN_SLICES) is possible


@pytest.mark.parametrize(
    ("model", "board"),
    [
        ("NVIDIA A30", FOUR_SLICES),
        ("NVIDIA-A30-24GB", FOUR_SLICES),
        ("NVIDIA A300", SEVEN_SLICES),
        ("NVIDIA H100 80GB HBM3", SEVEN_SLICES),
        (None, SEVEN_SLICES),
    ],
)
def test_kinds_of_board(model: str | None, board: Board) -> None:
    assert board_of(model) is board


@pytest.mark.parametrize(
    ("profile", "memory_gb", "name"),
    [
        ("1g.5gb", 40.0, "1g"),
        ("1g.10gb", 40.0, "1g.double"),
        ("1g.10gb", 80.0, "1g"),
        ("1g.20gb", 80.0, "1g.double"),
        ("1g.18gb", 141.0, "1g"),
        ("1g.35gb", 141.0, "1g.double"),
        ("1g.20gb", None, "1g"),
        ("1g.10gb+me", 80.0, "1g+me"),
        ("1c.3g.40gb", 80.0, "3g"),
        ("5g.40gb", 80.0, None),
        ("3g", 80.0, None),
        (None, 80.0, None),
    ],
)
def test_names_of_profiles(profile: str | None, memory_gb: float | None, name: str | None) -> None:
    assert short_name(profile, SEVEN_SLICES, memory_gb=memory_gb) == name


@pytest.mark.parametrize(
    ("profile", "memory_gb", "offered"),
    [
        ("1g.5gb", 40.0, True),
        ("1g.5gb", 80.0, False),
        ("3g.40gb", 80.0, True),
        ("1g.12gb", 96.0, True),
        ("1g.5gb", None, True),
        ("whole", 80.0, False),
    ],
)
def test_profiles_that_a_board_offers(
    profile: str, memory_gb: float | None, *, offered: bool
) -> None:
    assert is_offered(profile, SEVEN_SLICES, memory_gb=memory_gb) is offered


def instance(number: int, profile: str | None, **given: object) -> Row:
    told = {"instance_id": number, "mig_profile": profile, "memory_total_bytes": 10 * GIB}
    return {**told, "memory_share_ratio": 0.125, "sm_share_ratio": 1 / 7, **given}


BOARD: Row = {"model": "A100", "memory_total_bytes": 40 * GIB}


def boards(*devices: Row) -> pl.DataFrame:
    found = rows("device_history", *devices)
    return partitioned_boards(
        current_instances(found), current_devices(found, rows("node_history"))
    )


def test_boards_with_instances() -> None:
    whole: Row = {**BOARD, "device_uuid": "GPU-b"}
    found = boards(BOARD, instance(1, "3g.20gb"), instance(2, "1g.5gb"), whole)
    assert found.select("device_uuid", "profiles").rows() == [("GPU-a", ["1g", "3g"])]


def test_a_board_with_an_unknown_profile_is_left_out() -> None:
    assert boards(BOARD, instance(1, "3g.20gb"), instance(2, None)).is_empty()


def test_room_by_model_and_profile() -> None:
    found = board_room(boards(BOARD, instance(1, "3g.20gb")))
    assert found.filter(pl.col("profile") == "4g").rows() == [("A100", "4g", 1, 0, 1, 1, 0, 1)]
    assert found.filter(pl.col("profile") == "7g").rows() == [("A100", "7g", 1, 0, 0, 0, 0, 0)]


def test_no_boards_no_room() -> None:
    assert board_room(boards(BOARD)).is_empty()


@pytest.mark.parametrize(
    ("used", "oversized_count", "excess"),
    [
        pytest.param(0, 1, 2, id="nothing in use: one slice is enough"),
        pytest.param(5 * GIB, 1, 2, id="exactly one slice"),
        pytest.param(5 * GIB + 1, 1, 2, id="two slices of memory come with one of compute"),
        pytest.param(10 * GIB + 1, 0, 0, id="more than two slices need this one"),
        pytest.param(None, None, None, id="not read"),
    ],
)
def test_instances_larger_than_their_need(
    used: int | None, oversized_count: int | None, excess: int | None
) -> None:
    board: Row = {**BOARD, "memory_total_bytes": 40 * GIB}
    three = instance(1, "3g.20gb", memory_total_bytes=20 * GIB)
    held = current_instances(rows("device_history", board, three)).with_columns(
        model=pl.lit("A100")
    )
    reading = {"instance_id": 1, "memory_used_bytes": used, "memory_total_bytes": 20 * GIB}
    found = oversized(held, rows("latest_device_sample", reading)).row(0, named=True)
    assert (found["oversized_count"], found["excess_slice_count"]) == (oversized_count, excess)
    assert found["known_count"] == (used is not None)
