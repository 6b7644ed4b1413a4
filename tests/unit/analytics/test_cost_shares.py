"""Shares of one device: MIG slices on each basis, replicas, and whoever holds it just then."""

from __future__ import annotations

from fractions import Fraction

import pytest

from analytics.cost.shares import (
    REMAINDER,
    STRANDED_SLICE,
    UNALLOCATED,
    MigBasis,
    Slices,
    active_shares,
    even_use,
    mig_shares,
    replica_shares,
)

SEVENTH, EIGHTH = Fraction(1, 7), Fraction(1, 8)
ONE, TWO, THREE, FOUR, WHOLE = (
    Slices(1, 1), Slices(2, 2), Slices(3, 4), Slices(4, 4), Slices(7, 8)
)  # fmt: skip


@pytest.mark.parametrize(
    ("held", "basis", "shares"),
    [
        pytest.param({}, MigBasis.COMPUTE, {UNALLOCATED: 1}, id="nothing held"),
        pytest.param({"i": WHOLE}, MigBasis.COMPUTE, {"i": 1, STRANDED_SLICE: 0}, id="whole board"),
        pytest.param({"i": WHOLE}, MigBasis.MEMORY, {"i": 1, STRANDED_SLICE: 0}, id="whole memory"),
        pytest.param(
            {"i": FOUR, "j": TWO, "k": ONE},
            MigBasis.MEMORY,
            {"i": 4 * EIGHTH, "j": 2 * EIGHTH, "k": EIGHTH, STRANDED_SLICE: EIGHTH},
            id="memory left without compute is stranded",
        ),
        pytest.param(
            {"i": THREE, "j": THREE},
            MigBasis.COMPUTE,
            {"i": 3 * SEVENTH, "j": 3 * SEVENTH, STRANDED_SLICE: SEVENTH},
            id="compute left without memory is stranded",
        ),
        pytest.param(
            {"i": TWO, "j": TWO},
            MigBasis.DOMINANT,
            {"i": 2 * SEVENTH, "j": 2 * SEVENTH, UNALLOCATED: 3 * SEVENTH},
            id="compute dominates small slices",
        ),
    ],
)
def test_mig_shares(held: dict[str, Slices], basis: MigBasis, shares: dict[str, Fraction]) -> None:
    assert mig_shares(held, basis) == shares


def test_dominant_shares_beyond_the_board_are_scaled_to_it() -> None:
    """Large memory beside much compute: 4/8 + 3/7 + 1/7 exceeds one."""
    held = {"memory": Slices(1, 5), "compute": Slices(4, 2), "small": Slices(1, 1)}
    told = mig_shares(held, MigBasis.DOMINANT)
    raw = {"memory": 5 * EIGHTH, "compute": 4 * SEVENTH, "small": SEVENTH}
    total = sum(raw.values())
    assert total > 1
    assert told == {name: share / total for name, share in raw.items()} | {STRANDED_SLICE: 0}


@pytest.mark.parametrize(
    ("slices", "is_refused"),
    [
        pytest.param([FOUR, TWO], False, id="inside"),
        pytest.param([FOUR, TWO, ONE], False, id="exactly all compute"),
        pytest.param([FOUR, TWO, TWO], True, id="one past"),
    ],
)
def test_more_slices_than_the_board_has_are_refused(
    slices: list[Slices], *, is_refused: bool
) -> None:
    held = {f"i{number}": one for number, one in enumerate(slices)}
    if is_refused:
        with pytest.raises(ValueError, match="more slices than their board"):
            mig_shares(held, MigBasis.COMPUTE)
    else:
        assert sum(mig_shares(held, MigBasis.COMPUTE).values()) == 1


def test_a_rest_is_stranded_when_none_of_the_profiles_fits() -> None:
    held = {"i": THREE, "j": TWO}
    assert UNALLOCATED in mig_shares(held, MigBasis.COMPUTE)
    assert STRANDED_SLICE in mig_shares(held, MigBasis.COMPUTE, profiles=[THREE])


def test_a_replica_is_worth_the_same_whoever_else_is_there() -> None:
    holders = {"a": [(0, 10)], "b": [(5, 10)], "twice": [(0, 10), (0, 10)]}
    assert replica_shares(holders, (0, 10), replicas=4) == {
        "a": Fraction(1, 4),
        "b": Fraction(1, 8),
        "twice": Fraction(1, 2),
        REMAINDER: Fraction(1, 8),
    }


@pytest.mark.parametrize("replicas", [0, 1])
def test_more_holders_than_replicas_are_refused(replicas: int) -> None:
    with pytest.raises(ValueError, match="replica"):
        replica_shares({"a": [(0, 1)], "b": [(0, 1)]}, (0, 1), replicas=replicas)


@pytest.mark.parametrize(
    ("span", "share"),
    [
        pytest.param((-5, 5), Fraction(1, 2), id="begun before the device"),
        pytest.param((5, 15), Fraction(1, 2), id="outlives the device"),
        pytest.param((0, 10), Fraction(1), id="exactly its life"),
        pytest.param((10, 20), Fraction(0), id="after it"),
        pytest.param((3, 3), Fraction(0), id="no length"),
    ],
)
def test_holders_are_clipped_to_the_device_s_life(span: tuple[int, int], share: Fraction) -> None:
    assert active_shares({"a": [span]}, (0, 10)) == {"a": share, REMAINDER: 1 - share}


def test_a_device_without_holders_is_all_remainder() -> None:
    assert active_shares({}, (0, 1)) == {REMAINDER: 1}
    assert replica_shares({}, (0, 1), replicas=4) == {REMAINDER: 1}


@pytest.mark.parametrize("life", [(5, 5), (5, 4)])
def test_a_life_of_no_length_is_refused(life: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="has no length"):
        active_shares({}, life)


def test_use_of_a_device_is_divided_once() -> None:
    assert even_use(Fraction(3, 4), ["a", "b", "c"]) == dict.fromkeys("abc", Fraction(1, 4))
    assert even_use(Fraction(0), ["a"]) == {"a": 0}
    assert even_use(None, ["a", "b"]) == {"a": None, "b": None}
    assert even_use(Fraction(1), []) == {}
