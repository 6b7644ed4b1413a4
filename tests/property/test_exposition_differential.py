"""The parser against prometheus_client's, over seeded documents whose content is known.

prometheus_client is wrong in four ways, each shown by a test here; but for those, no difference.

=====================  ===========================================================================
exemplar_timestamp     the last number of the line, an exemplar's, is taken as the sample's time
counter_suffix         ``_total`` is appended to the sample names of a counter
one_bad_line           one line that cannot be read loses the whole text
trailing_number        numbers after the timestamp are passed over
=====================  ===========================================================================
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from collector.sources.exposition import Exposition, ExpositionParser
from steward.errors import InputError
from tests.support.exposition_documents import Document, TrueSample, document

DOCUMENT_COUNT = 300
Comparable = tuple[str, tuple[tuple[str, str], ...], str, int | None]


def comparable(
    name: str, labels: dict[str, str], value: float, *, timestamp_ms: int | None
) -> Comparable:
    return name, tuple(sorted(labels.items())), repr(float(value)), timestamp_ms


def ours(exposition: Exposition) -> list[Comparable]:
    return [
        comparable(name, dict(labels.pairs), value, timestamp_ms=own_ms)
        for name, labels, value, own_ms in exposition.samples
    ]


def truth(content: Document) -> list[Comparable]:
    return [
        comparable(one.name, one.labels, one.value, timestamp_ms=one.timestamp_ms)
        for one in content.samples
    ]


def expected_reference(one: TrueSample) -> Comparable:
    """What prometheus_client makes of a line, its known faults included."""
    timestamp_ms = 1_700_000_000 if one.has_exemplar else one.timestamp_ms
    suffix = "_total" if one.is_counter else ""
    return comparable(one.name + suffix, one.labels, one.value, timestamp_ms=timestamp_ms)


def reference(text: str) -> list[Comparable]:
    return [
        comparable(
            sample.name,
            sample.labels,
            sample.value,
            timestamp_ms=None
            if sample.timestamp is None
            else round(float(sample.timestamp) * 1000),
        )
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    ]


@pytest.mark.parametrize("first_seed", range(0, DOCUMENT_COUNT, 50))
def test_agrees_with_prometheus_client_but_for_its_known_faults(first_seed: int) -> None:
    for seed in range(first_seed, first_seed + 50):
        content = document(seed)
        parser = ExpositionParser()
        cold, warm = parser.parse(content.text), parser.parse(content.text)
        assert ours(cold) == truth(content), f"seed {seed}, first reading"
        assert ours(warm) == truth(content), f"seed {seed}, remembered labels"
        assert cold.dropped_line_count == warm.dropped_line_count == 0
        assert reference(content.text) == list(map(expected_reference, content.samples)), seed


@pytest.mark.parametrize(
    ("text", "right", "reference_says"),
    [
        pytest.param(
            'a{b="c"} 1 # {t="x"} 0.5 1700000000\n',
            [comparable("a", {"b": "c"}, 1, timestamp_ms=None)],
            [comparable("a", {"b": "c"}, 1, timestamp_ms=1_700_000_000)],
            id="exemplar_timestamp",
        ),
        pytest.param(
            "# TYPE a counter\na 1\n",
            [comparable("a", {}, 1, timestamp_ms=None)],
            [comparable("a_total", {}, 1, timestamp_ms=None)],
            id="counter_suffix",
        ),
        pytest.param(
            "a 1 2000 3000\nb 1\n",
            [comparable("b", {}, 1, timestamp_ms=None)],
            [
                comparable("a", {}, 1, timestamp_ms=3000),
                comparable("b", {}, 1, timestamp_ms=None),
            ],
            id="trailing_number",
        ),
    ],
)
def test_documented_fault_of_prometheus_client(
    text: str, right: list[Comparable], reference_says: list[Comparable]
) -> None:
    assert ours(ExpositionParser().parse(text)) == right
    assert reference(text) == reference_says


def test_one_bad_line_loses_the_text_for_prometheus_client_only() -> None:
    text = "a ERROR - FAILED TO CONVERT TO STRING\nb 1\n"
    assert ours(ExpositionParser().parse(text)) == [comparable("b", {}, 1, timestamp_ms=None)]
    with pytest.raises(ValueError, match="could not convert"):
        reference(text)


@given(
    seed=st.integers(0, 10_000),
    at=st.integers(0, 40),
    garbage=st.sampled_from(
        [
            "a{b=} 1",
            'a{b="c" 1',
            "a 1_0",
            "9a 1",
            "a",
            'a{b="c",b="d"} 1',
            "a 0x1p4",
            "a \uff11",
            "} {",
        ]
    ),
)
def test_a_bad_line_costs_one_line(seed: int, at: int, garbage: str) -> None:
    content = document(seed, line_count=20)
    lines = content.text.split("\n")
    lines.insert(min(at, len(lines)), garbage)
    exposition = ExpositionParser().parse("\n".join(lines))
    assert ours(exposition) == truth(content)
    assert exposition.dropped_line_count == 1


@given(text=st.text(max_size=200) | st.binary(max_size=200))
def test_any_text_is_read_or_refused_with_its_name(text: str | bytes) -> None:
    try:
        exposition = ExpositionParser().parse(text, target="http://x/metrics")
    except InputError as error:
        told = error.message
    else:
        page = text.encode("utf-8", "replace") if isinstance(text, str) else text
        lines = page.count(b"\n") + 1
        is_counted = len(exposition.samples) + exposition.dropped_line_count <= lines
        told = "http://x/metrics" if is_counted else "more samples than lines"
    assert "http://x/metrics" in told
