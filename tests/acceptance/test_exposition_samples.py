"""Real exporter texts, from the parser to the rows that the warehouse stores."""

from __future__ import annotations

from pathlib import Path

import pytest

from collector.normalize import NormalizedScrape
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
    drop = ["sampled_at"]
    assert first.samples.drop_columns(drop).equals(second.samples.drop_columns(drop))
    assert second.devices.num_rows == second.events.num_rows == 0


def test_every_text_of_the_folder_is_among_the_tested(test_data: Path) -> None:
    assert {path.stem for path in (test_data / "exposition").glob("*.prom")} <= set(FILES)


@pytest.mark.parametrize(
    ("name", "unknown_count"), [("07_", 124), ("09_", 4), ("11_", 7), ("13_", 5)]
)
def test_texts_of_other_exporters_are_counted_as_unknown(
    test_data: Path, name: str, unknown_count: int
) -> None:
    scrape = read(test_data, name)
    assert (scrape.samples.num_rows, scrape.unknown_metric_count) == (0, unknown_count)


def test_timestamps_of_lines_are_kept(test_data: Path) -> None:
    path = test_data / "exposition" / "09_ascend_910A_real_docs.prom"
    samples = ExpositionParser().parse(path.read_bytes()).samples
    assert [sample[3] for sample in samples[2:4]] == [1_723_621_883_587, 1_723_621_883_932]
