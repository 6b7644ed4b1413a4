"""The agent's page: names, labels and what stands where nothing was read."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from collector.agent import names
from collector.agent.cgroups import ProcessOwner
from collector.agent.device_ids import Place
from collector.agent.holders import Allocation, Holders
from collector.agent.page import Snapshot, write_snapshot
from collector.agent.text import Family, Kind, Page, label_text
from collector.normalize import units
from collector.normalize.dictionary import METRICS
from collector.normalize.metric import MEASURES
from collector.sources.nvml.records import (
    Absence,
    Device,
    DeviceProcess,
    Health,
    Identity,
    Instance,
    Measure,
    NodeReading,
    Readings,
    XidCount,
)
from collector.sources.podresources.client import Fault

UUID = "GPU-11111111-2222-3333-4444-555555555555"
IDENTITY = Identity(
    uuid=UUID,
    index=3,
    minor=0,
    model='An "odd" name\\',
    pci_bus_id=None,
    serial=None,
    driver_version="580.1",
    fabric_clique=None,
    virtualization=None,
)


def device(
    readings: Readings | None = None,
    *,
    health: Health = Health.UP,
    processes: tuple[DeviceProcess, ...] = (),
) -> Device:
    return Device(
        index=3,
        identity=IDENTITY,
        health=health,
        readings=readings or Readings(),
        processes=processes,
    )


def reading(
    *devices: Device, xids: tuple[XidCount, ...] = (), last: int | None = None
) -> NodeReading:
    return NodeReading(
        devices=devices,
        is_driver_up=True,
        deadline_misses={3: 0},
        xids=xids,
        last_xids={} if last is None else {(UUID, None): last},
        watched=frozenset({UUID}),
    )


def snapshot(
    found: NodeReading,
    *,
    holders: Holders | None = None,
    fault: Fault | None = Fault.ABSENT,
    owners: dict[int, ProcessOwner] | None = None,
) -> Snapshot:
    return Snapshot(
        node="n1",
        reading=found,
        holders=holders,
        pod_resources_fault=fault,
        allocatable=None,
        owners=owners or {},
    )


def lines(written: Snapshot, name: str) -> list[str]:
    """Return the samples of one family."""
    page = Page()
    write_snapshot(written, to=page)
    return [line for line in page.text().splitlines() if re.match(rf"{name}[ {{]", line)]


BASE = f'uuid="{UUID}",gpu="3",node="n1",instance_id=""'


def test_zero_and_nothing_are_two_facts() -> None:
    readings = Readings()
    readings.put(Measure.BUSY, 0)
    readings.miss(Measure.POWER, Absence.NO_PERMISSION)
    written = snapshot(reading(device(readings)))
    assert lines(written, "steward_gpu_busy_ratio") == [f"steward_gpu_busy_ratio{{{BASE}}} 0"]
    assert lines(written, "steward_gpu_power_watts") == []
    assert lines(written, "steward_gpu_unreadable_info") == [
        f'steward_gpu_unreadable_info{{{BASE},measure="power_w",reason="no_permission"}} 1'
    ]


@pytest.mark.parametrize(
    ("health", "line"),
    [
        (Health.UP, f'steward_gpu_up{{{BASE},reason=""}} 1'),
        (Health.LOST, f'steward_gpu_up{{{BASE},reason="lost"}} 0'),
        (Health.UNREACHABLE, f'steward_gpu_up{{{BASE},reason="unreachable"}} 0'),
    ],
)
def test_health(health: Health, line: str) -> None:
    assert lines(snapshot(reading(device(health=health))), "steward_gpu_up") == [line]


def test_labels_are_escaped() -> None:
    (line,) = lines(snapshot(reading(device())), "steward_gpu_info")
    assert r'model="An \"odd\" name\\"' in line
    assert label_text({"a": "1\n2"}) == r'a="1\n2"'


def test_an_instance_beside_its_board() -> None:
    readings = Readings()
    readings.put(Measure.SM_ACTIVE, 0.5)
    instance = Instance(
        instance_id=7,
        uuids=("MIG-1", "MIG-2"),
        profile="1g.10gb",
        sm_share_ratio=16 / 132,
        memory_share_ratio=None,
        placement=None,
        readings=readings,
    )
    written = snapshot(reading(replace(device(), instances=(instance,), is_mig=True)))
    board, part = lines(written, "steward_gpu_info")
    assert 'mig_mode="enabled",mig_uuid="",mig_profile="",sm_share_ratio=""' in board
    assert part.endswith(
        'mig_mode="enabled",mig_uuid="MIG-1",mig_profile="1g.10gb",'
        'sm_share_ratio="0.121212",memory_share_ratio=""} 1'
    )
    assert lines(written, "steward_gpu_sm_active_ratio") == [
        f'steward_gpu_sm_active_ratio{{uuid="{UUID}",gpu="3",node="n1",instance_id="7"}} 0.5'
    ]


def test_a_gpu_that_never_answered_has_an_index_only() -> None:
    unknown = replace(device(health=Health.LOST), identity=None)
    written = snapshot(reading(unknown))
    assert lines(written, "steward_gpu_up") == [
        'steward_gpu_up{uuid="",gpu="3",node="n1",instance_id="",reason="lost"} 0'
    ]
    assert lines(written, "steward_gpu_info") == []
    assert lines(written, "steward_gpu_last_xid") == []


def test_last_xid_is_zero_before_the_first() -> None:
    assert lines(snapshot(reading(device())), "steward_gpu_last_xid") == [
        f"steward_gpu_last_xid{{{BASE}}} 0"
    ]


def test_xids_are_counted_by_code() -> None:
    counts = (
        XidCount(uuid=UUID, instance_id=None, xid=31, count=3),
        XidCount(uuid=UUID, instance_id=None, xid=43, count=1),
    )
    written = snapshot(reading(device(), xids=counts, last=31))
    assert lines(written, "steward_gpu_last_xid") == [f"steward_gpu_last_xid{{{BASE}}} 31"]
    assert lines(written, "steward_gpu_xid_errors_total") == [
        f'steward_gpu_xid_errors_total{{{BASE},xid="31"}} 3',
        f'steward_gpu_xid_errors_total{{{BASE},xid="43"}} 1',
    ]


def test_holders_and_what_the_kubelet_does_not_say() -> None:
    holder = Allocation(
        place=Place(uuid=UUID, instance_id=7, replica=2),
        namespace="team-a",
        pod="train-0",
        container="main",
        resource="nvidia.com/gpu",
        claim=None,
    )
    held = Holders(allocations=(holder,), unresolved=("x",))
    told = snapshot(reading(device()), holders=held, fault=None)
    assert lines(told, "steward_gpu_allocation_info") == [
        (
            f'steward_gpu_allocation_info{{uuid="{UUID}",gpu="3",node="n1",instance_id="7",'
            'replica="2",namespace="team-a",pod="train-0",container="main",'
            'resource="nvidia.com/gpu",claim="",source="podresources"} 1'
        )
    ]
    assert lines(told, "steward_agent_pod_resources_up") == [
        'steward_agent_pod_resources_up{node="n1",reason=""} 1'
    ]
    assert lines(told, "steward_agent_unresolved_devices") == [
        'steward_agent_unresolved_devices{node="n1"} 1'
    ]
    silent = snapshot(reading(device()), fault=Fault.TIMEOUT)
    assert lines(silent, "steward_agent_pod_resources_up") == [
        'steward_agent_pod_resources_up{node="n1",reason="timeout"} 0'
    ]
    assert lines(silent, "steward_agent_unresolved_devices") == []


def test_processes_with_their_pods() -> None:
    known = DeviceProcess(pid=7, instance_id=None, memory_used_bytes=5, sm_ratio=0.25)
    hidden = DeviceProcess(pid=8, instance_id=None, memory_used_bytes=None, sm_ratio=None)
    owner = ProcessOwner(name="python3", pod_uid="u", container_id="c")
    written = snapshot(reading(device(processes=(known, hidden))), owners={7: owner})
    one = f'{BASE},pid="7",process="python3",pod_uid="u",container_id="c"'
    two = f'{BASE},pid="8",process="",pod_uid="",container_id=""'
    assert lines(written, "steward_gpu_process_info") == [
        f"steward_gpu_process_info{{{labels}}} 1" for labels in (one, two)
    ]
    assert lines(written, "steward_gpu_process_memory_used_bytes") == [
        f"steward_gpu_process_memory_used_bytes{{{one}}} 5"
    ]
    assert lines(written, "steward_gpu_process_sm_ratio") == [
        f"steward_gpu_process_sm_ratio{{{one}}} 0.25"
    ]


def test_families_come_once_with_help_and_type() -> None:
    page = Page()
    family = Family("a_total", Kind.COUNTER, "Help.")
    page.add(family, 1, 'x="1"')
    page.add(Family("b", Kind.GAUGE, "Other."), 0.5)
    page.add(family, 2)
    assert page.text() == (
        "# HELP a_total Help.\n# TYPE a_total counter\n"
        'a_total{x="1"} 1\na_total 2\n'
        "# HELP b Other.\n# TYPE b gauge\nb 0.5\n"
    )


def test_every_signal_has_a_name() -> None:
    assert set(names.MEASURES) == set(Measure)
    assert len({family.name for family in names.MEASURES.values()}) == len(Measure)


@pytest.mark.parametrize("column", MEASURES)
def test_every_measured_column_is_read_from_the_agent(column: str) -> None:
    """One name each, and in the column's own unit: nothing is scaled on the way."""
    name = names.MEASURES[Measure(column)].name
    metric = METRICS[name]
    assert metric.column == column
    assert (metric.unit.multiplier, metric.unit.divisor) == (1, 1)
    assert metric.unit is not units.DEVICE_RATIO  # which may turn out to be percent


def families() -> list[Family]:
    """Return every family that the agent may print."""
    others = [each for each in vars(names).values() if isinstance(each, Family)]
    return [*names.MEASURES.values(), *others]


@pytest.mark.parametrize("family", families(), ids=lambda family: family.name)
def test_every_metric_is_documented(family: Family) -> None:
    text = (Path(__file__).parents[3] / "docs" / "agent.md").read_text(encoding="utf-8")
    assert f"`{family.name}`" in text or f"`{family.name}{{" in text


@pytest.mark.parametrize("family", families(), ids=lambda family: family.name)
def test_counters_and_only_they_end_in_total(family: Family) -> None:
    assert family.name.endswith("_total") == (family.kind is Kind.COUNTER)
