"""Values that exporters are known to print wrong, by the number of the report."""

from __future__ import annotations

from pathlib import Path

import pytest

from steward.units import MIB_BYTES
from tests.support.exposition_texts import (
    GPU,
    OTHER_GPU,
    Exporter,
    cells,
    instance,
    line,
    pod,
    scrape_once,
)

UTIL = "DCGM_FI_DEV_GPU_UTIL"
SM = "DCGM_FI_PROF_SM_ACTIVE"
GR = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
POWER = "DCGM_FI_DEV_POWER_USAGE"
ENERGY = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"
A100 = "GPU-7099682b-a20d-2bcc-74ab-b9060454d81e"
AMD_GPU = {"gpu_id": "0", "gpu_uuid": "u-1", "card_series": "MI300X", "hostname": "n1"}
AMD_GUEST = AMD_GPU | {
    "card_model": "",
    "card_series": "Aqua Vanjaram [Instinct MI325X VF]",
    "gpu_uuid": "00000000-0000-0000-0000-000000000000",
    "gpu_partition_id": "NA",
}
HAMI_GPU = {"device_index": "0", "device_uuid": "GPU-a"}
HAMI_POD = {
    "deviceuuid": "GPU-a",
    "podnamespace": "team",
    "podname": "p",
    "ctrname": "main",
    "vdeviceid": "0",
}


def sample_text(test_data: Path, name: str) -> str:
    (path,) = (test_data / "exposition").glob(f"{name}*.prom")
    return path.read_text("utf-8")


@pytest.mark.parametrize("percent", [4294967295, 200_000, 1_000, 105.1])
def test_fault_01_corrupt_utilisation_is_null_and_the_mean_unchanged(percent: float) -> None:
    exporter = Exporter()
    hour = [exporter.scrape(line(UTIL, value)) for value in (40, percent, 60)]
    said = [cells(scrape, "busy_ratio", "absences")[0] for scrape in hour]
    assert said == [(0.4, None), (None, "busy_ratio=out_of_range"), (0.6, None)]
    known = [ratio for ratio, _ in said if ratio is not None]
    assert sum(known) / len(known) == 0.5


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("9223372036854775794", "not_supported"),
        ("9223372036854775792", "blank"),
        ("9.223372036854776e+18", "blank"),
    ],
)
def test_fault_02_blank_printed_as_a_temperature_is_null(value: str, reason: str) -> None:
    scrape = scrape_once(line("DCGM_FI_DEV_MEMORY_TEMP", value))
    assert cells(scrape, "memory_temperature_celsius", "absences") == [
        (None, f"memory_temperature_celsius={reason}")
    ]


def test_fault_03_blank_float_of_one_gpu_leaves_the_other_in_a_mixed_node() -> None:
    scrape = scrape_once(line(SM, "140737488355328.0"), line(SM, 0.4, OTHER_GPU))
    assert cells(scrape, "device_uuid", "sm_active_ratio", "absences") == [
        ("GPU-a", None, "sm_active_ratio=blank"),
        ("GPU-b", 0.4, None),
    ]


def test_fault_04_line_with_text_as_value_is_dropped_and_counted(test_data: Path) -> None:
    scrape = scrape_once(sample_text(test_data, "14b_"))
    assert cells(scrape, "busy_ratio") == [(0.12,)]
    assert scrape.dropped_line_count == 1


def test_fault_05_blank_profile_keeps_the_instance_as_identity() -> None:
    scrape = scrape_once(line(GR, 0.1, instance(6, profile="<<<NULL>>>")))
    assert cells(scrape, "instance_id", "graphics_active_ratio") == [(6, 0.1)]
    profiles = {row["instance_id"]: row["mig_profile"] for row in scrape.devices.to_pylist()}
    assert profiles == {None: None, 6: None}


def test_fault_08_divided_gpu_has_no_utilisation_but_its_engines_activity(
    test_data: Path,
) -> None:
    scrape = scrape_once(sample_text(test_data, "02_"))
    assert cells(scrape, "instance_id", "busy_ratio", "graphics_active_ratio") == [
        (None, None, None),
        (5, None, 0.000036),
        (7, None, 0.000062),
        (9, None, 0.999917),
    ]


def test_fault_10_board_power_is_stored_once(test_data: Path) -> None:
    scrape = scrape_once(sample_text(test_data, "02_"))
    assert cells(scrape, "instance_id", "power_w", "energy_j") == [
        (None, 116.163, 57_585.599),
        (5, None, None),
        (7, None, None),
        (9, None, None),
    ]
    assert (scrape.duplicate_count, scrape.conflict_count) == (0, 0)


