"""The reports on the public openb trace, against its published and recomputed figures."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from analytics.bookkeeping import keep_books
from analytics.reports.catalogue import REPORTS
from analytics.reports.model import Question, Report
from tests.support.analytics_openb import openb_frames

CENT = 0.005


def report(name: str, folder: Path, pods: str = "openb_pod_list_default.csv") -> Report:
    frames, period = openb_frames(folder / "traces" / "openb", pods)
    definition = REPORTS[name]
    return definition.build(
        {query: frames[query] for query in definition.inputs}, Question(period=period)
    )


def figures(found: Report) -> dict[str, object]:
    return {each.key: each.value for each in found.figures}


def frame(found: Report, key: str) -> pl.DataFrame:
    return next(each.frame for each in found.tables if each.key == key)


def test_inventory(test_data: Path) -> None:
    found = report("inventory", test_data)
    assert figures(found)["node_count"] == 1213
    assert figures(found)["gpu_count"] == 6212
    assert figures(found)["cpu_core_count"] == 107_018
    assert frame(found, "models").select("model", "gpu_count").rows() == [
        ("G2", 4392),
        ("T4", 842),
        ("G3", 312),
        ("P100", 265),
        ("V100M32", 204),
        ("V100M16", 195),
        ("A10", 2),
    ]


PLAIN = ("attempt_count", "never_scheduled_count", "mean_wait_s", "p50_wait_s", "p75_wait_s",
         "p90_wait_s", "p95_wait_s", "p99_wait_s", "max_wait_s", "over_60_s_count",
         "over_600_s_count")  # fmt: skip
WAITS = {
    ("waits", "all work"): (8152, 897, 61.30, 2, 35, 106, 241, 889.64, 14330, 1130, 115),
    ("waits", "work with GPUs"): (7064, 861, 69.95, 2, 35, 139, 276.9, 1108.8, 14330, 1129, 115),
    ("waits_by_qos_class", "LS"): (4647, 454, 70.37, 3, 36, 107, 241.4, 837.2, 14330, 671, 66),
    ("waits_by_qos_class", "BE"): (3398, 441, 50.17, 0, 5, 103, 241, 1000.4, 4492, 455, 48),
    ("waits_by_qos_class", "Burstable"): (100, 2, 12.94, 0, 1, 1, 1.15, 418.3, 623, 4, 1),
    ("waits_by_qos_class", "Guaranteed"): (7, 0, 5.00, 0, 1, 13.8, 23.4, 31.1, 33, 0, 0),
}


def test_waits(test_data: Path) -> None:
    found = report("queue", test_data)
    for (table, group), expected in WAITS.items():
        rows = frame(found, table)
        row = rows.filter(pl.col(rows.columns[0]) == group).select(PLAIN).row(0)
        assert row == pytest.approx(expected, abs=0.06), group


def test_headline_waits(test_data: Path) -> None:
    said = figures(report("queue", test_data))
    assert said["wait_mean_s"] == pytest.approx(61.30, abs=CENT)
    assert said["wait_p99_s"] == pytest.approx(889.64, abs=CENT)
    assert [said[f"wait_p{q}_s"] for q in (50, 90, 95)] == [2, 106, 241]
    assert [said[f"km_wait_p{q}_s"] for q in (50, 90, 95, 99)] == [3, 278, 596, 3069]
    assert said["never_scheduled_count"] == 897


def test_share_that_did_not_wait(test_data: Path) -> None:
    rows = frame(report("queue", test_data), "waits")
    served = pl.col("attempt_count") - pl.col("never_scheduled_count")
    zero = rows.select(pl.col("zero_wait_count") / served * 100).to_series().to_list()
    assert zero == pytest.approx([28.2, 31.0], abs=0.05)


def test_kaplan_meier_of_gpu_work(test_data: Path) -> None:
    rows = frame(report("queue", test_data), "waits").filter(pl.col("scope") == "work with GPUs")
    assert rows.select("km_p75_wait_s", "km_p90_wait_s", "km_p95_wait_s").row(0) == (69, 313, 667)


SIZES = {
    "no GPU": (1088, 36, 10.31, 3, 35, 36),
    "part of a GPU": (3078, 505, 64.88, 1, 140, 309),
    "1 GPU": (3911, 355, 74.40, 2, 137, 245),
    "2 or more GPUs": (75, 1, 32.26, 0, 32.7, 81),
}


def test_waits_by_size(test_data: Path) -> None:
    rows = frame(report("queue", test_data), "waits_by_size_class")
    columns = ("attempt_count", "never_scheduled_count", "mean_wait_s", "p50_wait_s", "p90_wait_s",
               "p95_wait_s")  # fmt: skip
    for size, expected in SIZES.items():
        row = rows.filter(pl.col("size_class") == size).select(columns).row(0)
        assert row == pytest.approx(expected, abs=0.5), size
        assert row[2] == pytest.approx(expected[2], abs=CENT)


def test_gpu_hours(test_data: Path) -> None:
    found = report("queue", test_data)
    assert figures(found)["requested_gpu_hours"] == pytest.approx(51_470.67, abs=CENT)
    by_qos = frame(found, "gpu_hours_by_qos_class").select("qos_class", "gpu_hours", "share_ratio")
    assert dict(by_qos.select("qos_class", "gpu_hours").iter_rows()) == pytest.approx(
        {"LS": 41_413.36, "Burstable": 7_459.20, "BE": 1_311.64, "Guaranteed": 1_286.48}, abs=CENT
    )
    assert [share * 100 for share in by_qos["share_ratio"]] == pytest.approx(
        [80.46, 14.49, 2.55, 2.50], abs=CENT
    )
    by_size = frame(found, "gpu_hours_by_size_class").select("size_class", "gpu_hours")
    assert dict(by_size.iter_rows()) == pytest.approx(
        {"1 GPU": 36_769.70, "2 or more GPUs": 7_623.49, "part of a GPU": 7_077.49, "no GPU": 0},
        abs=CENT,
    )


EMPTY_CLUSTER = {
    "openb_pod_list_default.csv": (35, 866_232.55, 13.945),
    "openb_pod_list_gpuspec10.csv.gz": (74, 1_179_977.5, 18.995),
    "openb_pod_list_gpuspec33.csv": (127, 2_204_453.3, 35.487),
    "openb_pod_list_gpushare100.csv.gz": (21, 847_450.9, 13.642),
    "openb_pod_list_multigpu50.csv.gz": (43, 915_078.3, 14.731),
    "openb_pod_list_cpu250.csv.gz": (34, 1_607_291.1, 25.874),
    "openb_pod_list_cpu050.csv.gz": (35, 344_952.2, 5.553),
}


@pytest.mark.parametrize("pods", EMPTY_CLUSTER)
def test_fragmentation_of_the_empty_cluster(test_data: Path, pods: str) -> None:
    shape_count, fragment_milli, percent = EMPTY_CLUSTER[pods]
    found = report("fragmentation", test_data, pods)
    said = figures(found)
    assert frame(found, "target").height == shape_count
    assert said["fragment_milli"] == pytest.approx(fragment_milli, abs=0.06)
    assert said["fragmentation_ratio"] == pytest.approx(percent / 100, abs=5.1e-6)
    assert said["fragmentation_of_total_ratio"] == said["fragmentation_ratio"]
    assert said["idle_milli"] == 6_212_000


def test_default_split_by_category(test_data: Path) -> None:
    split = dict(
        frame(report("fragmentation", test_data), "categories")
        .select("category", "idle_milli")
        .iter_rows()
    )
    assert split == pytest.approx(
        {"xl_satisfied": 831_170, "q4_lack_cpu": 21_540, "xr_lack_cpu": 13_530,
         "q3_satisfied": 5_345_770, "q1_lack_both": 0, "q2_lack_gpu": 0, "no_access": 0},
        abs=6,
    )  # fmt: skip


def test_model_constraints_dominate_where_they_exist(test_data: Path) -> None:
    found = report("fragmentation", test_data, "openb_pod_list_gpuspec33.csv")
    split = dict(frame(found, "categories").select("category", "idle_milli").iter_rows())
    assert split["no_access"] == pytest.approx(1_318_316.86, abs=CENT)


def test_health_is_honest_about_a_trace_without_telemetry(test_data: Path) -> None:
    frames, period = openb_frames(test_data / "traces" / "openb", "openb_pod_list_default.csv")
    books = keep_books(frames, period)
    kept = {"ledger": books.rows, "rest": books.rest, "ledger_caveat": books.caveats}
    found = REPORTS["health"].build({**frames, **kept}, Question(period=period))
    said = figures(found)
    assert said["effective_ratio"] is None
    assert said["allocated_idle_gpu_hours"] is None
    assert said["never_scheduled_count"] == 897
    assert any("No holder is recorded" in text for text in found.findings)
