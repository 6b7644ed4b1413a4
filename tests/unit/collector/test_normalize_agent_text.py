"""What the node agent tells beside measures: reasons, devices that do not answer, holders."""

from __future__ import annotations

import pytest

from collector.holdings import HoldingSource
from tests.support.exposition_texts import Exporter, cells, events, line, scrape_once

GPU = {"uuid": "GPU-a", "gpu": "0", "node": "n1", "instance_id": ""}
OTHER = GPU | {"uuid": "GPU-b", "gpu": "1"}
POD = {
    "replica": "",
    "namespace": "team",
    "pod": "p",
    "container": "main",
    "resource": "nvidia.com/gpu",
    "claim": "",
}


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("not_supported", "sm_active_ratio=not_supported"),
        ("no_permission", "sm_active_ratio=no_permission"),
        ("timeout", "sm_active_ratio=timeout"),
        ("whim", None),
    ],
)
def test_reason_of_an_absence_is_the_agent_s(reason: str, told: str | None) -> None:
    scrape = scrape_once(
        line("steward_gpu_busy_ratio", 0.5, GPU),
        line(
            "steward_gpu_unreadable_info", 1, GPU | {"measure": "sm_active_ratio", "reason": reason}
        ),
    )
    assert cells(scrape, "busy_ratio", "sm_active_ratio", "absences") == [(0.5, None, told)]


def test_measure_that_is_no_column_is_passed_over() -> None:
    labels = GPU | {"measure": "colour", "reason": "blank"}
    scrape = scrape_once(line("steward_gpu_unreadable_info", 1, labels))
    assert cells(scrape, "absences") == [(None,)]


def test_device_that_does_not_answer_is_lost_at_once_and_the_others_go_on() -> None:
    exporter = Exporter()

    def up(value: int, reason: str) -> list[str]:
        return [
            line("steward_gpu_up", value, GPU | {"reason": reason}),
            line("steward_gpu_up", 1, OTHER | {"reason": ""}),
            line("steward_gpu_busy_ratio", 0.5, OTHER),
        ]

    assert events(exporter.scrape(*up(1, ""), line("steward_gpu_busy_ratio", 0.9, GPU))) == []
    lost = exporter.scrape(*up(0, "unreachable"))
    assert [(r["kind"], r["detail"]) for r in lost.events.to_pylist()] == [
        ("lost", "the source says: unreachable")
    ]
    assert cells(lost, "device_uuid", "busy_ratio") == [("GPU-b", 0.5)]
    assert [(r["device_uuid"], r["is_present"]) for r in lost.devices.to_pylist()] == [
        ("GPU-a", False)
    ]
    assert events(exporter.scrape(*up(0, "unreachable"))) == []
    assert events(exporter.scrape(*up(1, ""))) == [("returned", None, "GPU-a")]


def test_holders_are_the_kubelet_s() -> None:
    scrape = scrape_once(
        line("steward_gpu_busy_ratio", 0.5, GPU),
        line("steward_gpu_allocation_info", 1, GPU | POD | {"replica": "0"}),
        line("steward_gpu_allocation_info", 1, GPU | POD | {"replica": "1", "pod": "q"}),
        line("steward_gpu_allocation_info", 1, OTHER | POD | {"claim": "team/c-1"}),
    )
    assert [
        (one.device_uuid, one.pod, one.replica, one.claim, one.resource, one.source)
        for one in scrape.holdings
    ] == [
        ("GPU-a", "p", 0, None, "nvidia.com/gpu", HoldingSource.PODRESOURCES),
        ("GPU-a", "q", 1, None, "nvidia.com/gpu", HoldingSource.PODRESOURCES),
        ("GPU-b", "p", None, "team/c-1", "nvidia.com/gpu", HoldingSource.PODRESOURCES),
    ]
    assert cells(scrape, "device_uuid", "pod") == [("GPU-a", None)], "two pods share it"


def test_one_holder_stands_beside_the_values_of_its_instance() -> None:
    part = GPU | {"instance_id": "7"}
    scrape = scrape_once(
        line("steward_gpu_graphics_active_ratio", 0.5, part),
        line("steward_gpu_power_watts", 300, GPU),
        line("steward_gpu_allocation_info", 1, part | POD),
    )
    assert cells(scrape, "instance_id", "pod", "power_w") == [(None, None, 300.0), (7, "p", None)]


def test_processes_have_memory_and_share() -> None:
    labels = GPU | {"pid": "4711", "process": "train", "pod_uid": "u-1", "container_id": "c"}
    scrape = scrape_once(
        line("steward_gpu_process_info", 1, labels),
        line("steward_gpu_process_memory_used_bytes", 5, labels),
        line("steward_gpu_process_sm_ratio", 0.25, labels),
        line("steward_gpu_process_info", 1, labels | {"pid": "4712"}),
    )
    assert [
        (r["pid"], r["memory_used_bytes"], r["sm_ratio"], r["pod_uid"])
        for r in scrape.processes.to_pylist()
    ] == [(4711, 5, 0.25, "u-1"), (4712, None, None, "u-1")]


def test_repeated_xid_is_counted_where_the_gauge_shows_nothing_new() -> None:
    exporter = Exporter()
    count = GPU | {"xid": "31"}

    def shown(times: int) -> list[tuple[str, int | None, str]]:
        return events(
            exporter.scrape(
                line("steward_gpu_busy_ratio", 0.5, GPU),
                line("steward_gpu_last_xid", 31 if times else 0, GPU),
                *([line("steward_gpu_xid_errors_total", times, count)] if times else []),
            )
        )

    once = [("xid", 31, "GPU-a")]
    assert [shown(times) for times in (0, 1, 1, 2, 1)] == [[], once, [], once, []]
