"""What exporters are known to do wrong from scrape to scrape, by the number of the report."""

from __future__ import annotations

from datetime import timedelta

import polars as pl
import pytest

from analytics.tiers import TIER_APPARENT, with_readings
from collector.normalize import DeviceClaims, NormalizedScrape, NormalizeState
from tests.support.exposition_texts import (
    GPU,
    OTHER_GPU,
    Exporter,
    cells,
    events,
    instance,
    line,
    pod,
    scrape_once,
)

UTIL = "DCGM_FI_DEV_GPU_UTIL"
SM = "DCGM_FI_PROF_SM_ACTIVE"
GR = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
TENSOR = "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"
XID = "DCGM_FI_DEV_XID_ERRORS"
BLANK = 140737488355328


def readings(scrape: NormalizedScrape) -> list[tuple[int | None, float | None]]:
    """Tier and effective utilisation that analytics sees in the scrape's rows."""
    frame = with_readings(pl.from_arrow(scrape.samples))  # type: ignore[arg-type] # - a table
    return frame.select("tier", "effective_ratio").rows()


def test_fault_06_profiling_lost_after_an_xid_is_unknown_not_zero_and_an_event() -> None:
    exporter = Exporter()
    exporter.scrape(line(SM, 0.9), line(UTIL, 97), line(XID, 0))
    told = []
    for _ in range(3):
        scrape = exporter.scrape(line(UTIL, 97), line(XID, 31))
        assert cells(scrape, "sm_active_ratio", "busy_ratio") == [(None, 0.97)]
        assert readings(scrape) == [(TIER_APPARENT, None)]
        told.append(events(scrape))
    assert told == [[("xid", 31, "GPU-a")], [("profiling_lost", None, "GPU-a")], []]
    back = exporter.scrape(line(SM, 0.9), line(UTIL, 97), line(XID, 31))
    assert events(back) == [("profiling_returned", None, "GPU-a")]


@pytest.mark.parametrize("lost", [[], [line(SM, BLANK)], [line(SM, "NaN")]])
def test_fault_06_one_scrape_without_profiling_is_no_event(lost: list[str]) -> None:
    exporter, there = Exporter(), [line(SM, 0.9), line(UTIL, 97)]
    for lines in (there, [*lost, line(UTIL, 97)], there, [*lost, line(UTIL, 97)], there):
        assert events(exporter.scrape(*lines)) == []


def test_fault_06_names_the_measures_that_stay_away() -> None:
    exporter = Exporter()
    exporter.scrape(line(SM, 0.9), line(TENSOR, 0.5), line(GR, 1.0))
    exporter.scrape(line(SM, BLANK), line(TENSOR, BLANK), line(GR, 1.0))
    scrape = exporter.scrape(line(SM, BLANK), line(TENSOR, BLANK), line(GR, 1.0))
    assert [row["detail"] for row in scrape.events.to_pylist()] == [
        "without a value in 2 scrapes: sm_active_ratio, tensor_active_ratio"
    ]


def test_fault_06_division_of_a_board_is_no_loss_of_its_profiling() -> None:
    exporter = Exporter()
    exporter.scrape(line(GR, 0.9), line(UTIL, 97))
    for _ in range(3):
        scrape = exporter.scrape(line(GR, 0.9, instance(1)), line(UTIL, 97))
        assert "profiling_lost" not in {kind for kind, _, _ in events(scrape)}


def test_fault_25_localhost_and_a_later_name_are_one_node_of_the_target() -> None:
    exporter = Exporter("http://localhost:9400/metrics")
    nameless = {"gpu": "0", "UUID": "GPU-a", "instance": "10.0.0.5:9400"}
    for labels in (
        nameless | {"Hostname": "localhost"},
        nameless | {"hostname": "n1"},
        nameless | {"Hostname": "localhost"},
    ):
        assert cells(exporter.scrape(line(UTIL, 5, labels)), "node") == [("10.0.0.5",)]


@pytest.mark.parametrize("host", [{"Hostname": "localhost"}, {"hostname": "other"}, {}])
def test_fault_25_node_of_the_target_wins_over_labels(host: dict[str, str]) -> None:
    exporter = Exporter(state=NormalizeState(node="worker-7"))
    scrape = exporter.scrape(
        line(UTIL, 5, {"gpu": "0", "UUID": "GPU-a"} | host),
        line(UTIL, 7, {"gpu": "1"} | host),
    )
    assert cells(scrape, "node", "device_uuid") == [
        ("worker-7", "GPU-a"),
        ("worker-7", "worker-7/1"),
    ]


def test_fault_25_renamed_hostname_label_is_the_same_node() -> None:
    exporter = Exporter()
    before = exporter.scrape(line(UTIL, 5, {"UUID": "GPU-a", "Hostname": "n1"}))
    after = exporter.scrape(line(UTIL, 5, {"UUID": "GPU-a", "hostname": "n1"}))
    assert cells(before, "node") == cells(after, "node") == [("n1",)]
    assert after.devices.num_rows == 0


