"""Real exporter texts, from the parser to the rows that the warehouse stores."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from collector.normalize import NormalizedScrape
from collector.normalize.metric import MEASURES
from collector.sources.exposition import ExpositionParser
from steward.units import MIB_BYTES
from tests.support.exposition_texts import Exporter, cells, scrape_once

FILES = (
    "01_dcgm_k8s_t4_fractional_runai",
    "02_dcgm_a100_mig_3instances_active",
    "04_dcgm_a100_mig_idle_allocated",
    "05_dcgm_a100_mig_disabled_idle",
    "05b_dcgm_a100_mig_enabled_empty",
    "06_dcgm_t4_plain_datadog",
    "07_nvidiasmi_h100_mig_load",
    "09_ascend_910A_real_docs",
    "11_hami_vgpumonitor_legacy",
    "13_amd_dme_real_lines",
    "14_dcgm_issue_snippets",
    "14b_dcgm_invalid_line",
)
A100 = "GPU-7099682b-a20d-2bcc-74ab-b9060454d81e"


def read(folder: Path, name: str) -> NormalizedScrape:
    (path,) = (folder / "exposition").glob(f"{name}*.prom")
    return scrape_once(path.read_text("utf-8"))


def test_board_values_of_a_divided_gpu_are_stored_once(test_data: Path) -> None:
    scrape = read(test_data, "02_")
    assert cells(scrape, "device_uuid", "instance_id", "power_w", "energy_j") == [
        (A100, None, 116.163, 57_585.599),
        (A100, 5, None, None),
        (A100, 7, None, None),
        (A100, 9, None, None),
    ]


def test_instance_values_of_a_divided_gpu_stay_with_their_instance(test_data: Path) -> None:
    scrape = read(test_data, "02_")
    assert cells(scrape, "instance_id", "graphics_active_ratio", "busy_ratio") == [
        (None, None, None),
        (5, 0.000036, None),
        (7, 0.000062, None),
        (9, 0.999917, None),
    ]
    used = [row["memory_used_bytes"] for row in scrape.samples.to_pylist()]
    assert used == [None, 153 * MIB_BYTES, 98 * MIB_BYTES, 4384 * MIB_BYTES]
    assert sum(filter(None, used)) == 4635 * MIB_BYTES


def test_shares_of_instances_follow_their_profiles(test_data: Path) -> None:
    devices = read(test_data, "02_").devices.to_pylist()
    assert {
        row["instance_id"]: (row["mig_profile"], row["sm_share_ratio"], row["memory_share_ratio"])
        for row in devices
    } == {
        None: (None, None, None),
        5: ("2g.10gb", 2 / 7, 2 / 8),
        7: ("1g.5gb", 1 / 7, 1 / 8),
        9: ("1g.5gb", 1 / 7, 1 / 8),
    }


def test_scrape_pasted_twice_is_one_scrape_with_23_duplicates(test_data: Path) -> None:
    scrape = read(test_data, "05_")
    assert (scrape.sample_count, scrape.duplicate_count) == (46, 23)
    assert cells(scrape, "power_w", "busy_ratio", "energy_j") == [(45.999, 0.0, 424_405.577)]
    row = scrape.scrape_table(duration_s=0.1, body_bytes=16_982).to_pylist()[0]
    assert (row["is_ok"], row["duplicate_count"]) == (True, 23)


def test_divided_gpu_without_instances_has_no_memory_rather_than_none_used(
    test_data: Path,
) -> None:
    scrape = read(test_data, "05b_")
    assert cells(scrape, "power_w", "graphics_active_ratio", "memory_used_bytes") == [
        (75.96, 0.000033, None)
    ]


def test_invalid_line_is_dropped_and_the_rest_kept(test_data: Path) -> None:
    scrape = read(test_data, "14b_")
    assert scrape.dropped_line_count == 1
    assert cells(scrape, "busy_ratio") == [(0.12,)]


def test_copies_per_pod_are_one_value(test_data: Path) -> None:
    scrape = read(test_data, "14_")
    ratios = [row["graphics_active_ratio"] for row in scrape.samples.to_pylist()]
    assert [ratio for ratio in ratios if ratio is not None] == [0.714]


@pytest.mark.parametrize("name", FILES)
def test_every_text_reads_twice_without_an_exception(test_data: Path, name: str) -> None:
    text = (test_data / "exposition" / f"{name}.prom").read_text("utf-8")
    exporter = Exporter()
    first, second = exporter.scrape(text), exporter.scrape(text)
    assert first.sample_count > 0
    if name == "09_ascend_910A_real_docs":
        assert second.samples.num_rows == 0, "its lines are stamped: the same samples again"
    else:
        drop = ["sampled_at"]
        assert first.samples.drop_columns(drop).equals(second.samples.drop_columns(drop))
    assert second.devices.num_rows == second.events.num_rows == 0


def test_every_text_of_the_folder_is_among_the_tested(test_data: Path) -> None:
    assert {path.stem for path in (test_data / "exposition").glob("*.prom")} <= set(FILES)


@dataclass(frozen=True, kw_only=True)
class Told:
    """What a text must come to: numbers of rows and of what was counted on the way."""

    samples: int
    devices: int
    rows: int
    values: int
    """Measured values in those rows."""
    absences: int = 0
    """Measures with a reason instead of a value, or beside it."""
    events: int = 0
    processes: int = 0
    holdings: int = 0
    dropped: int = 0
    duplicates: int = 0
    conflicts: int = 0
    unidentified: int = 0
    unknown: tuple[str, ...] | int = ()


TOLD: Final = {
    "01_": Told(samples=38, devices=2, rows=2, values=36, holdings=1),
    "02_": Told(samples=42, devices=4, rows=4, values=23),
    "04_": Told(samples=14, devices=2, rows=2, values=13),
    "05_": Told(samples=46, devices=1, rows=1, values=22, duplicates=23),
    "05b": Told(samples=14, devices=1, rows=1, values=13),
    "06_": Told(
        samples=24,
        devices=3,
        rows=3,
        values=17,
        holdings=1,
        unidentified=1,
        unknown=(
            "DCGM_FI_DEV_COUNT",
            "DCGM_FI_DEV_FB_USED_PERCENT",
            "DCGM_FI_DEV_PSTATE",
            "DCGM_FI_DEV_SLOWDOWN_TEMP",
            "DCGM_FI_DEV_VGPU_LICENSE_STATUS",
        ),
    ),
    "07_": Told(samples=128, devices=1, rows=1, values=16, processes=3, unknown=99),
    "09_": Told(
        samples=11,
        devices=8,
        rows=8,
        values=8,
        unknown=("machine_card_nums", "machine_npu_nums", "npu_chip_info_bandwidth_rx"),
    ),
    "11_": Told(samples=9, devices=1, rows=1, values=2, holdings=1, duplicates=2, conflicts=2),
    "13_": Told(
        samples=8,
        devices=6,
        rows=6,
        values=6,
        absences=1,
        holdings=1,
    ),
    "14_": Told(
        samples=18,
        devices=15,
        rows=10,
        values=9,
        absences=4,
        events=1,
        holdings=5,
        duplicates=2,
        unidentified=1,
    ),
    "14b": Told(samples=1, devices=1, rows=1, values=1, dropped=1),
}


@pytest.mark.parametrize("name", TOLD)
def test_text_is_normalised_without_loss(test_data: Path, name: str) -> None:
    scrape, expected = read(test_data, name), TOLD[name]
    rows = scrape.samples.to_pylist()
    assert (
        Told(
            samples=scrape.sample_count,
            devices=scrape.devices.num_rows,
            rows=len(rows),
            values=sum(row[measure] is not None for row in rows for measure in MEASURES),
            absences=sum(
                len((row["absences"] or "").split(",")) for row in rows if row["absences"]
            ),
            events=scrape.events.num_rows,
            processes=scrape.processes.num_rows,
            holdings=len(scrape.holdings),
            dropped=scrape.dropped_line_count,
            duplicates=scrape.duplicate_count,
            conflicts=scrape.conflict_count,
            unidentified=scrape.unidentified_count,
            unknown=(
                len(scrape.unknown_names)
                if isinstance(expected.unknown, int)
                else scrape.unknown_names
            ),
        )
        == expected
    )


def test_names_that_are_left_of_nvidia_smi_have_no_column(test_data: Path) -> None:
    """Limits, modes, versions and parts of sums; nothing that a measure could be made of."""
    left = {name.removeprefix("nvidia_smi_") for name in read(test_data, "07_").unknown_names}
    words = ("utilization", "memory_used", "power_draw", "temperature_memory", "_total_bytes")
    assert {name for name in left if any(word in name for word in words)} == {
        "protected_memory_total_bytes",
        "protected_memory_used_bytes",
    }


def test_timestamps_of_lines_are_kept(test_data: Path) -> None:
    path = test_data / "exposition" / "09_ascend_910A_real_docs.prom"
    samples = ExpositionParser().parse(path.read_bytes()).samples
    assert [sample[3] for sample in samples[2:4]] == [1_723_621_883_587, 1_723_621_883_932]
