"""Reports as text, JSON, CSV, Parquet and HTML: what is there, what is escaped, what is unknown."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from html.parser import HTMLParser

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from analytics.reports.model import Column, Report
from dashboard.reports import render_csv, render_html, render_json, render_terminal
from dashboard.reports.render import Rendering, render
from dashboard.reports.sections import FIGURES_KEY, section
from steward.errors import UsageError
from tests.support.report_builders import figure, money_table, report, table, tenants

FORMATS = ("table", "json", "csv", "parquet", "html")
EMPTY = report(figures=(), tables=(), findings=())
UNKNOWN = report(
    figures=(figure(value=None, coverage_ratio=0.0),),
    tables=(table(frame=tenants().clear()),),
)


def terminal(one: Report, *, width: int = 100) -> list[str]:
    return render_terminal.render(one, width=width).splitlines()


@pytest.mark.parametrize("format_name", FORMATS)
@pytest.mark.parametrize("one", [report(), EMPTY, UNKNOWN], ids=["full", "empty", "unknown"])
def test_every_format_renders_every_report(one: Report, format_name: str) -> None:
    assert len(render(one, Rendering(format=format_name))) > 0


class TestTerminal:
    def test_figures_come_first_then_findings_then_tables(self) -> None:
        lines = terminal(report())
        places = [
            next(index for index, line in enumerate(lines) if text in line)
            for text in ("Where GPU-hours", "Period", "Effective util", "attention", "By tenant")
        ]
        assert places == sorted(places)

    def test_period_unit_and_coverage_are_said(self) -> None:
        text = "\n".join(terminal(report()))
        assert "2026-05-01 12:00 \u2013 2026-05-08 12:00 UTC (7 d)" in text
        assert "Held (GPU-h)" in text
        assert "97.8 %" in text

    def test_unknown_is_a_dash_and_zero_is_zero(self) -> None:
        lines = terminal(report())
        risky = next(line for line in lines if "=cmd()" in line)
        speech = next(line for line in lines if "语音" in line)
        assert risky.split() == ["=cmd()", "12.00", "0", "%", "2.00", "0", "B"]
        assert speech.split() == ["语音", "0", "\u2013", "0", "\u2013"]

    @pytest.mark.parametrize("width", [60, 100, 160])
    def test_long_words_fold_and_nothing_is_cut(self, width: int) -> None:
        frame = pl.DataFrame({"tenant_id": ["team-" * 60], "held_gpu_hours": [1234567.891]})
        columns = (
            Column(name="tenant_id", title="Tenant", unit="text"),
            Column(name="held_gpu_hours", title="Held", unit="GPU-hours"),
        )
        lines = terminal(report(tables=(table(frame=frame, columns=columns),)), width=width)
        text = "".join(lines).replace(" ", "")
        assert max(map(len, lines)) <= width
        assert "1,234,567.89" in text
        assert text.replace("1,234,567.89", "").count("team-") == 60
        assert "…" not in text

    @pytest.mark.parametrize("width", [60, 100, 160])
    def test_a_wide_table_is_shown_in_parts_that_fit(self, width: int) -> None:
        names = [f"measure_{index}_w" for index in range(12)]
        frame = pl.DataFrame({"node": ["node-a"], **{name: [123456789.25] for name in names}})
        columns = (
            Column(name="node", title="Node", unit="text"),
            *(Column(name=name, title="Mean power", unit="W") for name in names),
        )
        lines = terminal(report(tables=(table(frame=frame, columns=columns),)), width=width)
        values = [line for line in lines if "123,456,789.25" in line]
        assert sum(line.count("123,456,789.25") for line in values) == len(names)
        assert all("node-a" in line for line in values)
        assert max(map(len, lines)) <= width

    def test_a_number_wider_than_the_page_is_not_cut(self) -> None:
        frame = pl.DataFrame({"node": ["a"], "power_w": [str(10**80)]})
        columns = (
            Column(name="node", title="Node", unit="text"),
            Column(name="power_w", title="Power", unit="W"),
        )
        lines = terminal(report(tables=(table(frame=frame, columns=columns),)), width=60)
        assert str(10**80) in "".join(lines).replace(" ", "")

    def test_markup_in_values_is_shown_as_it_is(self) -> None:
        lines = terminal(report(findings=("[bold]not markup[/bold] :smile:",)))
        assert any("[bold]not markup[/bold] :smile:" in line for line in lines)

    @pytest.mark.parametrize("is_colored", [True, False])
    def test_colour_only_where_asked_for(self, *, is_colored: bool) -> None:
        text = render_terminal.render(report(), is_colored=is_colored)
        assert ("\x1b[" in text) is is_colored

    def test_coverage_that_applies_nowhere_takes_no_column(self) -> None:
        lines = terminal(report(figures=(figure(coverage_ratio=None),)))
        assert not any("Coverage" in line for line in lines)

    @pytest.mark.parametrize(
        ("row_count", "rest"), [(19, None), (20, None), (21, "1 more rows"), (1213, "1,193 more")]
    )
    def test_a_long_table_says_how_many_rows_are_left_out(
        self, row_count: int, rest: str | None
    ) -> None:
        frame = pl.DataFrame({"node": [f"node{index}" for index in range(row_count)]})
        one = report(tables=(table("nodes", frame=frame),))
        text = render_terminal.render(one)
        assert text.count("node") >= min(row_count, 20)
        assert ("more rows" in text) is (rest is not None)
        assert rest is None or rest in text
        assert "more rows" not in str(render(one, Rendering(table_key="nodes")))

    def test_an_empty_table_says_so(self) -> None:
        assert any("No rows in this period." in line for line in terminal(UNKNOWN))


class TestJson:
    def test_values_keep_machine_units_and_full_precision(self) -> None:
        document = json.loads(render_json.render(report()))
        assert document["schema"] == "steward.report/1"
        assert document["period"] == {
            "from_at": "2026-05-01T12:00:00Z",
            "until_at": "2026-05-08T12:00:00Z",
            "length_s": 604800.0,
        }
        assert document["figures"][0]["value"] == 0.4321
        assert document["figures"][0]["coverage_ratio"] == 0.978
        assert document["tables"][0]["records"] == tenants().to_dicts()

    def test_unknown_and_not_a_number_are_null(self) -> None:
        frame = pl.DataFrame({"x_ratio": [None, float("nan"), float("inf"), 0.0]})
        document = json.loads(render_json.render(report(tables=(table(frame=frame),))))
        assert [row["x_ratio"] for row in document["tables"][0]["records"]] == [None] * 3 + [0.0]

    def test_an_empty_report_keeps_its_shape(self) -> None:
        document = json.loads(render_json.render(EMPTY))
        assert (document["figures"], document["tables"], document["findings"]) == ([], [], [])


class TestCsv:
    def test_it_opens_as_utf_8_in_spreadsheets(self) -> None:
        assert render_csv.render(report()).encode().startswith(b"\xef\xbb\xbf")

    def test_one_table_is_plain(self) -> None:
        text = render_csv.render(report(), table_key="by_tenant").removeprefix("\ufeff")
        rows = list(csv.DictReader(io.StringIO(text)))
        assert [row["held_gpu_hours"] for row in rows] == ["51470.67", "12.0", "0.0", ""]
        assert rows[2]["tenant_id"] == "语音"
        assert rows[2]["effective_ratio"] == ""

    def test_sections_are_named_and_set_apart(self) -> None:
        lines = render_csv.render(report()).removeprefix("\ufeff").split("\r\n")
        assert lines[0] == "report,utilization,Where GPU-hours went"
        assert "figures,Figures" in lines
        assert lines[lines.index("by_tenant,By tenant") - 1] == ""
        assert lines[lines.index("findings") + 1].startswith("vision holds")

    @pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
    def test_no_text_runs_as_a_formula(self, start: str) -> None:
        risky = f"{start}HYPERLINK(1)"
        frame = pl.DataFrame({"name": [risky]})
        one = report(tables=(table(frame=frame),), findings=(risky,))
        rows = list(csv.reader(io.StringIO(render_csv.render(one), newline="")))
        assert [row[0] for row in rows if row and "HYPERLINK" in row[0]] == [f"'{risky}"] * 2

    def test_negative_numbers_stay_numbers(self) -> None:
        frame = pl.DataFrame({"change_ratio": [-0.25]})
        one = report(tables=(table(frame=frame),))
        assert "\r\n-0.25\r\n" in render_csv.render(one, table_key="by_tenant")


class TestParquet:
    def test_one_table_keeps_its_columns_and_types(self) -> None:
        content = render(report(), Rendering(format="parquet", table_key="by_tenant"))
        assert isinstance(content, bytes)
        assert_frame_equal(pl.read_parquet(io.BytesIO(content)), tenants())

    def test_the_whole_report_has_one_row_per_value(self) -> None:
        content = render(report(), Rendering(format="parquet"))
        assert isinstance(content, bytes)
        rows = pl.read_parquet(io.BytesIO(content))
        assert rows.height == 1 + tenants().height * tenants().width
        assert rows.row(0, named=True)["value_number"] == 0.4321
        unknown = rows.filter(column="effective_ratio", section="by_tenant")["value_number"]
        assert unknown.to_list() == [0.8046, 0.0, None, 0.00004]

    def test_an_empty_report_keeps_its_columns(self) -> None:
        content = render(EMPTY, Rendering(format="parquet"))
        assert isinstance(content, bytes)
        assert pl.read_parquet(io.BytesIO(content)).columns[0] == "report"


class Links(HTMLParser):
    """Collects what a page would load or run, and its words."""

    def __init__(self) -> None:
        """Start with nothing found."""
        super().__init__()
        self.outside: list[str] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        risky = {"src", "href", "srcset", "action", "onload", "onerror", "onclick"}
        self.outside += [f"{tag} {name}" for name, _ in attrs if name in risky]
        self.outside += [tag] if tag in {"script", "img", "iframe", "link", "object"} else []

    def handle_data(self, data: str) -> None:
        self.words.append(data)


class TestHtml:
    def test_the_page_needs_nothing_from_outside(self) -> None:
        text = render_html.render(report())
        page = Links()
        page.feed(text)
        assert page.outside == []
        assert "url(" not in text
        assert "@import" not in text
        assert "size: A4" in text

    def test_values_are_escaped(self) -> None:
        risky = "<script>alert(1)</script>"
        frame = pl.DataFrame({"name": [risky]})
        tables = (replace(table(frame=frame, note=risky), title=risky),)
        one = report(tables=tables, findings=(risky,), figures=(figure(title=risky, value=risky),))
        page = Links()
        page.feed(render_html.render(one))
        assert page.outside == []
        assert page.words.count(risky) >= 4

    def test_chinese_frame(self) -> None:
        text = str(render(report(), Rendering(format="html", language="zh")))
        assert '<html lang="zh">' in text
        assert "统计区间" in text


class TestOneTable:
    @pytest.mark.parametrize("format_name", ["table", "json", "html"])
    def test_only_that_table_is_rendered(self, format_name: str) -> None:
        tables = (table("by_tenant"), replace(table("by_model"), title="By model"))
        shown = render(report(tables=tables), Rendering(format=format_name, table_key="by_model"))
        assert "By model" in str(shown)
        assert "By tenant" not in str(shown)
        assert "Effective utilisation" not in str(shown)

    def test_figures_can_stand_alone(self) -> None:
        shown = str(render(report(), Rendering(table_key=FIGURES_KEY)))
        assert "Effective utilisation" in shown
        assert "By tenant" not in shown

    @pytest.mark.parametrize("format_name", FORMATS)
    def test_an_unknown_table_names_those_there_are(self, format_name: str) -> None:
        with pytest.raises(UsageError) as caught:
            render(report(), Rendering(format=format_name, table_key="by_tennant"))
        assert caught.value.hint == "its tables are figures, by_tenant"


def test_words_and_numbers_of_figures_have_columns_of_their_own() -> None:
    one = report(figures=(figure("a_count", value=3, unit="count"), figure("b", value="word")))
    rows = section(one, FIGURES_KEY).frame.select("key", "value", "text").rows()
    assert rows == [("a_count", 3.0, None), ("b", None, "word")]


class TestMoney:
    MONEY = report(
        figures=(figure("total_cost", value="-1234.50", unit="currency", title="Total (EUR)"),),
        tables=(money_table(),),
    )

    def test_people_read_separators_and_a_dash(self) -> None:
        lines = terminal(self.MONEY)
        assert any(line.split()[:3] == ["Total", "(EUR)", "-1,234.50"] for line in lines)
        ends = [line for line in lines if line.endswith(("1,234,567.10", "\u2013"))]
        assert len({len(line) for line in ends}) == 1

    def test_a_page_aligns_it_like_a_number(self) -> None:
        assert '<td class="number">1,234,567.10</td>' in render_html.render(self.MONEY)

    def test_machines_read_exact_texts(self) -> None:
        document = json.loads(render_json.render(self.MONEY))
        assert document["figures"][0]["value"] == "-1234.50"
        assert [row["cost"] for row in document["tables"][0]["records"]] == ["1234567.10", None]

    def test_a_negative_amount_is_no_formula(self) -> None:
        text = render_csv.render(self.MONEY)
        assert ",-1234.50," in text
        assert "b,\r\n" in text

    def test_parquet_keeps_the_digits(self) -> None:
        rows = pl.read_parquet(io.BytesIO(bytes(render(self.MONEY, Rendering(format="parquet")))))  # type: ignore[arg-type]  # bytes for this format
        assert rows["value_text"].to_list() == ["-1234.50", "a", "1234567.10", "b", None]
