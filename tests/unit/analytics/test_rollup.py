"""From MIG instances to the physical GPU: the golden values of a real A100 with three instances."""

from __future__ import annotations

import polars as pl
import pytest

from analytics.inventory import current_devices, current_instances
from analytics.rollup import device_readings, instance_readings
from tests.support.analytics_frames import NOON, Row, rows

MIB_BYTES = 1_048_576
INSTANCES: tuple[Row, ...] = (
    {"instance_id": 7, "sm_share_ratio": 1 / 7, "memory_share_ratio": 1 / 8},
    {"instance_id": 9, "sm_share_ratio": 1 / 7, "memory_share_ratio": 1 / 8},
    {"instance_id": 5, "sm_share_ratio": 2 / 7, "memory_share_ratio": 2 / 8},
)
READINGS: tuple[Row, ...] = (
    {"power_w": 116.163, "energy_j": 57_585.599},
    {"instance_id": 7, "graphics_active_ratio": 0.000062, "tensor_active_ratio": 0.0,
     "dram_active_ratio": 0.000053, "memory_used_bytes": 98 * MIB_BYTES},
    {"instance_id": 9, "graphics_active_ratio": 0.999917, "tensor_active_ratio": 0.000118,
     "dram_active_ratio": 0.647986, "memory_used_bytes": 4384 * MIB_BYTES},
    {"instance_id": 5, "graphics_active_ratio": 0.000036, "tensor_active_ratio": 0.0,
     "dram_active_ratio": 0.000001, "memory_used_bytes": 153 * MIB_BYTES},
)  # fmt: skip


def read(devices: tuple[Row, ...], samples: tuple[Row, ...]) -> pl.DataFrame:
    stored = rows("device_history", {}, *devices)
    boards = current_devices(stored, rows("node_history", {}))
    return device_readings(
        rows("latest_device_sample", *samples), boards, current_instances(stored)
    )


def test_three_instances_one_busy() -> None:
    gpu = read(INSTANCES, READINGS).row(0, named=True)
    assert gpu["apparent_ratio"] == pytest.approx(0.142864, abs=5e-7)
    assert gpu["effective_ratio"] == pytest.approx(0.115722, abs=5e-7)
    assert gpu["dram_active_ratio"] == pytest.approx(0.081005, abs=5e-7)
    assert gpu["configured_apparent_ratio"] == pytest.approx(0.250013, abs=5e-7)
    assert gpu["unconfigured_ratio"] == pytest.approx(3 / 7)
    assert (gpu["power_w"], gpu["energy_j"]) == (116.163, 57_585.599)
    assert gpu["memory_used_bytes"] == 4635 * MIB_BYTES
    assert (gpu["tier"], gpu["apparent_source"]) == (1, "graphics")


def test_busy_instance_is_bound_by_memory() -> None:
    stored = rows("device_history", {}, *INSTANCES)
    found = instance_readings(
        rows("latest_device_sample", *READINGS), current_instances(stored)
    ).filter(pl.col("instance_id") == 9)
    assert found["effective_ratio"].to_list() == pytest.approx([0.809982], abs=1e-6)
    assert found["gap_ratio"].to_list() == pytest.approx([0.189935], abs=1e-6)


def test_one_idle_instance_leaves_six_slices_unconfigured() -> None:
    instance = {"instance_id": 8, "sm_share_ratio": 1 / 7, "memory_share_ratio": 1 / 8}
    reading = {"instance_id": 8, "graphics_active_ratio": 0.0, "tensor_active_ratio": 0.0,
               "dram_active_ratio": 0.0, "memory_used_bytes": 6 * MIB_BYTES}  # fmt: skip
    gpu = read((instance,), ({"power_w": 75.69}, reading)).row(0, named=True)
    assert (gpu["effective_ratio"], gpu["power_w"]) == (0.0, 75.69)
    assert gpu["unconfigured_ratio"] == pytest.approx(6 / 7)


def test_mig_mode_without_instance_has_unknown_memory() -> None:
    board: Row = {"power_w": 75.96, "graphics_active_ratio": 0.000033, "tensor_active_ratio": 0.0,
                  "dram_active_ratio": 0.000005}  # fmt: skip
    gpu = read((), (board,)).row(0, named=True)
    assert gpu["memory_used_bytes"] is None
    assert gpu["apparent_ratio"] == pytest.approx(0.000033)


def test_one_unknown_instance_leaves_the_gpu_unknown() -> None:
    silent: Row = {"instance_id": 5}
    gpu = read(INSTANCES, (*READINGS[:3], silent)).row(0, named=True)
    assert gpu["apparent_ratio"] is None
    assert gpu["effective_ratio"] is None
    assert gpu["memory_used_bytes"] is None


def test_an_instance_gone_from_the_inventory_is_not_added() -> None:
    gone: Row = {"instance_id": 1, "graphics_active_ratio": 1.0}
    assert read(INSTANCES, (*READINGS, gone)).row(0) == read(INSTANCES, READINGS).row(0)


def test_an_instance_without_any_reading_is_unknown_not_resting() -> None:
    gpu = read(INSTANCES, READINGS[:3]).row(0, named=True)
    assert (gpu["apparent_ratio"], gpu["effective_ratio"], gpu["tier"]) == (None, None, None)
    assert gpu["memory_used_bytes"] is None
    assert gpu["unconfigured_ratio"] == pytest.approx(3 / 7)
    assert gpu["instance_count"] == 3
    assert gpu["power_w"] == 116.163


def test_a_device_whose_instances_all_lack_readings_shows_its_board() -> None:
    gpu = read(INSTANCES, READINGS[:1]).row(0, named=True)
    assert (gpu["power_w"], gpu["apparent_ratio"]) == (116.163, None)
    assert (gpu["instance_count"], gpu["sampled_at"]) == (3, NOON)
    assert gpu["unconfigured_ratio"] == pytest.approx(3 / 7)
