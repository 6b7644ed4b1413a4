"""What one line of an exposition means, which lines are dropped, and what is remembered."""

from __future__ import annotations

import math

import pytest

from collector.sources.exposition import Exposition, ExpositionParser, Fault
from steward.errors import InputError

LABELS = 'gpu="0",UUID="GPU-a"'


def parse(text: str | bytes) -> Exposition:
    return ExpositionParser().parse(text)


def only(text: str) -> tuple[str, dict[str, str], float, int | None]:
    """The one sample of a text, read alike with an empty and with a filled memory."""
    parser = ExpositionParser()
    first, second = parser.parse(text), parser.parse(text)
    assert repr(first.samples[0][2:]) == repr(second.samples[0][2:])
    assert first.samples[0][:2] == second.samples[0][:2] or first.samples[0][1].pairs == (
        second.samples[0][1].pairs
    )
    ((name, labels, value, own_ms),) = second.samples
    return name, dict(labels.pairs), value, own_ms


@pytest.mark.parametrize(
    ("text", "sample"),
    [
        pytest.param("a 1", ("a", {}, 1.0, None), id="no labels, no final newline"),
        pytest.param("a{} 1\n", ("a", {}, 1.0, None), id="empty braces"),
        pytest.param('a{b="c"} 1\r\n', ("a", {"b": "c"}, 1.0, None), id="CRLF"),
        pytest.param('a{b="c"}\t1', ("a", {"b": "c"}, 1.0, None), id="tab before the value"),
        pytest.param('a{b="c"}1', ("a", {"b": "c"}, 1.0, None), id="no space before the value"),
        pytest.param(' a { b = "c" , } 1 ', ("a", {"b": "c"}, 1.0, None), id="spaces, last comma"),
        pytest.param(r'a{b="\\\"\n\t"} 1', ("a", {"b": '\\"\n\\t'}, 1.0, None), id="escapes"),
        pytest.param('a{b="} 9"} 1', ("a", {"b": "} 9"}, 1.0, None), id="brace in a value"),
        pytest.param('a{b="c"} 1 1723621883587', ("a", {"b": "c"}, 1.0, 1723621883587), id="ms"),
        pytest.param("a 1 1.5\n# EOF\n", ("a", {}, 1.0, 1500), id="OpenMetrics seconds"),
        pytest.param('a{b="c"} 2 # {t="x"} 0.5 17', ("a", {"b": "c"}, 2.0, None), id="exemplar"),
        pytest.param('{"my.metric",b="c"} 1', ("my.metric", {"b": "c"}, 1.0, None), id="quoted"),
        pytest.param('a{"my.label"="c"} 1', ("a", {"my.label": "c"}, 1.0, None), id="quoted label"),
        pytest.param("a 9223372036854775794", ("a", {}, 2**63 - 14, None), id="exact integer"),
        pytest.param("a +Inf", ("a", {}, math.inf, None), id="infinite"),
        pytest.param("a -Inf", ("a", {}, -math.inf, None), id="minus infinite"),
        pytest.param("\ufeffa 0", ("a", {}, 0.0, None), id="byte order mark"),
        pytest.param('a{b="é"} -0.5e-3', ("a", {"b": "é"}, -0.0005, None), id="UTF-8"),
    ],
)
def test_line(text: str, sample: tuple[str, dict[str, str], float, int | None]) -> None:
    assert only(text) == sample


def test_exact_integer_is_no_float() -> None:
    assert [type(sample[2]) for sample in parse("a 9223372036854775794\nb 12").samples] == [
        int,
        float,
    ]


def test_not_a_number_is_a_value() -> None:
    assert math.isnan(only('a{b="c"} NaN')[2])


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        pytest.param(f"a{{{LABELS}}} 1_0", Fault.BAD_VALUE, id="digit separator"),
        pytest.param(f"a{{{LABELS}}} 0x1p-2", Fault.BAD_VALUE, id="hexadecimal float"),
        pytest.param(f"a{{{LABELS}}} \uff11", Fault.BAD_VALUE, id="digit of another script"),
        pytest.param(f"a{{{LABELS}}}", Fault.NO_VALUE, id="no value"),
        pytest.param(f"a{{{LABELS}}} ERROR - FAILED", Fault.TRAILING_TEXT, id="text as value"),
        pytest.param(f"a{{{LABELS}}} ERROR", Fault.BAD_VALUE, id="word as value"),
        pytest.param(f"a{{{LABELS}}} 1 noon", Fault.BAD_TIMESTAMP, id="word as timestamp"),
        pytest.param(f"a{{{LABELS}}} 1 1e300", Fault.BAD_TIMESTAMP, id="no such year"),
        pytest.param(f"a{{{LABELS}}} 1 NaN", Fault.BAD_TIMESTAMP, id="timestamp not a number"),
        pytest.param(f"a{{{LABELS}}} 1 2 3", Fault.TRAILING_TEXT, id="third number"),
        pytest.param(f"a{{{LABELS} 1", Fault.BAD_LABELS, id="brace not closed"),
        pytest.param('a{b="c} 1', Fault.BAD_LABELS, id="quote not closed"),
        pytest.param("a{ 5", Fault.BAD_LABELS, id="only an opening brace"),
        pytest.param("a{b=c} 1", Fault.BAD_LABELS, id="value without quotes"),
        pytest.param('a{b="c",b="d"} 1', Fault.BAD_LABELS, id="label twice"),
        pytest.param('a{b="c",,d="e"} 1', Fault.BAD_LABELS, id="empty term"),
        pytest.param(f"9a{{{LABELS}}} 1", Fault.BAD_NAME, id="name starts with a digit"),
        pytest.param(f"a.b{{{LABELS}}} 1", Fault.BAD_NAME, id="dot needs quotes"),
        pytest.param(f"{{{LABELS}}} 1", Fault.BAD_NAME, id="no name"),
        pytest.param('a{"b"} 1', Fault.BAD_NAME, id="name twice"),
    ],
)
def test_bad_line_costs_itself_with_its_reason(line: str, fault: Fault) -> None:
    good = f"good{{{LABELS}}} 7"
    parser = ExpositionParser()
    for _ in ("nothing remembered", "labels remembered"):
        exposition = parser.parse(f"{good}\n{line}\n{good}\n")
        assert [sample[2] for sample in exposition.samples] == [7.0, 7.0]
        assert exposition.dropped == {fault: 1}
        (example,) = exposition.dropped_examples
        assert (example.line_number, example.fault) == (2, fault)