@pytest.mark.parametrize("order", [(101_025, 106_318), (106_318, 101_025)])
def test_fault_10_energy_of_two_instances_is_the_latest_of_one_counter(
    order: tuple[int, int],
) -> None:
    lines = [
        line(ENERGY, 126_272_000_000 + tail, instance(number))
        for number, tail in zip((3, 5), order, strict=True)
    ]
    assert cells(scrape_once(*lines), "instance_id", "energy_j") == [(None, 126_272_106.318)]


def test_fault_12_profile_with_an_odd_memory_size_still_says_its_slices(test_data: Path) -> None:
    scrape = scrape_once(sample_text(test_data, "14_dcgm"))
    (told,) = (
        (row["instance_id"], row["mig_profile"], row["sm_share_ratio"])
        for row in scrape.devices.to_pylist()
        if row["mig_profile"] == "1g.11gb"
    )
    assert told == (7, "1g.11gb", 1 / 7)


def test_fault_14_copies_per_pod_are_the_device_value_once(test_data: Path) -> None:
    scrape = scrape_once(sample_text(test_data, "14_dcgm"))
    told = [row for row in scrape.samples.to_pylist() if row["graphics_active_ratio"] is not None]
    assert [(row["graphics_active_ratio"], row["pod"]) for row in told] == [(0.714, None)]


def test_fault_14_every_copy_s_pod_is_a_holder_with_its_replica() -> None:
    scrape = scrape_once(
        *(line(GR, 0.714, GPU | pod(f"p{n}") | {"vgpu": str(n)}) for n in range(3))
    )
    assert cells(scrape, "graphics_active_ratio") == [(0.714,)]
    assert [(one.pod, one.replica) for one in scrape.holdings] == [("p0", 0), ("p1", 1), ("p2", 2)]


def test_fault_18_relabelled_pod_is_the_tenant_s(test_data: Path) -> None:
    scrape = scrape_once(sample_text(test_data, "14_dcgm"))
    (row,) = (row for row in scrape.samples.to_pylist() if row["device_uuid"] == "GPU-longgui")
    assert (row["namespace"], row["pod"], row["container"]) == (
        "default",
        "pod1",
        "ai-artifactory-control",
    )
    assert not any("exporter" in holding.pod for holding in scrape.holdings)


@pytest.mark.parametrize(
    ("printed", "stored"),
    [
        pytest.param("18446744073709551000", None, id="underflow"),
        pytest.param("4", 0.004, id="after a reset"),
        pytest.param("0", 0.0, id="zero"),
    ],
)
def test_fault_34_energy_that_ran_below_zero_is_no_reading(
    printed: str, stored: float | None
) -> None:
    exporter = Exporter()
    exporter.scrape(line(ENERGY, 1_000))
    reason = None if stored is not None else "energy_j=out_of_range"
    assert cells(exporter.scrape(line(ENERGY, printed)), "energy_j", "absences") == [
        (stored, reason)
    ]


def test_fault_36_guest_without_sensor_uuid_and_model(test_data: Path) -> None:
    scrape = scrape_once(sample_text(test_data, "13_"))
    rows = {row["device_uuid"]: row for row in scrape.samples.to_pylist()}
    assert rows["mi325x8-110/0"]["busy_ratio"] == 0.83
    guest = rows["17ff74b5-0000-1000-805c-37b0fbe69430"]
    assert (guest["temperature_celsius"], guest["absences"]) == (
        None,
        "temperature_celsius=not_supported",
    )


@pytest.mark.parametrize(
    ("labels", "value", "told"),
    [
        pytest.param(AMD_GUEST, 0, (0.0, "busy_ratio=low_trust"), id="guest at 0"),
        pytest.param(AMD_GUEST, 83, (0.83, None), id="guest at work"),
        pytest.param(AMD_GPU, 0, (0.0, None), id="whole board at 0"),
        pytest.param(AMD_GUEST, "NaN", (None, "busy_ratio=blank"), id="guest without a value"),
    ],
)
def test_fault_36_utilisation_0_of_a_guest_is_kept_with_low_trust(
    labels: dict[str, str], value: float | str, told: tuple[float | None, str | None]
) -> None:
    scrape = scrape_once(line("amd_gpu_gfx_activity", value, labels))
    assert cells(scrape, "busy_ratio", "absences") == [told]


