"""Room for gangs within a rack or NVLink domain, and quota that is not there in whole nodes."""

from __future__ import annotations

import polars as pl
import pytest

from analytics.fragmentation import free_nodes, stranded_reasons
from analytics.gangs import SLOT_CPU_MILLI, cells_behind_quota, largest_gangs, topology_gap
from tests.support.governance_rows import Row, told


def nodes(*given: tuple[str, int, str | None], cpu_milli: float | None = 1e6) -> pl.DataFrame:
    """Nodes by name, whole idle GPUs and rack; each has eight GPUs."""
    return pl.DataFrame(
        {
            "cluster": ["c"] * len(given),
            "node": [name for name, _, _ in given],
            "gpu_model": ["H100"] * len(given),
            "gpu_count": [8] * len(given),
            "whole_idle_count": [idle for _, idle, _ in given],
            "cpu_free_milli": [cpu_milli] * len(given),
            "rack": [rack for _, _, rack in given],
            "nvlink_domain": [None] * len(given),
        },
        schema_overrides={
            "whole_idle_count": pl.Int64, "gpu_count": pl.Int64, "rack": pl.String,
            "nvlink_domain": pl.String, "cpu_free_milli": pl.Float64,
        },
    )  # fmt: skip


RACKS = nodes(("n1", 7, "r1"), ("n2", 4, "r1"), ("n3", 8, "r2"), ("n4", 8, None))


@pytest.mark.parametrize(
    ("place", "size", "gpus", "where", "unknown"),
    [
        ("node", 8, 8, "n3", 0),
        ("node", 4, 8, "n3", 0),
        ("rack", 1, 11, "r1", 1),
        ("rack", 4, 8, "r1", 1),
        ("rack", 8, 8, "r2", 1),
        ("cluster", 8, 16, "c", 0),
        ("cluster", 1, 27, "c", 0),
        ("nvlink_domain", 1, None, None, 4),
    ],
)
def test_largest_gang_within_a_place(
    place: str, size: int, gpus: int | None, where: str | None, unknown: int
) -> None:
    (row,) = largest_gangs(RACKS, sizes=[size], places=[place]).rows(named=True)
    assert (row["largest_gang_gpu_count"], row["largest_place"]) == (gpus, where)
    assert row["unknown_node_count"] == unknown


def test_nothing_idle_is_zero_and_has_no_place() -> None:
    (row,) = largest_gangs(nodes(("n1", 0, "r1")), sizes=[1], places=["rack"]).rows(named=True)
    assert (row["largest_gang_gpu_count"], row["largest_place"]) == (0, None)


def test_racks_of_one_name_in_two_clusters_are_two() -> None:
    two = pl.concat(
        [nodes(("n1", 4, "r1")), nodes(("n1", 4, "r1")).with_columns(cluster=pl.lit("d"))]
    )
    assert largest_gangs(two, sizes=[4], places=["rack"])["largest_gang_gpu_count"].to_list() == [4]


@pytest.mark.parametrize(
    ("total", "across", "within", "gap"),
    [(8, 2, 2, 0), (16, 1, 0, 1), (19, 1, 0, 1), (20, 0, 0, 0)],
)
def test_gangs_across_and_within(total: int, across: int, within: int, gap: int) -> None:
    (row,) = topology_gap(RACKS, place="rack", totals=[total]).rows(named=True)
    assert (row["across_count"], row["within_count"], row["gap_count"]) == (across, within, gap)


def test_place_untold_is_unknown_not_zero() -> None:
    (row,) = topology_gap(RACKS, place="nvlink_domain", totals=[8]).rows(named=True)
    assert (row["across_count"], row["within_count"], row["gap_count"]) == (None, None, None)


@pytest.mark.parametrize(
    ("cpu_milli", "gangs"),
    [
        (8 * SLOT_CPU_MILLI - 1, 0),
        (8 * SLOT_CPU_MILLI, 1),
        (8 * SLOT_CPU_MILLI + 1, 1),
        (0, 0),
        (None, None),
    ],
)
def test_gangs_need_processors(cpu_milli: float | None, gangs: int | None) -> None:
    one = nodes(("n1", 8, "r1"), cpu_milli=cpu_milli)
    (row,) = topology_gap(one, place="rack", totals=[8]).rows(named=True)
    assert row["within_count"] == gangs