def test_line_with_bytes_that_are_not_utf8_is_dropped() -> None:
    exposition = parse(b'a{b="\xff"} 1\na{b="c"} 2\n')
    assert [sample[2] for sample in exposition.samples] == [2.0]
    assert exposition.dropped == {Fault.NOT_UTF8: 1}
    exposition.dropped_examples[0].excerpt.encode("utf-8")


def test_only_the_first_few_dropped_lines_are_kept_shortened() -> None:
    exposition = parse("good 1\n" * 40 + f"bad {'x' * 500}\n" * 30)
    assert exposition.dropped_line_count == 30
    assert len(exposition.dropped_examples) == 5
    assert max(len(example.excerpt) for example in exposition.dropped_examples) == 120


def test_types_and_helps_are_kept_as_written() -> None:
    text = '# HELP a in \\\\ \\n %\n# TYPE a counter\n# TYPE "my.b" gauge\n# other\n#\na 1\n'
    exposition = parse(text)
    assert exposition.types == {"a": "counter", "my.b": "gauge"}
    assert exposition.helps == {"a": "in \\ \n %"}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("<!doctype html>\n<html>\n<p>error 404</p>\nerror 404\n</html>", id="HTML"),
        pytest.param('{"status": "success", "data": [1, 2]}', id="JSON"),
        pytest.param(b"\x1f\x8b\x08\x00\x00\x01\xff\xfe", id="gzip"),
        pytest.param("no exposition at all", id="prose"),
    ],
)
def test_other_text_is_refused_with_the_target_and_a_remedy(text: str | bytes) -> None:
    with pytest.raises(InputError) as caught:
        ExpositionParser().parse(text, target="http://10.0.0.5/")
    assert "http://10.0.0.5/" in caught.value.message
    assert "metrics" in caught.value.hint


@pytest.mark.parametrize("text", ["", "\n \n", "# only a comment\n", "# EOF\n"])
def test_text_without_samples_is_an_empty_exposition(text: str) -> None:
    exposition = parse(text)
    assert (exposition.samples, exposition.dropped_line_count) == ([], 0)


def test_same_label_text_is_the_same_object_in_every_scrape() -> None:
    parser = ExpositionParser()
    first = parser.parse(f"a{{{LABELS}}} 1\nb{{{LABELS}}} 2\n")
    second = parser.parse(f"a{{{LABELS}}} 3\n")
    assert len({id(sample[1]) for sample in [*first.samples, *second.samples]}) == 1


def test_memory_follows_what_the_target_shows() -> None:
    parser = ExpositionParser()
    for scrape in range(50):
        parser.parse("".join(f'a{{pod="{scrape}-{gpu}"}} 1\n' for gpu in range(8)))
        assert parser.remembered_block_count == 8


def test_bad_lines_are_not_remembered() -> None:
    parser = ExpositionParser()
    parser.parse("good 1\n" + 'a{b="c"} nothing\n')
    assert parser.remembered_block_count == 0


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "hostile",
    [
        pytest.param("# HELP a " + " " * 300_000 + "x", id="spaces in a comment"),
        pytest.param("a{" + '"' * 300_001, id="quotes"),
        pytest.param('a{b="' + "\\" * 300_001, id="backslashes"),
        pytest.param("a" + " " * 300_000 + "x y z", id="spaces before the value"),
        pytest.param("a{" + 'b="c",' * 50_000 + "!} 1", id="many labels"),
        pytest.param("a " + "9" * 300_000, id="long number"),
        pytest.param("a{" * 150_000, id="braces"),
    ],
)
def test_hostile_line_takes_time_in_proportion_to_its_length(hostile: str) -> None:
    exposition = parse(f"good 1\n{hostile}\ngood 2\n")
    values = [sample[2] for sample in exposition.samples]
    assert (values[0], values[-1]) == (1.0, 2.0)