@pytest.mark.parametrize(
    ("value", "told"),
    [
        pytest.param(137, (1.0, "busy_ratio=low_trust"), id="above 100"),
        pytest.param(99, (0.99, "busy_ratio=low_trust"), id="a container's"),
        pytest.param(0, (0.0, "busy_ratio=low_trust"), id="zero is a measured zero"),
    ],
)
def test_fault_39_utilisation_of_containers_is_clamped_and_marked(
    value: float, told: tuple[float, str]
) -> None:
    scrape = scrape_once(line("Device_utilization_desc_of_container", value, HAMI_POD))
    assert cells(scrape, "busy_ratio", "absences") == [told]
    assert scrape.clamped_count == (1 if value > 100 else 0)


def test_fault_39_device_above_100_percent_is_clamped_and_marked() -> None:
    scrape = scrape_once(line("hami_host_gpu_utilization_ratio", 137, HAMI_GPU))
    assert cells(scrape, "busy_ratio", "absences") == [(1.0, "busy_ratio=clamped")]
    assert scrape.clamped_count == 1


def test_fault_39_absent_before_the_first_call_is_null_and_held_all_the_same() -> None:
    limit = line("vGPU_device_memory_limit_in_bytes", 3.145728e9, HAMI_POD)
    scrape = scrape_once(line("HostGPUMemoryUsage", 0, {"deviceuuid": "GPU-a"}), limit)
    assert cells(scrape, "busy_ratio", "memory_used_bytes", "absences") == [(None, 0, None)]
    assert [(one.pod, one.container) for one in scrape.holdings] == [("p", "main")]


def test_fault_40_ratio_of_hami_carries_0_to_100() -> None:
    scrape = scrape_once(
        line("hami_host_gpu_utilization_ratio", 64, HAMI_GPU),
        line("hami_host_gpu_utilization_ratio", 1, HAMI_GPU | {"device_uuid": "GPU-b"}),
    )
    assert cells(scrape, "device_uuid", "busy_ratio") == [("GPU-a", 0.64), ("GPU-b", 0.01)]


def test_fault_40_memory_typed_a_counter_is_a_gauge() -> None:
    exporter = Exporter()
    name = "Device_memory_desc_of_container"
    typed = f"# TYPE {name} counter\n"
    used = [
        cells(exporter.scrape(typed + line(name, value, HAMI_POD)), "memory_used_bytes")[0][0]
        for value in (2_109_867_008, 1_000_000_000)
    ]
    assert used == [2_109_867_008, 1_000_000_000]


def test_fault_41_upgrade_of_the_exporter_in_mid_day_leaves_one_series() -> None:
    exporter = Exporter()
    before = exporter.scrape(
        line("DCGM_FI_DEV_FB_USED", 4384),
        line("DCGM_FI_DEV_SM_CLOCK", 1410),
        line("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", 57585599),
        line("DCGM_FI_DEV_MEM_COPY_UTIL", 37),
        line("DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", 125),
        line("DCGM_FI_DEV_POWER_VIOLATION", 2_500_000_000),
        line("DCGM_FI_DEV_FAN_SPEED", 40),
        line("DCGM_FI_DEV_GPU_TEMP", 37, GPU | {"DCGM_FI_DRIVER_VERSION": "575.1"}),
    )
    after = exporter.scrape(
        line("DCGM_FI_DEV_FB_USED_BYTES", 4596957184),
        line("DCGM_FI_DEV_SM_CLOCK_HERTZ", 1410000000),
        line("DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL", 57585.599),
        line("DCGM_FI_DEV_MEMORY_UTIL_RATIO", 0.37),
        line("DCGM_FI_DEV_NVLINK_THROUGHPUT_BYTES_PER_SECOND", 128000000),
        line("DCGM_FI_DEV_GPU_POWER_THROTTLE_SECONDS_TOTAL", 2.5),
        line("DCGM_FI_DEV_FAN_SPEED_RATIO", 0.4),
        line("DCGM_FI_DEV_GPU_TEMP_CELSIUS", 37, GPU | {"DCGM_FI_SYSTEM_DRIVER_VERSION": "575.1"}),
    )
    drop = ["sampled_at"]
    assert before.samples.drop_columns(drop).equals(after.samples.drop_columns(drop))
    assert cells(before, "memory_used_bytes") == [(4384 * MIB_BYTES,)]
    assert after.devices.num_rows == 0


def test_fault_45_scrape_pasted_twice_is_one_scrape_with_23_duplicates(test_data: Path) -> None:
    scrape = scrape_once(sample_text(test_data, "05_"))
    assert (scrape.sample_count, scrape.duplicate_count, scrape.samples.num_rows) == (46, 23, 1)
    assert cells(scrape, "power_w", "busy_ratio", "energy_j") == [(45.999, 0.0, 424_405.577)]
