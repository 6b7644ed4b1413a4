"""Real exporter texts through the command line: imported, kept, measured, reported."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

MIB_BYTES = 1_048_576
SLICED = "02_dcgm_a100_mig_3instances_active.prom"
HELD_IDLE = "04_dcgm_a100_mig_idle_allocated.prom"
UNDIVIDED = "05_dcgm_a100_mig_disabled_idle.prom"
EMPTY = "05b_dcgm_a100_mig_enabled_empty.prom"

Rows = dict[str, list[dict[str, object]]]


def steward(*arguments: str) -> str:
    command = [sys.executable, "-m", "steward", *arguments]
    ended = subprocess.run(command, check=True, capture_output=True, text=True, timeout=100)
    return ended.stdout


def devices(text: Path, data_dir: Path) -> Rows:
    place = ("--data-dir", str(data_dir))
    steward("import", "exposition", str(text), *place)
    report = json.loads(steward("report", "devices", "--format", "json", *place))
    return {table["key"]: table["records"] for table in report["tables"]}


def test_three_instances_one_busy(test_data: Path, tmp_path: Path) -> None:
    found = devices(test_data / "exposition" / SLICED, tmp_path)
    (gpu,) = found["devices"]
    assert gpu["power_w"] == 116.163
    assert gpu["apparent_ratio"] == pytest.approx(0.142864, abs=5e-7)
    assert gpu["configured_apparent_ratio"] == pytest.approx(0.250013, abs=5e-7)
    assert gpu["effective_ratio"] == pytest.approx(0.115722, abs=5e-7)
    assert gpu["dram_active_ratio"] == pytest.approx(0.081005, abs=5e-7)
    assert gpu["memory_used_bytes"] == 4635 * MIB_BYTES
    assert gpu["energy_j"] == 57_585.599, "one counter, not one per instance"
    (busy,) = (row for row in found["instances"] if row["instance_id"] == 9)
    assert busy["effective_ratio"] == pytest.approx(0.809982, abs=1e-6)
    assert busy["gap_ratio"] == pytest.approx(0.189935, abs=1e-6)
    assert (busy["apparent_ratio"], busy["apparent_source"], busy["tier"]) == (
        0.999917,
        "graphics",
        1,
    )


def test_one_idle_instance(test_data: Path, tmp_path: Path) -> None:
    found = devices(test_data / "exposition" / HELD_IDLE, tmp_path)
    (gpu,), (instance,) = found["devices"], found["instances"]
    assert (gpu["power_w"], gpu["effective_ratio"]) == (75.69, 0.0)
    assert gpu["unconfigured_ratio"] == pytest.approx(6 / 7)
    assert (instance["instance_id"], instance["memory_used_bytes"]) == (8, 6 * MIB_BYTES)
    assert instance["sm_share_ratio"] == pytest.approx(1 / 7)


def test_undivided_and_idle(test_data: Path, tmp_path: Path) -> None:
    found = devices(test_data / "exposition" / UNDIVIDED, tmp_path)
    (gpu,) = found["devices"]
    assert (gpu["power_w"], gpu["memory_used_bytes"], gpu["apparent_ratio"]) == (45.999, 0, 0.0)
    assert (gpu["energy_j"], found["instances"]) == (424_405.577, [])


def test_mig_mode_without_instance(test_data: Path, tmp_path: Path) -> None:
    (gpu,) = devices(test_data / "exposition" / EMPTY, tmp_path)["devices"]
    assert gpu["power_w"] == 75.96
    assert gpu["memory_used_bytes"] is None
    assert gpu["apparent_ratio"] == pytest.approx(0.000033)
