"""Exporters other than dcgm-exporter: their names, labels and ways, in base units."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from collector.holdings import HoldingSource
from collector.normalize import NormalizedScrape
from steward.units import MIB_BYTES
from tests.support.exposition_texts import Exporter, cells, events, line, scrape_once

AMD = {
    "gpu_id": "0",
    "gpu_uuid": "3dff74a1-0000-1000-80d3-0c4c1df1df58",
    "gpu_partition_id": "0",
    "gpu_compute_partition_type": "spx",
    "card_series": "AMD Instinct MI300X OAM",
    "serial_number": "6924",
    "hostname": "n1",
}
NPU = {"id": "0", "vdie_id": "185011D4-21104518", "model_name": "910B3", "pcie_bus_info": "61"}
SMI = {"uuid": "GPU-a"}
SMI_INFO = SMI | {"index": "3", "name": "NVIDIA H100 80GB HBM3", "driver_version": "590.48.01"}
HAMI = {"device_index": "0", "device_uuid": "GPU-a", "device_type": "NVIDIA-A100"}


def told(scrape: NormalizedScrape) -> dict[str, Any]:
    """What the only row holds, nulls left out."""
    (row,) = scrape.samples.to_pylist()
    return {name: value for name, value in row.items() if value is not None}


@pytest.mark.parametrize(
    ("name", "value", "labels", "stored"),
    [
        ("gpu_gfx_activity", 57, AMD, ("busy_ratio", 0.57)),
        ("gpu_gfx_activity", 0, AMD, ("busy_ratio", 0.0)),
        ("amd_gpu_gfx_activity", 57, AMD, ("busy_ratio", 0.57)),
        ("site_x_gpu_umc_activity", 57, AMD, ("memory_busy_ratio", 0.57)),
        ("gpu_prof_sm_active", 25, AMD, ("sm_active_ratio", 0.25)),
        ("gpu_prof_occupancy_percent", 25, AMD, ("sm_occupancy_ratio", 0.25)),
        ("gpu_prof_tensor_active_percent", 25, AMD, ("tensor_active_ratio", 0.25)),
        ("gpu_prof_gui_util_percent", 25, AMD, ("graphics_active_ratio", 0.25)),
        ("gpu_used_vram", 283, AMD, ("memory_used_bytes", 283 * MIB_BYTES)),
        ("gpu_package_power", 255, AMD, ("power_w", 255.0)),
        ("gpu_average_package_power", 140, AMD, ("power_w", 140.0)),
        ("gpu_power_usage", 140, AMD, ("power_w", 140.0)),
        ("gpu_energy_consumed", 1.25e15, AMD, ("energy_j", 1.25e9)),
        ("gpu_junction_temperature", 41, AMD, ("temperature_celsius", 41.0)),
        ("gpu_hbm_temperature", 45, AMD, ("memory_temperature_celsius", 45.0)),
        ("amd_pcie_replay_count", 3, AMD, ("pcie_replay_count", 3)),
        ("gpu_ecc_uncorrect_total", 2, AMD, ("ecc_uncorrected_count", 2)),
        ("npu_chip_info_utilization", 57, NPU, ("busy_ratio", 0.57)),
        ("npu_chip_info_overall_utilization", 57, NPU, ("busy_ratio", 0.57)),
        ("npu_chip_info_cube_utilization", 25, NPU, ("tensor_active_ratio", 0.25)),
        ("npu_chip_info_hbm_bandwidth_utilization", 25, NPU, ("dram_active_ratio", 0.25)),
        ("npu_chip_info_hbm_used_memory", 3, NPU, ("memory_used_bytes", 3 * MIB_BYTES)),
        ("npu_chip_info_total_memory", 3, NPU, ("memory_total_bytes", 3 * MIB_BYTES)),
        ("npu_chip_info_power", 93.5, NPU, ("power_w", 93.5)),
        ("npu_chip_info_temperature", 0, NPU, ("temperature_celsius", 0.0)),
        ("npu_chip_info_aicore_current_freq", 1000, NPU, ("sm_clock_hz", 1_000_000_000)),
        ("npu_chip_info_hbm_ecc_total_double_bit_error_cnt", 1, NPU, ("ecc_uncorrected_count", 1)),
        ("npu_chip_info_process_info_num", 0, NPU, ("process_count", 0)),
        ("hami_host_gpu_utilization_ratio", 64, HAMI, ("busy_ratio", 0.64)),
        ("hami_host_gpu_memory_controller_utilization_ratio", 9, HAMI, ("memory_busy_ratio", 0.09)),
        ("hami_host_gpu_memory_used_bytes", 5e9, HAMI, ("memory_used_bytes", 5_000_000_000)),
        ("hami_host_gpu_power_usage_watts", 13, HAMI, ("power_w", 13.0)),
        ("HostCoreUtilization", 100, {"deviceuuid": "GPU-a"}, ("busy_ratio", 1.0)),
        ("nvidia_smi_utilization_gpu_ratio", 0.57, SMI, ("busy_ratio", 0.57)),
        ("nvidia_smi_utilization_gpu_ratio", 1, SMI, ("busy_ratio", 1.0)),
        ("nvidia_smi_power_draw_average_watts", 433.78, SMI, ("power_w", 433.78)),
        ("nvidia_smi_clocks_current_sm_clock_hz", 1.98e9, SMI, ("sm_clock_hz", 1_980_000_000)),
        ("nvidia_smi_fan_speed_ratio", 0.3, SMI, ("fan_ratio", 0.3)),
        ("nvidia_smi_remapped_rows_failure", 1, SMI, ("row_remap_failed_count", 1)),
        ("nvidia_smi_compute_apps", 3, SMI, ("process_count", 3)),
    ],
)
def test_name_in_base_units(
    name: str, value: float, labels: dict[str, str], stored: tuple[str, float]
) -> None:
    column, expected = stored
    assert cells(scrape_once(line(name, value, labels)), column, "absences") == [(expected, None)]


@pytest.mark.parametrize(
    ("name", "value", "labels", "absences"),
    [
        ("gpu_gfx_activity", 65535, AMD, "busy_ratio=not_supported"),
        ("gpu_clock", 65535, AMD | {"clock_type": "system"}, "sm_clock_hz=not_supported"),
        ("gpu_package_power", 4294967295, AMD, "power_w=not_supported"),
        ("gpu_energy_consumed", 18446744073709551615, AMD, "energy_j=not_supported"),
        ("gpu_junction_temperature", 0, AMD, "temperature_celsius=not_supported"),
        ("gpu_gfx_activity", 300, AMD, "busy_ratio=out_of_range"),
        ("npu_chip_info_utilization", -1, NPU, "busy_ratio=blank"),
        ("npu_chip_info_temperature", -1, NPU, "temperature_celsius=blank"),
        ("npu_chip_info_aicore_current_freq", 4294967295, NPU, "sm_clock_hz=blank"),
        ("npu_chip_info_hccs_bandwidth_info_total_tx", -1, NPU, "nvlink_bytes_per_s=blank"),
    ],
)
def test_sentinel_of_a_vendor_is_null_with_its_reason(
    name: str, value: float, labels: dict[str, str], absences: str
) -> None:
    assert cells(scrape_once(line(name, value, labels)), "absences") == [(absences,)]


@pytest.mark.parametrize("prefix", ["", "amd_"])
@pytest.mark.parametrize(
    "kinds", [("system", "memory"), ("GPU_CLOCK_TYPE_SYSTEM", "GPU_CLOCK_TYPE_MEMORY")]
)
def test_clocks_of_amd_are_told_apart_by_a_label_and_the_highest_counts(
    prefix: str, kinds: tuple[str, str]
) -> None:
    def clock(kind: str, index: int, megahertz: int) -> str:
        labels = AMD | {"clock_type": kind, "clock_index": str(index)}
        return line(f"{prefix}gpu_clock", megahertz, labels)

    system, memory = kinds
    scrape = scrape_once(
        clock(system, 0, 132), clock(system, 1, 2100), clock(memory, 8, 900), clock("video", 9, 29)
    )
    assert cells(scrape, "sm_clock_hz", "memory_clock_hz") == [(2_100_000_000, 900_000_000)]
    assert (scrape.duplicate_count, scrape.unknown_metric_count) == (0, 0)


def test_name_that_ends_like_one_of_amd_s_is_unknown_without_its_labels() -> None:
    scrape = scrape_once(line("nvidia_gpu_power_usage", 140_000, {"uuid": "GPU-a"}))
    assert (scrape.samples.num_rows, scrape.unknown_names) == (0, ("nvidia_gpu_power_usage",))


def test_partition_0_speaks_for_the_board_of_amd_and_others_only_of_their_pods() -> None:
    parts = [
        AMD
        | {
            "gpu_compute_partition_type": "cpx",
            "gpu_partition_id": str(number),
            "pod": f"p{number}",
        }
        for number in range(3)
    ]
    scrape = scrape_once(
        *(
            line("gpu_package_power", power, part)
            for power, part in zip((500, 0, 0), parts, strict=True)
        )
    )
    assert cells(scrape, "instance_id", "power_w") == [(None, 500.0)]
    assert [(one.pod, one.instance_id, one.source) for one in scrape.holdings] == [
        ("p0", None, HoldingSource.VENDOR),
        ("p1", 1, HoldingSource.VENDOR),
        ("p2", 2, HoldingSource.VENDOR),
    ]


def test_second_choice_of_a_measure_counts_only_where_the_first_has_no_value() -> None:
    both = (line("gpu_edge_temperature", 35, AMD), line("gpu_junction_temperature", 41, AMD))
    for lines in (both, both[::-1]):
        assert cells(scrape_once(*lines), "temperature_celsius") == [(41.0,)]
    scrape = scrape_once(both[0], line("gpu_junction_temperature", 0, AMD))
    assert cells(scrape, "temperature_celsius", "absences") == [(35.0, None)]


def test_field_identifier_of_amd_is_an_event_once() -> None:
    exporter = Exporter()
    names = AMD | {"afid_index": "0"}
    shown = [
        events(exporter.scrape(*lines))
        for lines in (
            [line("gpu_gfx_activity", 0, AMD)],
            [line("gpu_afid_errors", 30, names)],
            [line("gpu_afid_errors", 30, names)],
            [line("gpu_afid_errors", 55, names)],
        )
    ]
    uuid = AMD["gpu_uuid"]
    assert shown == [[], [("afid", 30, uuid)], [], [("afid", 55, uuid)]]


def test_error_codes_of_an_npu_are_events_and_absence_is_no_error() -> None:
    exporter = Exporter()
    alive = line("npu_chip_info_power", 90, NPU)
    first = line("npu_chip_info_error_code", 2_162_169_857, NPU)
    second = line("npu_chip_info_error_code_1", 4660, NPU)
    shown = [
        [(r["kind"], r["code"], r["detail"]) for r in exporter.scrape(*lines).events.to_pylist()]
        for lines in ([alive], [alive, first], [alive, first, second], [alive], [alive, second])
    ]
    large, small = ("npu_error", None, "0x80E01801"), ("npu_error", 4660, None)
    assert shown == [[], [large], [small], [], [small]]


def test_time_of_an_npu_s_lines_is_its_sampling_time() -> None:
    scrape = scrape_once(
        line("npu_chip_info_power", "90 1723621883587", NPU),
        line("npu_chip_info_power", "91 1723621883932", NPU | {"id": "1", "vdie_id": "B"}),
    )
    at = datetime(2024, 8, 14, 7, 51, 23, tzinfo=UTC)
    assert cells(scrape, "device_uuid", "sampled_at") == [
        ("185011D4-21104518", at.replace(microsecond=587_000)),
        ("B", at.replace(microsecond=932_000)),
    ]


def test_reading_that_is_shown_again_with_its_time_is_one_sample() -> None:
    exporter = Exporter()
    times_ms = (1_723_621_883_587, 1_723_621_883_587, 1_723_621_893_587)
    rows = [
        exporter.scrape(line("npu_chip_info_power", f"90 {at_ms}", NPU)).samples.num_rows
        for at_ms in times_ms
    ]
    assert rows == [1, 0, 1]
    assert exporter.scrape(line("npu_chip_info_power", 90, NPU)).samples.num_rows == 1


def test_virtual_npu_is_an_instance_of_its_chip_and_the_chip_keeps_its_values() -> None:
    share = {
        "id": "0",
        "model_name": "310P3",
        "v_dev_id": "100",
        "aicore_count": "2",
        "is_virtual": "true",
        "namespace": "team",
        "pod_name": "p",
        "container_name": "main",
    }
    scrape = scrape_once(
        line("vnpu_pod_aicore_utilization", 40, share),
        line("vnpu_pod_used_memory", 2048, share),
        line("vnpu_pod_total_memory", 8192, share),
        line("npu_chip_info_utilization", 20, NPU),
    )
    columns = ("device_uuid", "instance_id", "busy_ratio", "memory_used_bytes", "pod")
    assert cells(scrape, *columns) == [
        (NPU["vdie_id"], None, 0.2, None, None),
        (NPU["vdie_id"], 100, 0.4, 2048 * 1024, "p"),
    ]
    assert [(one.instance_id, one.namespace, one.pod) for one in scrape.holdings] == [
        (100, "team", "p")
    ]


@pytest.mark.parametrize(
    ("sent", "received", "stored"),
    [
        pytest.param(2, 3, (5e9, None), id="both directions"),
        pytest.param(0, 0, (0.0, None), id="zero is a measured zero"),
        pytest.param(2, -1, (None, "nvlink_bytes_per_s=blank"), id="one failed: no half sum"),
    ],
)
def test_parts_of_a_sum(
    sent: float, received: float, stored: tuple[float | None, str | None]
) -> None:
    name = "npu_chip_info_hccs_bandwidth_info_total"
    scrape = scrape_once(line(f"{name}_tx", sent, NPU), line(f"{name}_rx", received, NPU))
    assert cells(scrape, "nvlink_bytes_per_s", "absences") == [stored]


@pytest.mark.parametrize("container", ["", "team_p_main"])
def test_processes_of_an_npu_with_memory_in_mib(container: str) -> None:
    labels = NPU | {"process_id": "4711", "container_id": "abc" if container else ""}
    scrape = scrape_once(
        line("npu_chip_info_process_info", 12, labels | {"container_name": container}),
        line("npu_chip_info_process_info", 0, NPU | {"process_id": ""}),
    )
    (row,) = scrape.processes.to_pylist()
    assert (row["device_uuid"], row["pid"], row["memory_used_bytes"], row["container_id"]) == (
        NPU["vdie_id"],
        4711,
        12 * MIB_BYTES,
        "abc" if container else None,
    )


def test_series_of_nvidia_smi_get_their_facts_from_the_info_line() -> None:
    scrape = scrape_once(
        line("nvidia_smi_utilization_gpu_ratio", 0.5, SMI),
        line("nvidia_smi_gpu_info", 1, SMI_INFO),
    )
    assert told(scrape)["busy_ratio"] == 0.5
    (device,) = scrape.devices.to_pylist()
    assert (device["model"], device["device_index"], device["driver_version"]) == (
        "NVIDIA H100 80GB HBM3",
        3,
        "590.48.01",
    )


@pytest.mark.parametrize(
    ("printed", "uuid"),
    [
        ("df6e7a7c-7314-46f8-abc4-b88b36dcf3aa", "GPU-df6e7a7c-7314-46f8-abc4-b88b36dcf3aa"),
        ("GPU-df6e7a7c-7314-46f8-abc4-b88b36dcf3aa", "GPU-df6e7a7c-7314-46f8-abc4-b88b36dcf3aa"),
        ("MIG-df6e7a7c-7314-46f8-abc4-b88b36dcf3aa", "MIG-df6e7a7c-7314-46f8-abc4-b88b36dcf3aa"),
    ],
)
def test_uuid_of_nvidia_smi_is_the_one_that_all_others_print(printed: str, uuid: str) -> None:
    scrape = scrape_once(line("nvidia_smi_utilization_gpu_ratio", 0.5, {"uuid": printed}))
    assert cells(scrape, "device_uuid") == [(uuid,)]


def test_xids_that_nvidia_smi_s_exporter_counts_are_events() -> None:
    exporter = Exporter()
    exporter.scrape(line("nvidia_smi_utilization_gpu_ratio", 0.5, SMI))
    scrape = exporter.scrape(line("nvidia_smi_xid_errors_total", 1, SMI | {"xid": "79"}))
    assert events(scrape) == [("xid", 79, "GPU-a")]


@pytest.mark.parametrize("info_first", [True, False])
def test_device_without_uuid_is_named_by_the_index_of_its_info_line(info_first: bool) -> None:
    zeros = {"uuid": "00000000-0000-0000-0000-000000000000"}
    lines = [
        line("nvidia_smi_gpu_info", 1, SMI_INFO | zeros),
        line("nvidia_smi_utilization_gpu_ratio", 0.5, zeros),
    ]
    scrape = scrape_once(*(lines if info_first else lines[::-1]))
    assert cells(scrape, "device_uuid", "busy_ratio") == [("10.0.0.5/3", 0.5)]


def test_two_devices_without_uuid_cannot_be_told_apart() -> None:
    zeros = {"uuid": "00000000-0000-0000-0000-000000000000"}
    scrape = scrape_once(
        line("nvidia_smi_gpu_info", 1, SMI_INFO | zeros),
        line("nvidia_smi_gpu_info", 1, SMI_INFO | zeros | {"index": "4"}),
        line("nvidia_smi_utilization_gpu_ratio", 0.5, zeros),
    )
    assert (scrape.samples.num_rows, scrape.unidentified_count) == (0, 1)


@pytest.mark.parametrize(("pid", "count"), [("1", 1), ("4194304", 1), ("4194305", 0), ("0", 0)])
def test_process_number_that_no_kernel_gives_is_passed_over(pid: str, count: int) -> None:
    labels = SMI | {"pid": pid, "process_name": "./train"}
    scrape = scrape_once(line("nvidia_smi_compute_app_used_memory_bytes", 2.4e9, labels))
    assert scrape.processes.num_rows == count


def test_containers_of_hami_add_up_where_the_device_itself_is_silent() -> None:
    def used(pod: str, bytes_: int) -> str:
        labels = {"device_uuid": "GPU-a", "namespace": "team", "pod": pod, "container": "main"}
        return line("hami_vgpu_memory_used_bytes", bytes_, labels | {"vdevice_index": "0"})

    scrape = scrape_once(used("a", 3), used("b", 4))
    assert cells(scrape, "memory_used_bytes", "pod", "absences") == [
        (7, None, "memory_used_bytes=low_trust")
    ]
    assert [one.pod for one in scrape.holdings] == ["a", "b"]
    device = line("hami_host_gpu_memory_used_bytes", 100, HAMI)
    told_by_device = scrape_once(used("a", 3), used("b", 4), device)
    assert cells(told_by_device, "memory_used_bytes", "absences") == [(100, None)]


def test_instance_that_hami_gave_a_container_is_held() -> None:
    labels = {"device_uuid": "GPU-a", "namespace": "team", "pod": "p", "container": "main"}
    scrape = scrape_once(
        line("hami_host_gpu_utilization_ratio", 64, HAMI),
        line("hami_mig_device_info", 1, labels | {"gpu_instance_id": "5", "profile": "2g.10gb"}),
    )
    assert cells(scrape, "instance_id", "busy_ratio") == [(None, 0.64)]
    assert [(one.instance_id, one.pod) for one in scrape.holdings] == [(5, "p")]


@pytest.mark.parametrize(
    ("name", "labels", "vendor"),
    [
        ("gpu_gfx_activity", AMD, "amd"),
        ("npu_chip_info_power", NPU, "huawei"),
        ("nvidia_smi_power_draw_watts", SMI, "nvidia"),
        ("hami_host_gpu_memory_used_bytes", HAMI, "nvidia"),
        (
            "hami_host_gpu_memory_used_bytes",
            HAMI | {"device_uuid": "33ff", "device_type": "AMD Radeon"},
            "amd",
        ),
        (
            "hami_host_gpu_memory_used_bytes",
            HAMI | {"device_uuid": "1850", "device_type": "Ascend910B3"},
            "huawei",
        ),
        (
            "hami_host_gpu_memory_used_bytes",
            HAMI | {"device_uuid": "MLU-1", "device_type": "MLU590"},
            None,
        ),
    ],
)
def test_vendor_of_a_device_follows_from_its_exporter(
    name: str, labels: dict[str, str], vendor: str | None
) -> None:
    assert [r["vendor"] for r in scrape_once(line(name, 1, labels)).devices.to_pylist()] == [vendor]
