"""dcgm-exporter's lanes, second choices, shares of a device and claims."""

from __future__ import annotations

from itertools import permutations

import pytest

from collector.holdings import Holding, HoldingSource
from collector.normalize.alternatives import Alternatives
from tests.support.exposition_texts import (
    GPU,
    NOON,
    OTHER_GPU,
    Exporter,
    cells,
    instance,
    line,
    pod,
    scrape_once,
)

UTIL = "DCGM_FI_DEV_GPU_UTIL"
LANE = "DCGM_FI_DEV_NVLINK_THROUGHPUT_L{}_BYTES_PER_SECOND"
OLD_LANE = "DCGM_FI_DEV_NVLINK_BANDWIDTH_L{}"
NOT_SUPPORTED = 9223372036854775794
BLANK = 9223372036854775792


@pytest.mark.parametrize(
    ("values", "stored"),
    [
        pytest.param((5, 7), (12.0, None), id="all lanes"),
        pytest.param((0, 0), (0.0, None), id="zeros"),
        pytest.param((5, NOT_SUPPORTED), (5.0, None), id="a lane the board lacks"),
        pytest.param((5, BLANK), (None, "nvlink_bytes_per_s=blank"), id="a lane that failed"),
        pytest.param(
            (NOT_SUPPORTED, NOT_SUPPORTED),
            (None, "nvlink_bytes_per_s=not_supported"),
            id="no lanes at all",
        ),
    ],
)
def test_lanes_add_up(values: tuple[int, int], stored: tuple[float | None, str | None]) -> None:
    scrape = scrape_once(*(line(LANE.format(n), value) for n, value in enumerate(values)))
    assert cells(scrape, "nvlink_bytes_per_s", "absences") == [stored]


def test_total_of_all_lanes_wins_over_the_sum_whatever_the_order() -> None:
    lines = [line(LANE.format(0), 5), line("DCGM_FI_DEV_NVLINK_THROUGHPUT_BYTES_PER_SECOND", 9)]
    for order in (lines, lines[::-1]):
        assert cells(scrape_once(*order), "nvlink_bytes_per_s") == [(9.0,)]


def test_the_sum_of_lanes_is_the_same_in_whatever_order_they_come() -> None:
    lines = [line(LANE.format(n), value) for n, value in enumerate((0.1, 0.2, 0.3, 1e16))]
    sums = {
        value
        for order in permutations(lines)
        for (value,) in cells(scrape_once(*order), "nvlink_bytes_per_s")
    }
    assert len(sums) == 1


def test_lanes_of_two_generations_are_not_added() -> None:
    scrape = scrape_once(line(LANE.format(0), 2_048_000), line(OLD_LANE.format(0), 2))
    assert cells(scrape, "nvlink_bytes_per_s") == [(2_048_000.0,)]


def test_lane_repeated_for_each_instance_counts_once() -> None:
    scrape = scrape_once(*(line(LANE.format(0), 5, instance(n)) for n in (7, 9)))
    assert cells(scrape, "instance_id", "nvlink_bytes_per_s") == [(None, 5.0)]
    assert scrape.duplicate_count == 0


def test_link_rows_name_their_gpu_and_add_up() -> None:
    links = [{"nvlink": str(n), "gpu_uuid": "GPU-a", "model_name": "H100"} for n in range(3)]
    scrape = scrape_once(*(line("DCGM_FI_PROF_NVLINK_TX_BYTES", 4, link) for link in links))
    assert cells(scrape, "device_uuid", "nvlink_bytes_per_s") == [("GPU-a", 12.0)]


def test_directions_of_the_links_add_up() -> None:
    scrape = scrape_once(
        line("DCGM_FI_PROF_NVLINK_TX_BYTES", 4), line("DCGM_FI_PROF_NVLINK_RX_BYTES", 5)
    )
    assert cells(scrape, "nvlink_bytes_per_s") == [(9.0,)]


