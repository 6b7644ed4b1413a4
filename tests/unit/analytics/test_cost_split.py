"""Shared cost by each rule, the order of a bill, and borrowing."""

from __future__ import annotations

from fractions import Fraction

import pytest

from analytics.cost.borrow import BorrowPolicy, Quota, borrowing
from analytics.cost.rounding import parts_of
from analytics.cost.settle import IDLE, Bill, Line, Rules, printed_bills, settle
from analytics.cost.split import UNDISTRIBUTED, SplitRule, split, weights

DIRECT = {"b": 300, "a": 600, "none": 0}


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        pytest.param(SplitRule.PROPORTIONAL, {"a": 600, "b": 300, "none": 0}, id="proportional"),
        pytest.param(SplitRule.EVEN_ALL, {"a": 1, "b": 1, "none": 1}, id="even over all"),
        pytest.param(SplitRule.EVEN_ACTIVE, {"a": 1, "b": 1, "none": 0}, id="even over active"),
        pytest.param(SplitRule.CUSTOM, {"a": 2, "b": 0, "new": 1, "none": 0}, id="custom"),
    ],
)
def test_weights(rule: SplitRule, expected: dict[str, int]) -> None:
    found = weights(rule, DIRECT, custom={"a": 2, "new": 1})
    assert found == expected
    assert list(found) == sorted(expected)


def test_a_team_with_more_credit_than_cost_weighs_nothing() -> None:
    assert weights(SplitRule.PROPORTIONAL, {"a": -5, "b": 1}) == {"a": 0, "b": 1}
    assert weights(SplitRule.EVEN_ACTIVE, {"a": -5, "b": 1}) == {"a": 0, "b": 1}


def test_a_negative_custom_weight_is_refused() -> None:
    with pytest.raises(ValueError, match="weight of a is negative"):
        weights(SplitRule.CUSTOM, {}, custom={"a": -1})


@pytest.mark.parametrize(
    ("amount", "weighed", "left", "warns"),
    [
        pytest.param(9, {"a": 0, "b": 0}, 9, True, id="all weights zero"),
        pytest.param(9, {}, 9, True, id="nobody"),
        pytest.param(0, {"a": 0}, 0, False, id="nothing to share out"),
        pytest.param(9, {"a": 1}, 0, False, id="one bears it all"),
    ],
)
def test_what_nobody_can_bear_stays_a_row(
    amount: int, weighed: dict[str, int], left: int, warns: bool
) -> None:
    told = split(amount, weighed, name="platform")
    assert told.undistributed == left
    assert told.undistributed + sum(told.shares.values()) == amount
    assert told.warning == (
        "platform has no owner to bear it: every weight is 0" if warns else None
    )


def test_a_credit_is_shared_out_like_a_cost() -> None:
    assert split(-9, {"a": 2, "b": 1}).shares == {"a": -6, "b": -3}


def line(owner: str, cost: object, *, place: str = "c", is_shared: bool = False) -> Line:
    """Return one line of one resource."""
    return Line(owner=owner, place=place, costs={"H100": Fraction(str(cost))}, is_shared=is_shared)


def test_idle_stays_a_row_unless_it_is_shared_out() -> None:
    lines, idle = [line("a", 1), line("b", 3)], {("c", "H100"): Fraction(8)}
    apart = settle(lines, idle=idle, rules=Rules())
    assert apart.bills == {
        "a": Bill(direct=Fraction(1)),
        "b": Bill(direct=Fraction(3)),
        IDLE: Bill(idle=Fraction(8)),
    }
    spread = settle(lines, idle=idle, rules=Rules(shares_idle=True))
    assert spread.bills == {
        "a": Bill(direct=Fraction(1), idle=Fraction(2)),
        "b": Bill(direct=Fraction(3), idle=Fraction(6)),
    }
    assert apart.total == spread.total == 12


def test_idle_goes_to_holders_of_its_own_place_and_resource() -> None:
    lines = [line("a", 1), line("b", 1, place="d")]
    idle = {("c", "H100"): 5, ("d", "T4"): 7}
    told = settle(lines, idle=idle, rules=Rules(shares_idle=True))
    assert {name: bill.idle for name, bill in told.bills.items()} == {"a": 5, "b": 0, IDLE: 7}


def test_shared_lines_bring_their_idle_and_go_by_cost_before_idle() -> None:
    lines = [line("a", 2), line("b", 1), line("infra", 1, is_shared=True)]
    rules = Rules(shares_idle=True, overhead=3)
    told = settle(lines, idle={("c", "H100"): 4}, rules=rules)
    assert told.bills == {
        "a": Bill(
            direct=Fraction(2), idle=Fraction(2), shared=Fraction(4, 3), overhead=Fraction(2)
        ),
        "b": Bill(
            direct=Fraction(1), idle=Fraction(1), shared=Fraction(2, 3), overhead=Fraction(1)
        ),
    }


