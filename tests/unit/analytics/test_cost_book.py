"""The price book: which row counts, for whom, where and when."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import polars as pl
import pytest

from analytics.cost.book import BOOK, price_book, price_instants, resolved, spelled
from steward.period import Period
from tests.support.analytics_frames import HOUR, NOON
from tests.support.price_rows import LONG_AGO, closed, price, rows

DAY = Period(NOON, NOON + 24 * HOUR)
TICK = timedelta(microseconds=1)


def book(
    *prices: dict[str, object],
    period: Period = DAY,
    models: Sequence[str] = ("H100",),
    clusters: Sequence[str] = ("c",),
    closings: Sequence[dict[str, object]] = (),
) -> pl.DataFrame:
    return price_book(
        rows("price", *prices),
        period,
        models=models,
        clusters=clusters,
        closed=rows("closed_period", *closings),
    )


def told(found: pl.DataFrame) -> list[tuple[str | None, int, datetime, datetime]]:
    """Return team, rate in whole units, start and end."""
    return [
        (team, rate // 1_000_000, start, end)
        for team, rate, start, end in found.select(
            "tenant_id", "rate_micros", "valid_from_at", "valid_until_at"
        ).iter_rows()
    ]


def test_no_price_is_no_row() -> None:
    found = book()
    assert found.is_empty()
    assert found.schema == BOOK


def test_a_price_of_zero_is_a_price() -> None:
    assert told(book(price("0.00"))) == [(None, 0, DAY.from_at, DAY.until_at)]


def test_a_price_is_cut_to_the_period() -> None:
    assert told(book(price("4.00"))) == [(None, 4, DAY.from_at, DAY.until_at)]


@pytest.mark.parametrize(
    ("start", "spans"),
    [
        pytest.param(DAY.until_at - TICK, 2, id="inside the period"),
        pytest.param(DAY.until_at, 1, id="at its end"),
        pytest.param(DAY.until_at + TICK, 1, id="past its end"),
        pytest.param(DAY.from_at + TICK, 2, id="just after its start"),
        pytest.param(DAY.from_at, 1, id="at its start"),
        pytest.param(DAY.from_at - TICK, 1, id="before its start"),
    ],
)
def test_a_later_price_takes_over_from_its_start(start: datetime, spans: int) -> None:
    assert book(price("4.00"), price("3.00", valid_from_at=start)).height == spans


def test_of_overlapping_prices_the_one_recorded_last_counts() -> None:
    change = NOON + 6 * HOUR
    found = book(price("3.00", valid_from_at=change), price("4.00"))
    assert told(found) == [(None, 4, DAY.from_at, DAY.until_at)]


def test_a_price_comes_back_when_a_later_one_ends() -> None:
    usual = price("4.00")
    sale = price("1.00", valid_from_at=NOON + HOUR, valid_until_at=NOON + 2 * HOUR)
    assert [row[1] for row in told(book(usual, sale))] == [4, 1, 4]


def test_the_order_of_rows_does_not_matter() -> None:
    some = [price("4.00"), price("3.00", valid_from_at=NOON + HOUR), price("2.00", cluster="c")]
    assert book(*some).equals(book(*reversed(some)))


def test_a_withdrawn_price_leaves_none() -> None:
    usual, gone = price("4.00"), price("4.00", is_withdrawn=1, valid_from_at=NOON + HOUR)
    assert told(book(usual, gone)) == [(None, 4, NOON, NOON + HOUR)]


def test_a_price_after_a_withdrawal_counts_again() -> None:
    found = book(price("4.00"), price("4.00", is_withdrawn=1), price("5.00"))
    assert told(found) == [(None, 5, DAY.from_at, DAY.until_at)]


def test_resolved_leaves_withdrawn_rows_out() -> None:
    some = rows("price", price("4.00"), price("4.00", is_withdrawn=1))
    assert resolved(some).is_empty()


@pytest.mark.parametrize(
    ("prices", "rate"),
    [
        pytest.param([price("4.00"), price("3.00", cluster="c")], 3, id="a cluster's own first"),
        pytest.param([price("3.00", cluster="c"), price("4.00")], 3, id="whichever came last"),
        pytest.param([price("4.00"), price("3.00", cluster="d")], 4, id="another cluster's never"),
        pytest.param(
            [price("4.00"), price("2.00", purchase_type="spot")], 4, id="on demand before spot"
        ),
        pytest.param(
            [price("4.00"), price("2.00", purchase_type="reserved")], 2, id="reserved before it"
        ),
        pytest.param(
            [price("2.00", purchase_type="reserved"), price("1.00", purchase_type="tco")],
            1,
            id="what it costs its owner first of all",
        ),
        pytest.param(
            [price("2.00", purchase_type="tco"), price("5.00", cluster="c")],
            5,
            id="a cluster's own list price before a general cost",
        ),
    ],
)
def test_one_price_counts(prices: list[dict[str, object]], rate: int) -> None:
    assert [row[1] for row in told(book(*prices))] == [rate]


def test_a_team_with_prices_of_its_own_has_all_of_its_prices() -> None:
    own = price("1.00", tenant_id="a", valid_until_at=NOON + HOUR)
    assert told(book(price("4.00"), own)) == [
        ("a", 1, NOON, NOON + HOUR),
        ("a", 4, NOON + HOUR, DAY.until_at),
        (None, 4, DAY.from_at, DAY.until_at),
    ]


@pytest.mark.parametrize(
    ("name", "model", "is_found"),
    [
        pytest.param("H100-SXM-80GB", "H100-SXM-80GB", True, id="the same"),
        pytest.param("h100-sxm-80gb", "H100-SXM-80GB", True, id="another case"),
        pytest.param("NVIDIA H100 SXM 80GB", "H100-SXM-80GB", True, id="maker and blanks"),
        pytest.param("nvidia_h100_sxm_80gb", "H100-SXM-80GB", True, id="underscores"),
        pytest.param("H100-PCIE-80GB", "H100-SXM-80GB", False, id="another form factor"),
        pytest.param("H100", "H100-SXM-80GB", False, id="a part of it"),
    ],
)
def test_a_model_is_found_by_name(name: str, model: str, *, is_found: bool) -> None:
    assert book(price(gpu_model=name), models=(model,)).height == int(is_found)


def test_the_exact_name_comes_before_another_spelling() -> None:
    found = book(price("4.00"), price("9.00", gpu_model="NVIDIA H100"))
    assert [row[1] for row in told(found)] == [4]
    assert spelled(pl.Series(["H100", "NVIDIA H100"]), ["H100"]).rows() == [("H100", "H100")]


class TestVersion:
    def version(self, *prices: dict[str, object]) -> str:
        return str(book(*prices)["book_version"][0])

    def test_same_prices_same_version(self) -> None:
        one = price("4.00")
        assert self.version(one) == self.version(one)

    def test_another_price_another_version(self) -> None:
        assert self.version(price("4.00")) != self.version(price("4.01"))

    def test_a_price_from_later_on_changes_nothing(self) -> None:
        one = price("4.00")
        assert self.version(one, price("5.00", valid_from_at=DAY.until_at)) == self.version(one)


class TestClosed:
    at = datetime(2026, 6, 3, tzinfo=NOON.tzinfo)

    @pytest.mark.parametrize(
        ("recorded_at", "rate"),
        [
            pytest.param(at - TICK, 5, id="recorded before it was closed"),
            pytest.param(at, 5, id="as it was closed"),
            pytest.param(at + TICK, 4, id="afterwards"),
        ],
    )
    def test_a_closed_period_keeps_its_prices(self, recorded_at: datetime, rate: int) -> None:
        found = book(price("4.00"), price("5.00", recorded_at=recorded_at), closings=[closed()])
        assert [row[1] for row in told(found)] == [rate]

    def test_a_correction_takes_the_prices_of_its_own_time(self) -> None:
        usual, late = price("4.00"), price("5.00", recorded_at=self.at + HOUR)
        first = closed()
        corrected = closed(
            kind="correction", corrects_statement_id="s", recorded_at=self.at + 2 * HOUR
        )
        assert [row[1] for row in told(book(usual, late, closings=[first]))] == [4]
        found = book(usual, late, closings=[first, corrected])
        assert [row[1] for row in told(found)] == [5]

    def test_what_is_not_closed_has_todays_prices(self) -> None:
        half = closed(from_at=LONG_AGO, until_at=NOON + HOUR)
        usual, late = price("4.00"), price("5.00", recorded_at=self.at + HOUR)
        found = book(usual, late, closings=[half])
        assert told(found) == [(None, 4, NOON, NOON + HOUR), (None, 5, NOON + HOUR, DAY.until_at)]

    def test_a_period_of_no_length(self) -> None:
        none = Period(NOON, NOON)
        assert book(price(), period=none, closings=[closed()]).is_empty()


def test_instants_are_those_inside_the_period() -> None:
    some = rows(
        "price",
        price(valid_from_at=DAY.from_at, valid_until_at=NOON + HOUR),
        price(valid_from_at=NOON + HOUR, valid_until_at=DAY.until_at),
        price(valid_from_at=NOON + 2 * HOUR),
    )
    ends = rows("closed_period", closed(until_at=NOON + 3 * HOUR))
    assert price_instants(some, DAY) == (NOON + HOUR, NOON + 2 * HOUR)
    assert price_instants(some, DAY, closed=ends)[-1] == NOON + 3 * HOUR
