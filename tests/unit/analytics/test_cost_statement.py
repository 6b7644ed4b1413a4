"""Statements that never change, and corrections that add up to the fresh one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

import polars as pl
import pytest

from analytics.cost.costing import costing
from analytics.cost.statement import (
    Document,
    Heading,
    config_hash,
    correction,
    rate_text,
    sha256_of,
    statement,
    text_of,
)
from tests.support.analytics_frames import NOON, ONE_HOUR
from tests.support.ledger_rows import free, held, ledger
from tests.support.price_rows import money_frames, price, shared

LEDGER = ledger(
    held(used=2, idle=1),
    held(tenant_id="team-b", workload_uid="w2", unknown=1),
    free(free_idle=1, stranded=1),
)
HEADING = Heading(
    statement_id="CB-1",
    time_zone="UTC",
    watermark_at=NOON,
    config_hash=config_hash({"a": "b"}),
    reason=None,
)


def made(
    rate: str = "4.00", rows: pl.DataFrame = LEDGER, *, amount: str = "10.00", name: str = "CB-1"
) -> Document:
    """Return the statement of the hour at this rate, with this shared cost."""
    frames = money_frames(rows, price=[price(rate, price_id=1)], shared_cost=[shared(amount)])
    return statement(costing(frames, ONE_HOUR), replace(HEADING, statement_id=name))


def amounts(document: Document, part: str, name: str) -> list[str]:
    found = document[part]
    assert isinstance(found, list)
    return [str(row[name]) for row in found if isinstance(row, Mapping)]


def cents(texts: list[str]) -> int:
    return sum(int(text.replace(".", "")) for text in texts)


def test_lines_and_bills_sum_to_the_total() -> None:
    document = made()
    assert document["total"] == "34.00"
    assert cents(amounts(document, "lines", "amount")) == 3400
    assert cents(amounts(document, "bills", "total")) == 3400


@pytest.mark.parametrize("rate", ["0.000001", "0.333333", "1.005", "7.777777"])
def test_they_do_at_rates_that_do_not_divide(rate: str) -> None:
    document = made(rate, amount="0.01")
    total = cents([str(document["total"])])
    assert cents(amounts(document, "lines", "amount")) == total
    assert cents(amounts(document, "bills", "total")) == total


def test_a_line_is_a_team_a_place_and_a_leaf() -> None:
    lines = made()["lines"]
    assert isinstance(lines, list)
    assert lines[0] == {
        "team": "team-a",
        "cluster": "c",
        "model": "H100",
        "leaf": "used",
        "ticks": str(2 * 3_600 * 1_000_000 * 5_040),
        "amount": "8.00",
    }
    assert lines[-1] == {
        "team": "platform",
        "cluster": None,
        "model": None,
        "leaf": "shared",
        "ticks": "0",
        "amount": "10.00",
    }


def test_an_amount_without_a_price_is_null_and_counted() -> None:
    document = made(rows=ledger(held(used=1), free(model="T4", down=2)))
    assert amounts(document, "lines", "amount")[:2] == ["4.00", "None"]
    assert document["unpriced_ticks"] == str(2 * 3_600 * 1_000_000 * 5_040)


def test_without_any_price_there_is_no_statement() -> None:
    with pytest.raises(ValueError, match="needs a currency"):
        statement(costing(money_frames(LEDGER), ONE_HOUR), HEADING)


def test_the_same_makes_the_same_bytes() -> None:
    assert text_of(made()) == text_of(made())
    assert sha256_of(text_of(made())) == sha256_of(text_of(made()))


def test_the_order_of_rows_does_not_matter() -> None:
    assert text_of(made(rows=LEDGER.reverse())) == text_of(made())


def test_a_text_reads_back_as_it_was() -> None:
    assert json.loads(text_of(made())) == made()
    assert text_of(json.loads(text_of(made()))) == text_of(made())


class TestCorrection:
    def corrected(self, *stored: Document, fresh: Document) -> Document:
        found = correction(stored, fresh, statement_id="CB-1-c1")
        assert found is not None
        return found

    def test_nothing_changed(self) -> None:
        assert correction([made()], made(), statement_id="x") is None

    def test_a_dearer_price(self) -> None:
        found = self.corrected(made("4.00"), fresh=made("5.00"))
        assert (found["kind"], found["corrects_statement_id"]) == ("correction", "CB-1")
        assert found["total"] == "6.00"
        assert cents(amounts(found, "lines", "amount")) == 600
        assert cents(amounts(found, "bills", "total")) == 600

    def test_a_cheaper_price_is_a_credit(self) -> None:
        found = self.corrected(made("4.00"), fresh=made("3.00"))
        assert found["total"] == "-6.00"
        assert all(text.startswith("-") for text in amounts(found, "lines", "amount"))

    def test_only_what_changed_is_listed(self) -> None:
        more = pl.concat([LEDGER, ledger(held(tenant_id="team-c", workload_uid="w3", used=1))])
        found = self.corrected(made(), fresh=made(rows=more))
        assert amounts(found, "lines", "team") == ["team-c"]
        assert found["total"] == "4.00"

    def test_what_is_gone_is_taken_back(self) -> None:
        less = LEDGER.filter(pl.col("tenant_id").fill_null("") != "team-b")
        found = self.corrected(made(), fresh=made(rows=less))
        assert amounts(found, "lines", "amount") == ["-4.00"]

    def test_a_second_correction_starts_from_the_first(self) -> None:
        first = self.corrected(made("4.00"), fresh=made("5.00"))
        assert correction([made("4.00"), first], made("5.00"), statement_id="x") is None
        again = self.corrected(made("4.00"), first, fresh=made("4.50"))
        assert again["total"] == "-3.00"

    def test_another_currency_is_refused(self) -> None:
        other = {**made(), "currency": "CNY"}
        with pytest.raises(ValueError, match="cannot be corrected in CNY"):
            correction([made()], other, statement_id="x")


@pytest.mark.parametrize(
    ("micros", "text"),
    [
        (0, "0.00"),
        (1, "0.000001"),
        (2_500_000, "2.50"),
        (1_688_422, "1.688422"),
        (10**9, "1000.00"),
    ],
)
def test_rates_are_told_without_loss(micros: int, text: str) -> None:
    assert rate_text(micros) == text


def test_a_config_has_one_name() -> None:
    assert config_hash({"a": "1", "b": "2"}) == config_hash({"b": "2", "a": "1"})
    assert config_hash({"a": "1"}) != config_hash({"a": "2"})
