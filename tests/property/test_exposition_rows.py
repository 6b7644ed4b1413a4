"""Laws of the way from text to rows, whatever the numbers are."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.normalize.dialects import Dialect
from collector.normalize.dictionary import MEASURES, METRICS
from tests.support.exposition_texts import (
    GPU,
    OTHER_GPU,
    Exporter,
    instance,
    line,
    pod,
    scrape_once,
)

DEVICES = (GPU, OTHER_GPU, instance(7), instance(9), GPU | {"UUID": "GPU-c"} | pod("p"))
INSTANCES = (2, 3)
NAMES = sorted(name for name in METRICS if "{" not in name)
VALUES = st.one_of(
    st.floats(),
    st.integers(0, 110),
    st.floats(0, 2),
    st.sampled_from((2147483632, 9223372036854775794, 140737488355328, 4294967295)),
)
DIALECTS = tuple({metric.dialect.name: metric.dialect for metric in METRICS.values()}.values())


def series_of(dialect: Dialect) -> st.SearchStrategy[dict[tuple[str, int], float]]:
    """Values of one exporter's names, by name and device."""
    names = [name for name in NAMES if METRICS[name].dialect is dialect]
    devices = [n for n in range(len(DEVICES)) if n not in INSTANCES or dialect.name == "dcgm"]
    pairs = st.tuples(st.sampled_from(names), st.sampled_from(devices))
    return st.dictionaries(pairs, VALUES, min_size=1, max_size=40)


SERIES = st.sampled_from(DIALECTS).flatmap(series_of)


def lines_of(series: dict[tuple[str, int], float]) -> list[str]:
    """Lines of which no two speak of one measure of one device in different names."""
    shown: dict[tuple[str, int], str] = {}
    for (name, device), value in series.items():
        labels = spelled(DEVICES[device], dialect=METRICS[name].dialect)
        shown.setdefault((METRICS[name].column, device), line(name, value, labels))
    return list(shown.values())


def spelled(labels: dict[str, str], *, dialect: Dialect) -> dict[str, str]:
    """The labels with the device named as this exporter names it."""
    others = {key: labels[key] for key in labels.keys() - {"UUID", "gpu", "Hostname"}}
    return others | {
        dialect.uuid[0]: labels["UUID"],
        dialect.index[0]: labels["gpu"],
        dialect.host[0]: "n1",
        "pid": "7",
    }


def without_time(rows: pa.Table) -> pa.Table:
    return rows.drop_columns(["sampled_at"])


def measured(rows: pa.Table) -> list[dict[str, Any]]:
    return [{name: row[name] for name in MEASURES} for row in rows.to_pylist()]


@settings(max_examples=40)
@given(series=SERIES)
def test_stored_numbers_are_finite_and_ratios_lie_between_0_and_1(
    series: dict[tuple[str, int], float],
) -> None:
    for row in measured(scrape_once(*lines_of(series)).samples):
        for name, value in row.items():
            assert value is None or math.isfinite(value)
            assert value is None or not name.endswith("_ratio") or 0 <= value <= 1


@settings(max_examples=40)
@given(series=SERIES, order=st.randoms(use_true_random=False))
def test_order_of_lines_does_not_matter(series: dict[tuple[str, int], float], order: Any) -> None:  # noqa: ANN401 - a random.Random
    lines = lines_of(series)
    shuffled = [*lines]
    order.shuffle(shuffled)
    one, other = scrape_once(*lines), scrape_once(*shuffled)
    assert one.samples.equals(other.samples)
    assert one.scrape_table(duration_s=1, body_bytes=1).equals(
        other.scrape_table(duration_s=1, body_bytes=1)
    )


@settings(max_examples=40)
@given(series=SERIES)
def test_page_pasted_twice_is_the_page_with_its_lines_as_duplicates(
    series: dict[tuple[str, int], float],
) -> None:
    lines = lines_of(series)
    once, twice = scrape_once(*lines), scrape_once(*lines, *lines)
    assert once.samples.equals(twice.samples)
    assert twice.duplicate_count == once.duplicate_count + len(lines)


@settings(max_examples=40)
@given(series=SERIES)
def test_same_page_again_brings_the_same_rows_and_no_news(
    series: dict[tuple[str, int], float],
) -> None:
    exporter, lines = Exporter(), lines_of(series)
    first, second = exporter.scrape(*lines), exporter.scrape(*lines)
    assert without_time(first.samples).equals(without_time(second.samples))
    assert second.devices.num_rows == second.events.num_rows == 0


@settings(max_examples=40)
@given(series=SERIES)
def test_each_device_and_instance_has_one_row(series: dict[tuple[str, int], float]) -> None:
    rows = scrape_once(*lines_of(series)).samples.to_pylist()
    keys = [(row["device_uuid"], row["instance_id"]) for row in rows]
    assert len(set(keys)) == len(keys)