@pytest.mark.parametrize(
    ("quota", "short"),
    [
        pytest.param({"used_gpu_count": 1.0}, None, id="seven left: less than a node"),
        pytest.param({"used_gpu_count": 0.0}, False, id="eight left, one node idle"),
        pytest.param({"guaranteed_gpu_count": 15.0}, False, id="fifteen left: still one node"),
        pytest.param({"guaranteed_gpu_count": 16.0}, True, id="sixteen left, one node idle"),
        pytest.param({"guaranteed_gpu_count": None}, None, id="guarantee unknown"),
        pytest.param({"used_gpu_count": None}, None, id="use unknown"),
        pytest.param({"used_gpu_count": 9.0}, None, id="beyond the guarantee"),
        pytest.param({"gpu_model": None}, None, id="quota of no model"),
        pytest.param({"gpu_model": "T4", "guaranteed_gpu_count": 99.0}, None, id="no such node"),
    ],
)
def test_quota_that_is_not_there_in_whole_nodes(quota: Row, short: bool | None) -> None:
    free = nodes(("n1", 8, "r1"), ("n2", 7, "r1"), ("n3", 4, "r2"))
    found = cells_behind_quota(free, told("quota_use", quota))
    assert found["is_short"].to_list() == ([] if short is None else [short])


def test_models_are_one_however_labels_write_them() -> None:
    free = nodes(("n1", 0, "r1")).with_columns(gpu_model=pl.lit("NVIDIA H100 80GB"))
    found = cells_behind_quota(free, told("quota_use", {"gpu_model": "NVIDIA-H100-80GB"}))
    assert found["is_short"].to_list() == [True]


def test_a_node_with_a_lost_gpu_is_no_whole_node() -> None:
    free = nodes(("n1", 7, "r1"), ("n2", 0, "r1")).with_columns(
        gpu_count=pl.Series([7, 8], dtype=pl.Int64)
    )
    found = cells_behind_quota(free, told("quota_use", {}))
    assert found.select("cells_of_quota_count", "cells_free_count").rows() == [(1, 0)]


def shape(cpu: int, milli: int, count: int, models: str = "") -> dict[str, object]:
    return {"cpu_milli": cpu, "gpu_milli": milli, "gpu_count": count, "gpu_models": models,
            "share_ratio": 1.0}  # fmt: skip


@pytest.mark.parametrize(
    ("shapes", "reason"),
    [
        pytest.param([shape(1_000, 1_000, 1)], None, id="fits exactly"),
        pytest.param([shape(1_001, 1_000, 1)], "cpu", id="lacks CPU"),
        pytest.param([shape(0, 1_000, 3)], "pieces", id="too few GPUs"),
        pytest.param([shape(0, 1_000, 1, "A10")], "model", id="another model"),
        pytest.param([shape(9_999, 1_000, 3)], "pieces", id="lacks both"),
        pytest.param([shape(9_999, 1_000, 9), shape(0, 500, 1)], None, id="one of two fits"),
        pytest.param([shape(9_999, 1_000, 1), shape(0, 1_000, 9)], "cpu", id="CPU is nearest"),
        pytest.param([shape(0, 0, 0)], None, id="no shape needs a GPU"),
    ],
)
def test_why_idle_gpus_are_of_no_use(shapes: list[dict[str, object]], reason: str | None) -> None:
    idle = pl.DataFrame(
        {"cpu_free_milli": [1_000.0], "gpu_free_milli": [[1000.0, 1000.0]], "gpu_model": ["T4"]}
    )
    assert stranded_reasons(free_nodes(idle), pl.DataFrame(shapes)) == [reason]


def test_a_full_node_strands_nothing() -> None:
    full = pl.DataFrame(
        {"cpu_free_milli": [0.0], "gpu_free_milli": [[0.0, 0.0]], "gpu_model": ["T4"]}
    )
    assert stranded_reasons(free_nodes(full), pl.DataFrame([shape(1, 1_000, 1)])) == [None]