@pytest.mark.parametrize(
    ("labels", "holder"),
    [
        pytest.param(pod("gpu-agent-x7"), None, id="own pod by its name"),
        pytest.param(
            pod("gpu-agent-x7") | {"exported_pod": "p", "exported_namespace": "team"},
            "p",
            id="beside the tenant",
        ),
        pytest.param(pod("gpu-agent-x8"), "gpu-agent-x8", id="another pod"),
    ],
)
def test_fault_18_pod_that_discovery_knows_as_the_exporter_s_holds_nothing(
    labels: dict[str, str], holder: str | None
) -> None:
    exporter = Exporter(state=NormalizeState(own_pod="gpu-agent-x7"))
    scrape = exporter.scrape(line(UTIL, 5, GPU | labels))
    assert cells(scrape, "pod") == [(holder,)]
    assert [one.pod for one in scrape.holdings] == ([] if holder is None else [holder])


def test_fault_27_sticky_xid_is_an_event_only_when_it_changes() -> None:
    exporter = Exporter()
    shown = [events(exporter.scrape(line(XID, code))) for code in (31, 31, 31, 43, 31)]
    assert shown == [
        [("xid", 31, "GPU-a")],
        [],
        [],
        [("xid", 43, "GPU-a")],
        [("xid", 31, "GPU-a")],
    ]


@pytest.mark.parametrize("name", ["DCGM_EXP_XID_ERRORS_COUNT", "DCGM_EXP_XID_ERRORS_TOTAL"])
def test_fault_27_counted_xids_are_events_each_time_and_the_gauge_adds_none(name: str) -> None:
    exporter = Exporter()
    exporter.scrape(line(UTIL, 5), line(XID, 0))
    labels = GPU | {"xid": "31"}
    shown = [
        events(exporter.scrape(line(XID, 31), *([line(name, count, labels)] if count else [])))
        for count in (1, 1, 2, 1, 0, 1)
    ]
    once = [("xid", 31, "GPU-a")]
    assert shown == [once, [], once, [], [], once]


def test_fault_28_lost_device_is_an_event_and_the_others_go_on() -> None:
    exporter = Exporter()
    both = (line(UTIL, 5), line(UTIL, 7, OTHER_GPU))
    exporter.scrape(*both)
    assert events(exporter.scrape(both[1])) == []
    lost = exporter.scrape(both[1])
    assert events(lost) == [("lost", None, "GPU-a")]
    assert [(r["device_uuid"], r["is_present"]) for r in lost.devices.to_pylist()] == [
        ("GPU-a", False)
    ]
    assert cells(lost, "device_uuid", "busy_ratio") == [("GPU-b", 0.07)]
    assert events(exporter.scrape(both[1])) == []
    assert events(exporter.scrape(*both)) == [("returned", None, "GPU-a")]


def test_fault_44_two_exporters_in_one_text_are_one_device() -> None:
    scrape = scrape_once(
        line(UTIL, 5, GPU | {"instance": "10.0.0.5:9400"}),
        line(UTIL, 5, GPU | {"instance": "10.0.0.6:9400"}),
    )
    assert cells(scrape, "device_uuid", "busy_ratio") == [("GPU-a", 0.05)]
    assert scrape.duplicate_count == 1


def test_fault_44_two_targets_that_show_one_device_are_one_device() -> None:
    claims = DeviceClaims()
    first = Exporter("http://10.0.0.5:9400/metrics", state=NormalizeState(claims=claims))
    second = Exporter("http://10.0.0.5:9401/metrics", state=NormalizeState(claims=claims))
    lines = (line(UTIL, 5), line(XID, 31))
    for number in range(3):
        kept, dropped = first.scrape(*lines), second.scrape(*lines)
        assert cells(kept, "device_uuid", "busy_ratio") == [("GPU-a", 0.05)]
        assert (dropped.samples.num_rows, dropped.devices.num_rows) == (0, 0)
        assert events(kept) == ([("xid", 31, "GPU-a")] if number == 0 else [])
        assert events(dropped) == []
        assert (kept.foreign_devices, dropped.foreign_devices) == ((), ("GPU-a",))
    assert list(claims.rivals()) == [(first.target, second.target)]


def test_fault_44_other_target_takes_over_when_the_first_is_gone_and_nothing_is_lost() -> None:
    claims = DeviceClaims(fresh_for=timedelta(seconds=30))
    first = Exporter("http://a:9400/metrics", state=NormalizeState(claims=claims))
    second = Exporter("http://b:9400/metrics", state=NormalizeState(claims=claims))
    first.scrape(line(UTIL, 5))
    rows = [second.scrape(line(UTIL, 5)).samples.num_rows for _ in range(4)]
    assert rows == [0, 0, 0, 1]
    late = first.scrape(line(UTIL, 5), after=timedelta(seconds=60))
    assert (late.samples.num_rows, events(late)) == (0, [])
