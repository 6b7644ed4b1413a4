"""Device rows and events: written when something changed, and only then."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from collector.normalize.identity import named_node, target_host
from collector.tables import DEVICE, DEVICE_EVENT, DEVICE_SAMPLE
from tests.support.exposition_texts import (
    GPU,
    NOON,
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
GR = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"


def test_tables_have_the_shape_that_the_warehouse_expects() -> None:
    for scrape in (scrape_once(line(UTIL, 5)), scrape_once("# nothing")):
        assert scrape.samples.schema == DEVICE_SAMPLE
        assert scrape.devices.schema == DEVICE
        assert scrape.events.schema == DEVICE_EVENT


def test_batches_leave_out_tables_without_rows() -> None:
    exporter = Exporter()
    assert [name for name, _ in exporter.scrape(line(UTIL, 5)).batches()] == [
        "device",
        "device_sample",
    ]
    assert [name for name, _ in exporter.scrape(line(UTIL, 5)).batches()] == ["device_sample"]


def test_device_row_holds_what_the_labels_say() -> None:
    labels = GPU | {
        "modelName": "NVIDIA A100-SXM4-40GB",
        "pci_bus_id": "00000000:10:00.0",
        "DCGM_FI_SYSTEM_DRIVER_VERSION": "550.1",
    }
    assert scrape_once(line(UTIL, 5, labels)).devices.to_pylist() == [
        {
            "observed_at": NOON,
            "cluster": "c1",
            "node": "n1",
            "device_uuid": "GPU-a",
            "instance_id": None,
            "vendor": "nvidia",
            "model": "NVIDIA A100-SXM4-40GB",
            "device_index": 0,
            "memory_total_bytes": None,
            "mig_profile": None,
            "sm_share_ratio": None,
            "memory_share_ratio": None,
            "is_present": True,
            "driver_version": "550.1",
            "labels_json": '{"pci_bus_id": "00000000:10:00.0"}',
            "source": "exposition",
        }
    ]


def test_device_row_comes_again_only_when_a_fact_changes() -> None:
    exporter = Exporter()
    driver = {"DCGM_FI_DRIVER_VERSION": "550.1"}
    assert exporter.scrape(line(UTIL, 5, GPU | driver)).devices.num_rows == 1
    assert exporter.scrape(line(UTIL, 6, GPU | driver | pod("p"))).devices.num_rows == 0
    assert exporter.scrape(line(UTIL, 6)).devices.num_rows == 0, "silence is no change"
    driver = {"DCGM_FI_DRIVER_VERSION": "560.2"}
    changed = exporter.scrape(line(UTIL, 6, GPU | driver)).devices.to_pylist()
    assert [row["driver_version"] for row in changed] == ["560.2"]


def test_device_without_uuid_is_node_and_index() -> None:
    scrape = scrape_once(line(UTIL, 5, {"gpu": "3", "Hostname": "n1"}))
    assert cells(scrape, "device_uuid", "node") == [("n1/3", "n1")]


def test_equal_indexes_behind_one_federating_server_are_two_devices() -> None:
    scrape = scrape_once(
        line(UTIL, 5, {"gpu": "0", "instance": "10.0.0.6:9400"}),
        line(UTIL, 7, {"gpu": "0", "instance": "10.0.0.7:9400"}),
    )
    assert cells(scrape, "device_uuid", "busy_ratio") == [
        ("10.0.0.6/0", 0.05),
        ("10.0.0.7/0", 0.07),
    ]


@pytest.mark.parametrize("uuid", ["", "<<<NULL>>>", "00000000-0000-0000-0000-000000000000"])
def test_uuid_that_says_nothing_is_none(uuid: str) -> None:
    scrape = scrape_once(line(UTIL, 5, {"gpu": "3", "UUID": uuid, "Hostname": "n1"}))
    assert cells(scrape, "device_uuid") == [("n1/3",)]


def test_own_timestamp_of_a_line_is_the_sampling_time_of_its_board() -> None:
    at_ms = 1_723_621_883_587
    scrape = scrape_once(
        line(GR, f"0.5 {at_ms}", instance(1)),
        line(GR, f"0.5 {at_ms - 5}", instance(2)),
        line("DCGM_FI_DEV_POWER_USAGE", 100, instance(1)),
        line(UTIL, 5, OTHER_GPU),
    )
    own = datetime.fromtimestamp(1_723_621_883, UTC).replace(microsecond=587_000)
    assert [row[0] for row in cells(scrape, "sampled_at")] == [own, own, own, NOON]


@pytest.mark.parametrize(
    ("ahead_ms", "is_believed"),
    [
        pytest.param(3_599_999, True, id="just within the hour"),
        pytest.param(3_600_000, True, id="exactly an hour"),
        pytest.param(3_600_001, False, id="just past it"),
        pytest.param(10**14, False, id="centuries away"),
    ],
)
def test_own_timestamp_far_ahead_is_a_broken_clock(ahead_ms: int, is_believed: bool) -> None:
    own_ms = round(NOON.timestamp() * 1000) + ahead_ms
    ((sampled_at,),) = cells(scrape_once(line(UTIL, f"5 {own_ms}")), "sampled_at")
    assert sampled_at == (NOON + timedelta(milliseconds=ahead_ms) if is_believed else NOON)


@pytest.mark.parametrize(
    ("own_ms", "is_believed"),
    [
        pytest.param(946_684_800_001, True, id="after the year 2000 began"),
        pytest.param(946_684_800_000, True, id="as it began"),
        pytest.param(946_684_799_999, False, id="just before"),
        pytest.param(0, False, id="a clock that was never set"),
        pytest.param(-1, False, id="before 1970"),
        pytest.param(-62_135_596_800_000, False, id="the year 1"),
    ],
)
def test_own_timestamp_before_the_year_2000_is_a_broken_clock(
    own_ms: int, is_believed: bool
) -> None:
    ((sampled_at,),) = cells(scrape_once(line(UTIL, f"5 {own_ms}")), "sampled_at")
    own = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=own_ms if is_believed else 0)
    assert sampled_at == (own if is_believed else NOON)


def test_single_missed_scrape_loses_nothing() -> None:
    exporter = Exporter()
    both = (line(UTIL, 5), line(UTIL, 7, OTHER_GPU))
    for lines in (both, both[:1], both, both[:1], both):
        assert events(exporter.scrape(*lines)) == []


def test_empty_scrapes_lose_no_device() -> None:
    exporter = Exporter()
    exporter.scrape(line(UTIL, 5))
    for _ in range(5):
        scrape = exporter.scrape("# the exporter has just started")
        assert (events(scrape), scrape.devices.num_rows) == ([], 0)


def test_change_of_instances_is_an_event_of_each_instance() -> None:
    exporter = Exporter()
    assert events(exporter.scrape(line(GR, 0.1, instance(7)))) == []
    appeared = exporter.scrape(line(GR, 0.1, instance(7)), line(GR, 0.1, instance(9)))
    assert [(r["kind"], r["instance_id"], r["detail"]) for r in appeared.events.to_pylist()] == [
        ("mig_changed", 9, "instance 9 (1g.5gb) appeared")
    ]
    exporter.scrape(line(GR, 0.1, instance(9)))
    gone = exporter.scrape(line(GR, 0.1, instance(9)))
    assert [(r["kind"], r["instance_id"], r["detail"]) for r in gone.events.to_pylist()] == [
        ("mig_changed", 7, "instance 7 (1g.5gb) is gone")
    ]


@pytest.mark.parametrize(
    ("before", "now", "codes"),
    [
        pytest.param(None, 0, [], id="zero at first sight"),
        pytest.param(None, 31, [31], id="code at first sight"),
        pytest.param(0, 31, [31], id="first code"),
        pytest.param(31, 0, [], id="cleared"),
        pytest.param(31, 2147483632, [], id="blank"),
        pytest.param(0, "NaN", [], id="not a number"),
    ],
)
def test_xid(before: int | None, now: float | str, codes: list[int]) -> None:
    exporter = Exporter()
    if before is not None:
        exporter.scrape(line("DCGM_FI_DEV_XID_ERRORS", before))
    scrape = exporter.scrape(line("DCGM_FI_DEV_XID_ERRORS", now))
    assert [code for _, code, _ in events(scrape)] == codes


def test_blank_between_two_equal_codes_is_no_new_event() -> None:
    exporter = Exporter()
    name = "DCGM_FI_DEV_XID_ERROR"
    shown = [events(exporter.scrape(line(name, code))) for code in (31, 2147483632, 31)]
    assert shown == [[("xid", 31, "GPU-a")], [], []]


@pytest.mark.parametrize(
    ("labels", "node"),
    [
        ({"Hostname": "worker1"}, "worker1"),
        ({"hostname": "worker1"}, "worker1"),
        ({"Hostname": "localhost", "node": "worker1"}, "worker1"),
        ({"Hostname": "nvidia-dcgm-exporter-q28k4"}, None),
        ({"Hostname": "nvidia-dcgm-exporter-q28k4", "kubernetes_node": "w"}, "w"),
        ({"Hostname": "424773df46e0"}, None),
        ({"Hostname": "127.0.0.1"}, None),
        ({"Hostname": ""}, None),
        ({}, None),
    ],
)
def test_node_named_by_labels(labels: dict[str, str], node: str | None) -> None:
    assert named_node(labels) == node


@pytest.mark.parametrize(
    ("target", "host"),
    [
        ("http://10.0.0.5:9400/metrics", "10.0.0.5"),
        ("https://gpu-1.example.org/metrics", "gpu-1.example.org"),
        ("http://user:word@gpu-1:9400/", "gpu-1"),
        ("http://[fd00::5]:9400/metrics", "fd00::5"),
        ("http://localhost:9400/metrics", "localhost:9400"),
        ("http://127.0.0.1:9400/metrics", "127.0.0.1:9400"),
        ("gpu-1:9400", "gpu-1"),
        ("/data/02_scrape.prom", "02_scrape"),
        ("02_scrape.prom", "02_scrape"),
    ],
)
def test_node_suggested_by_the_target(target: str, host: str) -> None:
    assert target_host(target) == host


def test_label_sets_of_pods_that_ended_are_forgotten() -> None:
    exporter = Exporter()
    for number in range(30):
        exporter.scrape(line(UTIL, 5, GPU | pod(f"p{number}")), line(GR, 0.5, OTHER_GPU))
        assert len(exporter.state.identities) == 2
