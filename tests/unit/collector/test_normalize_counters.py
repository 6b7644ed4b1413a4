"""Rates and ratios that are made of counters, scrape by scrape."""

from __future__ import annotations

from datetime import timedelta

import pytest

from collector.normalize import NormalizedScrape
from tests.support.exposition_texts import GPU, Exporter, cells, events, instance, line

ELAPSED = "DCGM_FI_PROF_SM_CYCLES_ELAPSED_TOTAL"
ACTIVE = "DCGM_FI_PROF_SM_CYCLES_ACTIVE_TOTAL"
SENT = "DCGM_FI_PROF_PCIE_TX_BYTES_TOTAL"
XGMI = {"gpu_id": "0", "gpu_uuid": "u-1", "hostname": "n1"}


def cycles(active: float, elapsed: float, labels: dict[str, str] = GPU) -> tuple[str, str]:
    return line(ACTIVE, active, labels), line(ELAPSED, elapsed, labels)


def active_of(scrape: NormalizedScrape) -> float | None:
    ((ratio,),) = cells(scrape, "sm_active_ratio")
    return None if ratio is None else float(ratio)


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        pytest.param((1_800, 2_000), 0.8, id="grown"),
        pytest.param((1_000, 2_000), 0.0, id="zero is a measured zero"),
        pytest.param((2_290, 2_000), 1.0, id="a little above 1 is 1"),
        pytest.param((9_000, 2_000), None, id="more than a ratio can be"),
        pytest.param((10, 2_000), None, id="restart of one"),
        pytest.param((10, 20), None, id="restart of both"),
        pytest.param((float("nan"), 2_000), None, id="no count"),
        pytest.param((1.8446744073709552e19, 2_000), None, id="sentinel"),
    ],
)
def test_cycles_over_elapsed_cycles_are_a_ratio(
    second: tuple[float, float], expected: float | None
) -> None:
    exporter = Exporter()
    assert active_of(exporter.scrape(*cycles(1_000, 1_000))) is None, "first sight"
    found = active_of(exporter.scrape(*cycles(*second)))
    assert found == (None if expected is None else pytest.approx(expected))


def test_gauge_wins_over_the_counter() -> None:
    exporter = Exporter()
    gauge = line("DCGM_FI_PROF_SM_ACTIVE", 0.5)
    exporter.scrape(gauge, *cycles(1_000, 1_000))
    assert active_of(exporter.scrape(gauge, *cycles(1_800, 2_000))) == 0.5


def test_reading_shown_again_repeats_its_ratio_and_a_standstill_ends_it() -> None:
    exporter = Exporter()
    shown = [
        active_of(exporter.scrape(*cycles(*counts)))
        for counts in ((1_000, 1_000), (1_800, 2_000), (1_800, 2_000), (2_000, 3_000))
    ]
    assert shown == [None, 0.8, 0.8, 0.2]
    later = [active_of(exporter.scrape(*cycles(2_000, 3_000))) for _ in range(5)]
    assert later == [0.2, 0.2, 0.2, None, None]


def test_exporter_s_cache_between_scrapes_is_no_loss_of_profiling() -> None:
    exporter = Exporter()
    for number in range(12):
        step = number // 4
        scrape = exporter.scrape(*cycles(800 * step, 1_000 * step), after=timedelta(seconds=5))
        assert events(scrape) == []


def test_long_gap_gives_nothing() -> None:
    exporter = Exporter()
    exporter.scrape(*cycles(1_000, 1_000))
    late = exporter.scrape(*cycles(1_800, 2_000), after=timedelta(minutes=10, seconds=1))
    assert active_of(late) is None
    assert active_of(exporter.scrape(*cycles(2_600, 3_000))) == 0.8


def test_bytes_per_second_of_the_board_whatever_the_instances() -> None:
    exporter = Exporter()
    scrapes = [
        exporter.scrape(*(line(SENT, sent + n, instance(n)) for n in (7, 9)))
        for sent in (1_000, 16_000)
    ]
    assert cells(scrapes[-1], "instance_id", "pcie_transmit_bytes_per_s") == [(None, 1_000.0)]


def test_cycles_of_a_divided_board_itself_are_its_instances() -> None:
    exporter = Exporter()
    scrapes = [
        exporter.scrape(*cycles(active, elapsed, instance(7)), *cycles(active / 10, elapsed))
        for active, elapsed in ((0, 0), (500, 1_000))
    ]
    assert cells(scrapes[-1], "instance_id", "sm_active_ratio") == [(None, None), (7, 0.5)]


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        pytest.param((300, 300, 600), 60_000.0, id="links and directions add up"),
        pytest.param((300, 300, 0), None, id="a direction that restarted: no half sum"),
    ],
)
def test_links_of_amd_are_a_rate(second: tuple[int, ...], expected: float | None) -> None:
    def links(counts: tuple[int, ...]) -> list[str]:
        first, other, sent = counts
        return [
            line("amd_gpu_xgmi_link_rx", first, XGMI | {"link_index": "1"}),
            line("amd_gpu_xgmi_link_rx", other, XGMI | {"link_index": "2"}),
            line("amd_gpu_xgmi_link_tx", sent, XGMI | {"link_index": "1"}),
        ]

    exporter = Exporter()
    exporter.scrape(*links((100, 100, 100)))
    assert cells(exporter.scrape(*links(second)), "nvlink_bytes_per_s") == [(expected,)]