@pytest.mark.parametrize(
    ("first", "second", "column"),
    [
        ("DCGM_FI_DEV_ENFORCED_POWER_LIMIT", "DCGM_FI_DEV_POWER_MGMT_LIMIT", "power_limit_w"),
        ("DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_POWER_USAGE_INSTANT", "power_w"),
        ("DCGM_FI_DEV_ECC_DBE_AGG_TOTAL", "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "ecc_uncorrected_count"),
    ],
)
def test_second_choice_fills_in(first: str, second: str, column: str) -> None:
    assert cells(scrape_once(line(second, 7), line(first, 5)), column) == [(5,)]
    scrape = scrape_once(line(second, 7), line(first, BLANK))
    assert cells(scrape, column, "absences") == [(7, None)]


def test_second_choice_repeated_for_each_pod_is_one_value_and_counted() -> None:
    name = "DCGM_FI_DEV_POWER_USAGE_INSTANT"
    scrape = scrape_once(line(name, 7, GPU | pod("a")), line(name, 8, GPU | pod("b")))
    assert cells(scrape, "power_w") == [(8.0,)]
    assert (scrape.duplicate_count, scrape.conflict_count) == (1, 1)


@pytest.mark.parametrize("bits", [0x0, 0x1, 0x4 | 0x40, 0x100])
def test_reasons_of_the_clocks_are_kept_as_bits(bits: int) -> None:
    scrape = scrape_once(line("DCGM_FI_DEV_CLOCKS_EVENT_REASONS", bits))
    assert cells(scrape, "clock_event_reason_bits") == [(bits,)]


@pytest.mark.parametrize("replica", ["2", "GPU-a::2"])
def test_share_of_a_device_is_a_replica(replica: str) -> None:
    scrape = scrape_once(line(UTIL, 5, GPU | pod("p") | {"vgpu": replica}))
    assert scrape.holdings == (
        Holding(
            node="n1",
            device_uuid="GPU-a",
            instance_id=None,
            replica=2,
            namespace="team",
            pod="p",
            container="main",
            claim=None,
            resource=None,
            source=HoldingSource.EXPORTER_LABEL,
        ),
    )


def test_claim_of_dynamic_resource_allocation_is_named() -> None:
    dra = {"dra_claim_name": "c-1", "dra_claim_namespace": "team", "dra_pool_name": "n1"}
    scrape = scrape_once(
        line("DCGM_FI_PROF_GR_ENGINE_ACTIVE", 0.5, instance(3) | pod("p") | dra),
        line(UTIL, 5, OTHER_GPU | pod("", namespace="", container="") | dra),
    )
    assert [(one.instance_id, one.claim, one.pod) for one in scrape.holdings] == [
        (3, "team/c-1", "p")
    ]


def test_device_row_and_rows_per_pod_of_one_measure_do_not_add_up() -> None:
    scrape = scrape_once(
        line(UTIL, 70),
        line(UTIL, 40, GPU | pod("a")),
        line(UTIL, 30, GPU | pod("b")),
        line("DCGM_FI_DEV_FB_USED", 700),
        line("DCGM_FI_DEV_FB_USED", 400, GPU | pod("a")),
        line("DCGM_FI_DEV_FB_USED", 300, GPU | pod("b")),
    )
    assert cells(scrape, "busy_ratio", "memory_used_bytes", "pod") == [(0.7, 700 * 2**20, None)]
    assert [one.pod for one in scrape.holdings] == ["a", "b"]


def test_uid_of_the_holder_is_kept_where_it_is_told() -> None:
    scrape = scrape_once(line(UTIL, 5, GPU | pod("p") | {"pod_uid": "u-1"}))
    assert [one.pod_uid for one in scrape.holdings] == ["u-1"]


def test_profile_of_a_claim_without_an_instance_is_not_the_board_s() -> None:
    scrape = scrape_once(line(UTIL, 5, GPU | {"dra_mig_profile": "1g.5gb"}))
    assert [row["mig_profile"] for row in scrape.devices.to_pylist()] == [None]
    named = scrape_once(line(UTIL, 5, GPU | {"dra_mig_profile": "1g.5gb", "GPU_I_ID": "3"}))
    profiles = {row["instance_id"]: row["mig_profile"] for row in named.devices.to_pylist()}
    assert profiles == {None: None, 3: "1g.5gb"}


def test_same_holder_on_every_measure_is_one_holding() -> None:
    exporter = Exporter()
    for _ in range(2):
        scrape = exporter.scrape(
            *(line(name, 5, GPU | pod("p")) for name in (UTIL, "DCGM_FI_DEV_GPU_TEMP"))
        )
        assert [one.pod for one in scrape.holdings] == ["p"]
    gone = exporter.scrape(line(UTIL, 5))
    assert gone.holdings == ()


def test_processes_of_a_scrape_carry_its_time() -> None:
    labels = {"uuid": "GPU-a", "pid": "7", "process_name": "x"}
    scrape = scrape_once(line("nvidia_smi_compute_app_used_memory_bytes", 5, labels))
    (row,) = scrape.processes.to_pylist()
    assert (row["sampled_at"], row["process"], row["sm_ratio"]) == (NOON, "x", None)
    assert [name for name, _ in scrape.batches()] == ["device", "device_process"]


def test_nothing_to_settle_is_nothing() -> None:
    waiting = Alternatives()
    waiting.settle()
    assert (waiting.duplicate_count, waiting.clamped_count, waiting.conflict_count) == (0, 0, 0)