def test_shared_cost_without_any_owner_is_kept_and_told() -> None:
    told = settle([line("infra", 5, is_shared=True)], idle={}, rules=Rules(overhead=2))
    assert told.bills == {UNDISTRIBUTED: Bill(shared=Fraction(5), overhead=Fraction(2))}
    assert told.warnings == (
        "shared cost has no owner to bear it: every weight is 0",
        "overhead has no owner to bear it: every weight is 0",
    )


def test_a_filter_changes_no_kept_number() -> None:
    told = settle(
        [line("a", 1), line("b", 2)], idle={("c", "H100"): 9}, rules=Rules(shares_idle=True)
    )
    assert told.kept(lambda owner: owner == "a") == {"a": told.bills["a"]}


def test_negative_idle_is_refused() -> None:
    with pytest.raises(ValueError, match="idle H100 of n1 is negative"):
        settle([], idle={("n1", "H100"): -1}, rules=Rules())


def test_printed_bills_add_up_across_and_down() -> None:
    lines = [line(name, parts_of(Fraction("0.335"))) for name in "abc"]
    idle = {("c", "H100"): parts_of(Fraction("0.01"))}
    told = settle(lines, idle=idle, rules=Rules(shares_idle=True))
    assert printed_bills(told.bills, "USD") == {
        "a": {"direct": 34, "idle": 0, "shared": 0, "overhead": 0, "total": 34},
        "b": {"direct": 34, "idle": 0, "shared": 0, "overhead": 0, "total": 34},
        "c": {"direct": 34, "idle": 0, "shared": 0, "overhead": 0, "total": 34},
    }


@pytest.mark.parametrize(
    ("policy", "a", "b", "pool"),
    [
        pytest.param(BorrowPolicy.CONSUMPTION, 5, 1, 4, id="consumption"),
        pytest.param(BorrowPolicy.RESERVATION_FULL, 5, 3, 2, id="reservation"),
        pytest.param(BorrowPolicy.RESERVATION_WITH_BORROW_CREDIT, 5, 3, 2, id="with credit"),
    ],
)
def test_what_nobody_was_promised_is_taken_first_and_paid_by_its_user(
    policy: BorrowPolicy, a: int, b: int, pool: int
) -> None:
    """Ten are there, seven promised: the one beyond A's guarantee is nobody's."""
    teams = {"A": Quota(guaranteed=4, used=5), "B": Quota(guaranteed=3, used=1)}
    told = borrowing(teams, capacity=10, policy=policy, borrow_rate=1)
    assert (told.charges, told.pool) == ({"A": a, "B": b}, pool)
    assert sum(told.fees.values()) == 0


@pytest.mark.parametrize(
    ("rate", "a", "b"),
    [
        pytest.param(0, 4, 4, id="no fee"),
        pytest.param(Fraction(1, 2), Fraction(9, 2), Fraction(7, 2), id="half the price"),
        pytest.param(1, 5, 3, id="the whole price"),
    ],
)
def test_the_lender_is_credited_what_the_borrower_pays(
    rate: Fraction, a: Fraction, b: Fraction
) -> None:
    teams = {"A": Quota(guaranteed=4, used=5), "B": Quota(guaranteed=4, used=3)}
    policy = BorrowPolicy.RESERVATION_WITH_BORROW_CREDIT
    told = borrowing(teams, capacity=8, policy=policy, borrow_rate=rate)
    assert told.charges == {"A": a, "B": b}
    assert told.fees["A"] == told.credits["B"] == rate


def test_lenders_are_credited_by_what_they_did_not_use() -> None:
    teams = {
        "A": Quota(guaranteed=0, used=3),
        "B": Quota(guaranteed=4, used=0),
        "C": Quota(guaranteed=2, used=0),
    }
    policy = BorrowPolicy.RESERVATION_WITH_BORROW_CREDIT
    told = borrowing(teams, capacity=6, policy=policy)
    assert told.credits == {"A": 0, "B": 2, "C": 1}


@pytest.mark.parametrize("policy", BorrowPolicy)
def test_promises_beyond_the_capacity_count_for_what_can_be_kept(policy: BorrowPolicy) -> None:
    teams = {"A": Quota(guaranteed=8, used=2), "B": Quota(guaranteed=8, used=0)}
    told = borrowing(teams, capacity=8, policy=policy)
    assert told.pool + sum(told.charges.values()) == 8
    assert told.charges["A"] == (2 if policy is BorrowPolicy.CONSUMPTION else 4)


def test_more_use_than_capacity_is_refused() -> None:
    with pytest.raises(ValueError, match="used 9 of a capacity of 8"):
        borrowing({"A": Quota(guaranteed=8, used=9)}, capacity=8, policy=BorrowPolicy.CONSUMPTION)


def test_nobody_borrows_from_nobody() -> None:
    told = borrowing({}, capacity=0, policy=BorrowPolicy.RESERVATION_FULL)
    assert (told.charges, told.pool) == ({}, 0)
