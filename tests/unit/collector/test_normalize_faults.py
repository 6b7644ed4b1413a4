"""What exporters are known to do wrong, and the rows that come out right all the same."""

from __future__ import annotations

import pytest

from steward.units import MIB_BYTES
from tests.support.exposition_texts import (
    GPU,
    OTHER_GPU,
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


@pytest.mark.parametrize(
    ("reported", "column", "stored"),
    [
        pytest.param(
            line(UTIL, 4294967295),
            "busy_ratio",
            (None, "busy_ratio=out_of_range"),
            id="utilisation of 4294967295 %",
        ),
        pytest.param(
            line(UTIL, 200_000), "busy_ratio", (None, "busy_ratio=out_of_range"), id="200,000 %"
        ),
        pytest.param(
            line("DCGM_FI_DEV_MEMORY_TEMP", 9223372036854775794),
            "memory_temperature_celsius",
            (None, "memory_temperature_celsius=not_supported"),
            id="blank printed as a temperature",
        ),
        pytest.param(
            line(SM, "140737488355328.0"),
            "sm_active_ratio",
            (None, "sm_active_ratio=blank"),
            id="blank 64-bit float",
        ),
        pytest.param(
            line("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", 18446744073709551000),
            "energy_j",
            (None, "energy_j=out_of_range"),
            id="energy counter that ran below zero",
        ),
        pytest.param(line(SM, 1.294), "sm_active_ratio", (1.0, None), id="SM active above 1"),
        pytest.param(
            line(UTIL, 12, GPU | {"GPU_I_PROFILE": "<<<NULL>>>"}),
            "busy_ratio",
            (0.12, None),
            id="blank label",
        ),
    ],
)
def test_value_that_is_none(
    reported: str, column: str, stored: tuple[float | None, str | None]
) -> None:
    assert cells(scrape_once(reported), column, "absences") == [stored]


def test_clamped_value_is_counted() -> None:
    assert scrape_once(line(SM, 1.294), line(GR, 0.5)).clamped_count == 1


def test_one_device_without_a_value_leaves_the_others() -> None:
    scrape = scrape_once(line(SM, "140737488355328.0"), line(SM, 0.4, OTHER_GPU))
    assert cells(scrape, "device_uuid", "sm_active_ratio") == [("GPU-a", None), ("GPU-b", 0.4)]


def test_line_with_text_as_value_leaves_the_others() -> None:
    blob = line("DCGM_FI_DEV_VGPU_INSTANCE_IDS", "ERROR - FAILED TO CONVERT TO STRING")
    scrape = scrape_once(blob, line(UTIL, 12))
    assert cells(scrape, "busy_ratio") == [(0.12,)]
    assert scrape.dropped_line_count == 1


def test_blank_profile_keeps_the_instance() -> None:
    scrape = scrape_once(line(GR, 0.1, instance(6, profile="<<<NULL>>>")))
    assert cells(scrape, "instance_id", "graphics_active_ratio") == [(6, 0.1)]
    profiles = {row["instance_id"]: row["mig_profile"] for row in scrape.devices.to_pylist()}
    assert profiles == {None: None, 6: None}


def test_profiling_that_ends_after_an_xid_is_null_not_zero() -> None:
    exporter = Exporter()
    exporter.scrape(line(SM, 0.9), line(UTIL, 97), line("DCGM_FI_DEV_XID_ERRORS", 0))
    for _ in range(3):
        scrape = exporter.scrape(line(UTIL, 97), line("DCGM_FI_DEV_XID_ERRORS", 31))
        assert cells(scrape, "sm_active_ratio", "busy_ratio", "absences") == [(None, 0.97, None)]


def test_divided_gpu_has_no_utilisation_but_its_engines_activity() -> None:
    scrape = scrape_once(line(GR, 0.999917, instance(9)), line("DCGM_FI_DEV_POWER_USAGE", 116))
    assert cells(scrape, "instance_id", "busy_ratio", "graphics_active_ratio") == [
        (None, None, None),
        (9, None, 0.999917),
    ]


def test_board_power_and_energy_are_the_latest_of_the_instances_once() -> None:
    scrape = scrape_once(
        *(
            line("DCGM_FI_DEV_POWER_USAGE", value, instance(number))
            for number, value in ((7, 116.043), (9, 116.163), (5, 116.043))
        ),
        *(
            line("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", value, instance(number))
            for number, value in ((3, 126272101025), (5, 126272106318))
        ),
    )
    assert cells(scrape, "instance_id", "power_w", "energy_j") == [(None, 116.163, 126272106.318)]
    assert (scrape.duplicate_count, scrape.conflict_count) == (0, 0)


def test_zero_shown_for_a_divided_board_itself_is_not_its_utilisation() -> None:
    scrape = scrape_once(line(UTIL, 0), line(GR, 0), line(GR, 0.7, instance(1)))
    assert cells(scrape, "instance_id", "busy_ratio", "graphics_active_ratio") == [
        (None, None, None),
        (1, None, 0.7),
    ]


def test_profile_with_an_odd_memory_size_still_says_its_slices() -> None:
    scrape = scrape_once(line("DCGM_FI_DEV_FB_USED", 12, instance(7, profile="1g.11gb")))
    (share,) = (
        row["sm_share_ratio"] for row in scrape.devices.to_pylist() if row["instance_id"] == 7
    )
    assert share == 1 / 7


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


def test_localhost_and_a_later_name_are_one_node() -> None:
    exporter = Exporter("http://localhost:9400/metrics")
    nameless = {"gpu": "0", "UUID": "GPU-a", "instance": "10.0.0.5:9400"}
    for labels in (
        nameless | {"Hostname": "localhost"},
        nameless | {"hostname": "n1"},
        nameless | {"Hostname": "localhost"},
    ):
        assert cells(exporter.scrape(line(UTIL, 5, labels)), "node") == [("10.0.0.5",)]


def test_renamed_hostname_label_is_the_same_node() -> None:
    exporter = Exporter()
    before = exporter.scrape(line(UTIL, 5, {"UUID": "GPU-a", "Hostname": "n1"}))
    after = exporter.scrape(line(UTIL, 5, {"UUID": "GPU-a", "hostname": "n1"}))
    assert cells(before, "node") == cells(after, "node") == [("n1",)]
    assert after.devices.num_rows == 0


def test_sticky_xid_is_an_event_only_when_it_changes() -> None:
    exporter = Exporter()
    shown = [
        events(exporter.scrape(line("DCGM_FI_DEV_XID_ERRORS", code)))
        for code in (31, 31, 31, 43, 31)
    ]
    assert shown == [
        [("xid", 31, "GPU-a")],
        [],
        [],
        [("xid", 43, "GPU-a")],
        [("xid", 31, "GPU-a")],
    ]


def test_lost_device_is_an_event_and_the_others_go_on() -> None:
    exporter = Exporter()
    both = (line(UTIL, 5), line(UTIL, 7, OTHER_GPU))
    exporter.scrape(*both)
    assert events(exporter.scrape(both[1])) == []
    lost = exporter.scrape(both[1])
    assert events(lost) == [("lost", None, "GPU-a")]
    assert [(r["device_uuid"], r["is_present"]) for r in lost.devices.to_pylist()] == [
        ("GPU-a", False)
    ]
    assert cells(lost, "device_uuid", "busy_ratio") == [("GPU-b", 0.07)]
    assert events(exporter.scrape(both[1])) == []
    assert events(exporter.scrape(*both)) == [("returned", None, "GPU-a")]


def test_upgrade_of_the_exporter_in_mid_day_leaves_one_series() -> None:
    exporter = Exporter()
    before = exporter.scrape(
        line("DCGM_FI_DEV_FB_USED", 4384),
        line("DCGM_FI_DEV_SM_CLOCK", 1410),
        line("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", 57585599),
        line("DCGM_FI_DEV_MEM_COPY_UTIL", 37),
        line("DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", 125),
    )
    after = exporter.scrape(
        line("DCGM_FI_DEV_FB_USED_BYTES", 4596957184),
        line("DCGM_FI_DEV_SM_CLOCK_HERTZ", 1410000000),
        line("DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL", 57585.599),
        line("DCGM_FI_DEV_MEMORY_UTIL_RATIO", 0.37),
        line("DCGM_FI_DEV_NVLINK_THROUGHPUT_BYTES_PER_SECOND", 128000000),
    )
    drop = ["sampled_at"]
    assert before.samples.drop_columns(drop).equals(after.samples.drop_columns(drop))
    assert cells(before, "memory_used_bytes") == [(4384 * MIB_BYTES,)]


def test_two_exporters_of_one_device_are_one_device() -> None:
    scrape = scrape_once(
        line(UTIL, 5, GPU | {"instance": "10.0.0.5:9400"}),
        line(UTIL, 5, GPU | {"instance": "10.0.0.6:9400"}),
    )
    assert cells(scrape, "device_uuid", "busy_ratio") == [("GPU-a", 0.05)]
    assert scrape.duplicate_count == 1


def test_scrape_pasted_twice_counts_unknown_metrics_too() -> None:
    lines = (line(UTIL, 5), line("DCGM_FI_DEV_ROW_REMAP_FAILURE", 0))
    scrape = scrape_once(*lines, *lines)
    assert (scrape.duplicate_count, scrape.unknown_metric_count) == (2, 1)


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
