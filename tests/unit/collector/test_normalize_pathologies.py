"""What exporters are known to do wrong, and the rows that come out right all the same."""

from __future__ import annotations

import pytest

from tests.support.exposition_texts import (
    GPU,
    Exporter,
    cells,
    events,
    instance,
    line,
    pod,
    scrape_once,
)

UTIL = "DCGM_FI_DEV_GPU_UTIL"
SM = "DCGM_FI_PROF_SM_ACTIVE"
GR = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"


def test_clamped_value_is_counted() -> None:
    assert scrape_once(line(SM, 1.294), line(GR, 0.5)).clamped_count == 1


def test_zero_shown_for_a_divided_board_itself_is_not_its_utilisation() -> None:
    scrape = scrape_once(line(UTIL, 0), line(GR, 0), line(GR, 0.7, instance(1)))
    assert cells(scrape, "instance_id", "busy_ratio", "graphics_active_ratio") == [
        (None, None, None),
        (1, None, 0.7),
    ]


@pytest.mark.parametrize(
    ("lines", "expected", "conflict_count"),
    [
        pytest.param([("a", 0.714), ("b", 0.714), ("c", 0.714)], 0.714, 0, id="equal copies"),
        pytest.param([("a", 0.0), ("b", 0.0), ("c", 0.0)], 0.0, 0, id="equal zeros"),
        pytest.param([("a", "NaN"), ("b", 0.5), ("c", 0.5)], 0.5, 0, id="first without a value"),
        pytest.param([("a", 0.5), ("b", 0.6), ("c", 0.5)], 0.5, 1, id="one disagrees"),
        pytest.param([("a", "NaN"), ("b", "NaN"), ("c", "NaN")], None, 0, id="none has a value"),
    ],
)
def test_copies_per_pod_are_one_device_value_of_no_pod(
    lines: list[tuple[str, float | str]], expected: float | None, conflict_count: int
) -> None:
    scrape = scrape_once(*(line(GR, value, GPU | pod(name)) for name, value in lines))
    assert cells(scrape, "graphics_active_ratio", "pod") == [(expected, None)]
    assert (scrape.duplicate_count, scrape.conflict_count) == (2, conflict_count)


@pytest.mark.parametrize("device_first", [True, False])
def test_device_row_beside_rows_per_pod_is_the_device(device_first: bool) -> None:
    per_pod = [line(UTIL, 10, GPU | pod("a")), line(UTIL, 30, GPU | pod("b"))]
    lines = [line(UTIL, 40), *per_pod] if device_first else [*per_pod, line(UTIL, 40)]
    assert cells(scrape_once(*lines), "busy_ratio", "pod") == [(0.4, None)]


@pytest.mark.parametrize(
    ("labels", "holder"),
    [
        pytest.param(pod("p"), ("team", "p", "main"), id="plain"),
        pytest.param(pod("", namespace="", container=""), (None, None, None), id="unallocated"),
        pytest.param({}, (None, None, None), id="no pod labels"),
        pytest.param(
            pod("dcgm-exporter-dev-78z52", namespace="monitoring", container="exporter")
            | {"exported_pod": "pod1", "exported_namespace": "default", "exported_container": "c"},
            ("default", "pod1", "c"),
            id="relabelled by the scraping server",
        ),
        pytest.param(
            pod("dcgm-exporter-dev-78z52", namespace="monitoring", container="exporter"),
            (None, None, None),
            id="exporter itself",
        ),
        pytest.param(
            {"pod": "default-metrics-exporter-vvvkm"},
            (None, None, None),
            id="exporter, no container",
        ),
        pytest.param(
            pod("test-of-metrics-exporter"),
            ("team", "test-of-metrics-exporter", "main"),
            id="tenant",
        ),
        pytest.param(
            {"pod_name": "p", "pod_namespace": "n", "container_name": "c"},
            ("n", "p", "c"),
            id="1.x",
        ),
        pytest.param(
            {"podname": "p", "podnamespace": "n", "ctrname": "c"}, ("n", "p", "c"), id="HAMi"
        ),
    ],
)
def test_holder_by_labels(
    labels: dict[str, str], holder: tuple[str | None, str | None, str | None]
) -> None:
    scrape = scrape_once(line(UTIL, 5, GPU | labels))
    assert cells(scrape, "namespace", "pod", "container") == [holder]


def test_scrape_pasted_twice_counts_unknown_metrics_too() -> None:
    lines = (line(UTIL, 5), line("DCGM_FI_DEV_PSTATE", 0))
    scrape = scrape_once(*lines, *lines)
    assert (scrape.duplicate_count, scrape.unknown_metric_count) == (2, 1)
    assert scrape.unknown_names == ("DCGM_FI_DEV_PSTATE",)


def test_xid_that_names_no_device_is_no_event() -> None:
    scrape = scrape_once(line("DCGM_FI_DEV_XID_ERRORS", 45, {"err_code": "45", "job": "x"}))
    assert events(scrape) == []
    assert (scrape.samples.num_rows, scrape.unidentified_count) == (0, 1)


def test_series_per_xid_are_an_event_each_once() -> None:
    exporter = Exporter()
    first = line("DCGM_FI_DEV_XID_ERRORS", 45, GPU | {"err_code": "45", "err_msg": "cleanup"})
    second = line("DCGM_FI_DEV_XID_ERRORS", 79, GPU | {"err_code": "79", "err_msg": "lost bus"})
    exporter.scrape(line("DCGM_FI_DEV_XID_ERRORS", 0))
    assert events(exporter.scrape(first)) == [("xid", 45, "GPU-a")]
    scrape = exporter.scrape(first, second)
    assert [(r["code"], r["detail"]) for r in scrape.events.to_pylist()] == [(79, "lost bus")]
