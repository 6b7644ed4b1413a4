"""``steward price`` and ``steward budget``: what is recorded, and what is refused."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from dashboard.prices.importing import parsed
from dashboard.prices.words import decimal_text, exact, micros, thresholds, weights
from steward.errors import InputError, UsageError
from tests.support.price_commands import steward

SET = ("price", "set", "--model", "H100", "--rate", "2.50", "--currency", "USD")
FROM = ("--from", "2026-05-01T00:00:00Z")
HEADER = "model,rate,currency,from"


def told(capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    captured = capsys.readouterr()
    return captured.out, captured.err


def listed(
    folder: Path, capsys: pytest.CaptureFixture[str], *arguments: str
) -> list[dict[str, object]]:
    capsys.readouterr()
    assert steward(folder, *(arguments or ("price", "list")), "--format", "json") == 0
    found = json.loads(capsys.readouterr().out)
    assert isinstance(found, list)
    return found


class TestWords:
    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ("2.50", 2_500_000),
            ("0", 0),
            ("0.000001", 1),
            ("0.1", 100_000),
            (" 4 ", 4_000_000),
            ("9223372036854.775807", 2**63 - 1),
        ],
    )
    def test_amounts_are_exact(self, text: str, value: int) -> None:
        assert micros(text, option="--rate") == value

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("0.0000001", "more than six decimals"),
            ("-0.01", "out of range"),
            ("9223372036854.775808", "out of range"),
            ("1,000", "no decimal"),
            ("1e3", "no decimal"),
            ("NaN", "no decimal"),
            ("", "no decimal"),
            ("\uff12", "no decimal"),
        ],
    )
    def test_other_texts_are_refused(self, text: str, words: str) -> None:
        with pytest.raises(UsageError, match=words):
            micros(text, option="--rate")

    def test_percentages_become_shares(self) -> None:
        assert thresholds("80,50,100") == "[0.5, 0.8, 1]"
        with pytest.raises(UsageError, match="not above 0"):
            thresholds("0")

    def test_weights(self) -> None:
        assert weights("a=5, b=0.5") == {"a": "5", "b": "0.5"}
        for wrong in ("a", "a=", "=1", "a=1,a=2", "a=-1"):
            with pytest.raises(UsageError):
                weights(wrong)

    def test_decimals_are_cut(self) -> None:
        assert decimal_text(exact("10", option="x") / 3, decimals=4) == "3.3333"
        assert decimal_text(exact("-0.5", option="x")) == "-0.5"


class TestSet:
    def test_a_price_is_recorded_and_listed(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert steward(tmp_path, *SET, *FROM) == 0
        out, _ = told(capsys)
        assert out.startswith("price 1: H100 2.50 USD per GPU-hour (on_demand) from 2026-05-01T00")
        (row,) = listed(tmp_path, capsys)
        assert (row["rate"], row["currency"], row["valid_until_at"]) == ("2.50", "USD", None)

    def test_a_change_ends_the_price_before_it(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert steward(tmp_path, *SET, *FROM) == 0
        change = (*SET[:5], "3.00", *SET[6:], "--from", "2026-06-01T00:00:00Z")
        assert steward(tmp_path, *change) == 0
        rows = listed(tmp_path, capsys)
        assert [(row["rate"], row["valid_until_at"]) for row in rows] == [
            ("2.50", "2026-06-01T00:00:00.000Z"),
            ("3.00", None),
        ]

    def test_a_withdrawn_price_is_listed_no_more(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert steward(tmp_path, *SET, *FROM) == 0
        assert steward(tmp_path, "price", "withdraw", "1", "--reason", "a slip") == 0
        assert listed(tmp_path, capsys) == []
        rows = listed(tmp_path, capsys, "price", "list", "--all")
        assert [row["is_withdrawn"] for row in rows] == [0, 1]
        assert rows[1]["source"] == "withdrawn 1: a slip"

    def test_a_price_may_end_later_on(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert steward(tmp_path, *SET, *FROM) == 0
        end = ("--from", "2026-07-01T00:00:00Z")
        assert steward(tmp_path, "price", "withdraw", "1", "--reason", "sold", *end) == 0
        assert [row["valid_until_at"] for row in listed(tmp_path, capsys)] == [
            "2026-07-01T00:00:00.000Z"
        ]

    @pytest.mark.parametrize(
        ("arguments", "code", "words"),
        [
            pytest.param((*SET[:5], "x", *SET[6:], *FROM), 2, "no decimal", id="no number"),
            pytest.param((*SET[:7], "dollar", *FROM), 2, "no currency", id="no currency"),
            pytest.param((*SET, "--from", "2026-05-01"), 2, "no time zone", id="no zone"),
            pytest.param(SET, 2, "--from", id="no start"),
            pytest.param(
                (*SET, *FROM, "--until", "2026-05-01T00:00:00Z"), 2, "is not after", id="no length"
            ),
            pytest.param((*SET, *FROM, "--type", "free"), 2, "invalid choice", id="no such type"),
            pytest.param((*SET[:3], " ", *SET[4:], *FROM), 2, "is empty", id="no model"),
            pytest.param(
                ("price", "withdraw", "9", "--reason", "x"), 4, "no price 9", id="no such price"
            ),
            pytest.param(
                ("price", "rate", "USD", "USD", "1", *FROM), 2, "worth one", id="one currency"
            ),
            pytest.param(
                ("price", "rate", "USD", "CNY", "0", *FROM), 2, "out of range", id="worth nothing"
            ),
            pytest.param(
                ("price", "energy", "--kwh", "0.1", "--currency", "USD", "--pue", "0.9", *FROM),
                2,
                "out of range",
                id="a PUE below one",
            ),
            pytest.param(
                ("price", "energy", "--kwh", "0.1", "--currency", "USD", "--pue", "1", "--hours",
                 "8-8", *FROM),
                2,
                "no span of a day",
                id="no hours",
            ),
            pytest.param(
                ("price", "import", "/no/such.csv"), 4, "cannot read", id="no such file"
            ),
            pytest.param(
                ("budget", "set", "--amount", "1", "--currency", "USD", "--period", "soon"),
                2,
                "no period",
                id="no period",
            ),
            pytest.param(
                ("budget", "set", "--amount", "1", "--currency", "USD", "--period", "this-month"),
                2,
                "whole period",
                id="a period that is not over",
            ),
        ],
    )  # fmt: skip
    def test_what_is_wrong_is_explained(
        self,
        tmp_path: Path,
        capsys: pytest.CaptureFixture[str],
        *,
        arguments: tuple[str, ...],
        code: int,
        words: str,
    ) -> None:
        assert steward(tmp_path, *arguments) == code
        out, err = told(capsys)
        assert out == ""
        assert words in err
        assert "hint: " in err


class TestImport:
    def test_a_file_is_recorded_once(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        file = tmp_path / "prices.csv"
        file.write_text(
            f"{HEADER},team,until\nH100,2.50,usd,2026-05-01T00:00:00Z,vision,\n"
            "T4,0.35,USD,2026-05-01T00:00:00Z,,2026-06-01T00:00:00Z\n"
        )
        assert steward(tmp_path, "price", "import", str(file)) == 0
        assert steward(tmp_path, "price", "import", str(file)) == 0
        out, _ = told(capsys)
        assert "recorded 2 prices" in out
        assert "recorded 0 prices" in out
        rows = listed(tmp_path, capsys, "price", "list", "--all")
        assert [(row["gpu_model"], row["tenant_id"], row["rate"]) for row in rows] == [
            ("H100", "vision", "2.50"),
            ("T4", None, "0.35"),
        ]

    def test_a_wrong_row_keeps_all_rows_out(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        file = tmp_path / "prices.csv"
        file.write_text(
            f"{HEADER}\nH100,2.50,USD,2026-05-01T00:00:00Z\nT4,x,USD,2026-05-01T00:00:00Z\n"
        )
        assert steward(tmp_path, "price", "import", str(file)) == 4
        _, err = told(capsys)
        assert "line 3: rate 'x' is no decimal number" in err
        assert listed(tmp_path, capsys) == []

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            pytest.param("", "lacks model", id="nothing"),
            pytest.param(f"{HEADER}\n", "no rows", id="a header only"),
            pytest.param("model,rate,currency\n", "lacks from", id="a column is missing"),
            pytest.param(f"{HEADER},colour\n", "has 'colour'", id="a column is unknown"),
            pytest.param(f"{HEADER},rate\n", "twice", id="a column comes twice"),
            pytest.param(f"{HEADER}\nH100,2\n", "line 2: it has not as many cells", id="short"),
            pytest.param(f'{HEADER}\n"H100,2\n', "line", id="an open quote"),
            pytest.param(
                f"{HEADER},type\nH100,2,USD,2026-05-01T00:00:00Z,x\n", "'x'", id="no such type"
            ),
        ],
    )
    def test_wrong_files(self, text: str, words: str) -> None:
        with pytest.raises(InputError, match=words):
            parsed(text, name="p.csv", approver="ann")

    def test_many_faults_are_counted(self) -> None:
        text = HEADER + "\nH100,x,USD,2026-05-01T00:00:00Z" * 12 + "\n"
        with pytest.raises(InputError, match=r"12 faulty row(.|\n)*and 2 more"):
            parsed(text, name="p.csv", approver="ann")

    def test_the_examples_are_marked_as_such(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert steward(tmp_path, "price", "import", "--example") == 0
        rows = listed(tmp_path, capsys)
        assert {"H100-SXM-80GB", "A100-SXM4-40GB", "L40S", "T4"} <= {
            str(row["gpu_model"]) for row in rows
        }
        assert all(str(row["source"]).startswith("example: ") for row in rows)


TCO = (
    "price", "tco", "--gpus", "8", "--server", "300000", "--residual", "0.15", "--life-years", "5",
    "--network", "60000", "--kw", "10.2", "--kw-month", "180", "--load", "0.8", "--pue", "1.3",
    "--kwh", "0.10", "--support", "9000", "--staff", "15000",
)  # fmt: skip


class TestCalculator:
    def test_the_rate_is_exact(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert steward(tmp_path, *TCO, "--sold", "0.7") == 0
        out, _ = told(capsys)
        assert "118324.608" in out
        assert "308137/182500" in out
        assert "1.688422" in out
        assert "2.41203131115" in out

    def test_a_leap_year(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert steward(tmp_path, *TCO, "--leap-year") == 0
        assert "1.684171038251" in told(capsys)[0]

    def test_the_rate_is_recorded_with_its_inputs(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert steward(tmp_path, *TCO, "--store", "H100", *FROM) == 0
        (row,) = listed(tmp_path, capsys)
        assert (row["rate"], row["purchase_type"]) == ("1.688422", "tco")

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            pytest.param((*TCO, "--store", "H100"), "needs --from", id="no start"),
            pytest.param((*TCO, "--gpus", "0"), "at least one GPU", id="no GPU"),
            pytest.param((*TCO, "--pue", "-1"), "no amount is negative", id="a negative ratio"),
            pytest.param((*TCO, "--sold", "1.1"), "at most 1", id="more sold than there is"),
        ],
    )
    def test_what_is_wrong_is_explained(
        self,
        tmp_path: Path,
        capsys: pytest.CaptureFixture[str],
        arguments: tuple[str, ...],
        words: str,
    ) -> None:
        assert steward(tmp_path, *arguments) == 2
        assert words in told(capsys)[1]


def test_other_rows_are_recorded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    until = ("--until", "2026-06-01T00:00:00Z")
    assert steward(tmp_path, "price", "rate", "usd", "CNY", "7.10", *FROM) == 0
    assert steward(
        tmp_path, "price", "energy", "--kwh", "0.12", "--currency", "USD", "--pue", "1.32",
        "--hours", "8-22", "--zone", "Asia/Shanghai", "--carbon", "0.40", *FROM,
    ) == 0  # fmt: skip
    assert steward(
        tmp_path, "price", "shared", "platform", "--amount", "900", "--currency", "USD",
        "--split", "custom", "--weights", "a=5,b=3", *FROM, *until,
    ) == 0  # fmt: skip
    assert told(capsys)[0].splitlines() == [
        "recorded as exchange_rate 1",
        "recorded as energy_tariff 1",
        "recorded as shared_cost 1",
    ]


def test_a_budget_is_recorded_and_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stated = ("budget", "set", "--amount", "12000.50", "--currency", "USD", "--period", "2026-05")
    assert steward(tmp_path, *stated, "--team", "vision", "--zone", "Asia/Shanghai") == 0
    assert "vision may spend 12000.50 USD from 2026-04-30T16:00:00.000Z" in told(capsys)[0]
    (row,) = listed(tmp_path, capsys, "budget", "list")
    assert (row["amount"], row["thresholds_json"]) == ("12000.50", "[0.5, 0.8, 1]")


@pytest.mark.parametrize("form", ["table", "csv"])
def test_lists_are_for_people_and_sheets(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    assert steward(tmp_path, *SET, *FROM) == 0
    told(capsys)
    assert steward(tmp_path, "price", "list", "--format", form) == 0
    out, _ = told(capsys)
    if form == "csv":
        (row,) = csv.DictReader(io.StringIO(out))
        assert (row["rate"], row["tenant_id"]) == ("2.50", "")
    else:
        assert [line.split()[:3] for line in out.splitlines()] == [
            ["price_id", "gpu_model", "rate"],
            ["1", "H100", "2.50"],
        ]


def test_an_empty_book_says_how_to_start(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert steward(tmp_path, "price", "list") == 0
    assert "steward price import --example" in told(capsys)[0]
