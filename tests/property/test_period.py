"""Laws of periods, whatever their ends."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from steward.period import Period

EPOCH = datetime(2020, 1, 1, tzinfo=UTC)
TEN_YEARS = timedelta(days=3_653)
instants = st.timedeltas(timedelta(0), TEN_YEARS).map(lambda since: EPOCH + since)
ordered_pairs = st.tuples(instants, instants).map(sorted)
periods = ordered_pairs.map(lambda ends: Period(ends[0], ends[1]))


def in_common(left: Period, right: Period) -> timedelta:
    common = left.intersection(right)
    return timedelta(0) if common is None else common.length


@given(st.lists(instants, min_size=3, max_size=8))
def test_the_parts_of_a_split_period_add_up_to_the_whole(instants_inside: list[datetime]) -> None:
    cuts = sorted(instants_inside)
    parts = [Period(start, end) for start, end in pairwise(cuts)]

    assert sum((part.length for part in parts), timedelta()) == Period(cuts[0], cuts[-1]).length


@given(st.lists(instants, min_size=3, max_size=8), instants)
def test_an_instant_lies_in_exactly_one_part_of_a_split_period(
    instants_inside: list[datetime], instant: datetime
) -> None:
    cuts = sorted(instants_inside)
    parts = [Period(start, end) for start, end in pairwise(cuts)]
    whole = Period(cuts[0], cuts[-1])

    assert sum(part.contains(instant) for part in parts) == whole.contains(instant)


@given(periods, st.lists(instants, min_size=3, max_size=8))
def test_what_a_period_shares_with_the_parts_it_shares_with_the_whole(
    period: Period, instants_inside: list[datetime]
) -> None:
    cuts = sorted(instants_inside)
    parts = [Period(start, end) for start, end in pairwise(cuts)]

    shared = sum((in_common(period, part) for part in parts), timedelta())
    assert shared == in_common(period, Period(cuts[0], cuts[-1]))


@given(periods, periods)
def test_intersection_does_not_depend_on_the_side(left: Period, right: Period) -> None:
    assert left.intersection(right) == right.intersection(left)


@given(periods)
def test_a_period_shares_itself_with_itself_unless_empty(period: Period) -> None:
    assert period.intersection(period) == (period if period.length else None)


@given(periods, periods, instants)
def test_the_intersection_holds_what_both_hold(
    left: Period, right: Period, instant: datetime
) -> None:
    common = left.intersection(right)

    held = common is not None and common.contains(instant)
    assert held == (left.contains(instant) and right.contains(instant))


@given(periods, periods, periods)
def test_intersections_may_be_grouped_as_one_likes(a: Period, b: Period, c: Period) -> None:
    def both(left: Period | None, right: Period | None) -> Period | None:
        return None if left is None or right is None else left.intersection(right)

    assert both(both(a, b), c) == both(a, both(b, c))
