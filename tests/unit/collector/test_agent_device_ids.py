"""Every form in which device plugins and claims name a GPU."""

from __future__ import annotations

import pytest

from collector.agent.device_ids import DeviceIndex, Place
from collector.agent.holders import Allocation, Holders, holders_of
from collector.sources.nvml.records import (
    Device,
    Health,
    Identity,
    Instance,
    Placement,
    Readings,
)
from collector.sources.podresources.messages import (
    ClaimedDevice,
    ClaimGrant,
    ContainerGrants,
    DeviceGrant,
)

WHOLE = "GPU-11111111-2222-3333-4444-555555555555"
DIVIDED = "GPU-99999999-2222-3333-4444-555555555555"
SLICE = "MIG-aaaaaaaa-2222-3333-4444-555555555555"


def identity(uuid: str, *, index: int, minor: int | None) -> Identity:
    return Identity(
        uuid=uuid,
        index=index,
        minor=minor,
        model=None,
        pci_bus_id=None,
        serial=None,
        driver_version=None,
        fabric_clique=None,
        virtualization=None,
    )


def device(
    uuid: str, *, index: int, minor: int | None, instances: tuple[Instance, ...] = ()
) -> Device:
    return Device(
        index=index,
        identity=identity(uuid, index=index, minor=minor),
        health=Health.UP,
        readings=Readings(),
        instances=instances,
    )


INSTANCE = Instance(
    instance_id=9,
    uuids=(SLICE,),
    profile="1g.10gb",
    sm_share_ratio=None,
    memory_share_ratio=None,
    placement=Placement(profile_id=19, start=4),
    readings=Readings(),
)
NODE = (
    device(WHOLE, index=0, minor=1),
    device(DIVIDED, index=1, minor=0, instances=(INSTANCE,)),
    Device(index=2, identity=None, health=Health.LOST, readings=Readings()),
)
INDEX = DeviceIndex.of(NODE)


@pytest.mark.parametrize(
    ("device_id", "place"),
    [
        pytest.param(WHOLE, Place(uuid=WHOLE), id="whole"),
        pytest.param(f"{WHOLE}::0", Place(uuid=WHOLE, replica=0), id="first replica"),
        pytest.param(f"{WHOLE}::13", Place(uuid=WHOLE, replica=13), id="replica"),
        pytest.param(
            "GPU-00000000-1111-2222-3333-444444444444",
            Place(uuid="GPU-00000000-1111-2222-3333-444444444444"),
            id="a GPU that never answered",
        ),
        pytest.param(SLICE, Place(uuid=DIVIDED, instance_id=9), id="instance"),
        pytest.param(
            f"{SLICE}::2", Place(uuid=DIVIDED, instance_id=9, replica=2), id="shared instance"
        ),
        pytest.param(
            f"MIG-{WHOLE}/7/0", Place(uuid=WHOLE, instance_id=7), id="instance, old drivers"
        ),
        pytest.param("nvidia0", Place(uuid=DIVIDED), id="minor number"),
        pytest.param("nvidia1/vgpu3", Place(uuid=WHOLE, replica=3), id="minor, shared"),
        pytest.param("nvidia0/gi2", Place(uuid=DIVIDED, instance_id=2), id="minor, instance"),
        pytest.param(
            "nvidia0/gi2/vgpu1",
            Place(uuid=DIVIDED, instance_id=2, replica=1),
            id="minor, shared instance",
        ),
        pytest.param("nvidia7", None, id="no such minor"),
        pytest.param("MIG-bbbbbbbb-2222-3333-4444-555555555555", None, id="no such instance"),
        pytest.param("mlx5_0", None, id="a network card"),
        pytest.param("GPU-1::x", None, id="no replica"),
        pytest.param("", None, id="nothing"),
    ],
)
def test_device_of_a_plugin(device_id: str, place: Place | None) -> None:
    assert INDEX.plugin_device(device_id) == place


@pytest.mark.parametrize(
    ("name", "place"),
    [
        pytest.param("gpu-1", Place(uuid=WHOLE), id="by minor, not by index"),
        pytest.param("gpu-0-mig-1g10gb-19-4", Place(uuid=DIVIDED, instance_id=9), id="instance"),
        pytest.param("gpu-0-mig-1g10gb-19-5", None, id="another place"),
        pytest.param("gpu-0-mig-1g10gb-14-4", None, id="another profile"),
        pytest.param("gpu-7", None, id="no such minor"),
        pytest.param("channel-3", None, id="no GPU"),
    ],
)
def test_device_of_a_claim(name: str, place: Place | None) -> None:
    assert INDEX.claimed_device(name) == place


def grants(
    *,
    devices: tuple[DeviceGrant, ...] = (),
    claims: tuple[ClaimGrant, ...] = (),
    container: str = "main",
) -> ContainerGrants:
    return ContainerGrants(
        namespace="team-a", pod="train-0", container=container, devices=devices, claims=claims
    )


def claimed(*devices: str, driver: str = "gpu.nvidia.com") -> ClaimGrant:
    return ClaimGrant(
        namespace="team-a",
        claim="mine",
        devices=tuple(ClaimedDevice(driver=driver, pool="n", device=each) for each in devices),
    )


def held(place: Place, *, resource: str | None, claim: str | None = None) -> Allocation:
    return Allocation(
        place=place,
        namespace="team-a",
        pod="train-0",
        container="main",
        resource=resource,
        claim=claim,
    )


@pytest.mark.parametrize(
    ("container", "holders"),
    [
        pytest.param(grants(), Holders(allocations=(), unresolved=()), id="nothing"),
        pytest.param(
            grants(
                devices=(
                    DeviceGrant(resource="nvidia.com/gpu.shared", device_ids=(f"{WHOLE}::3",)),
                )
            ),
            Holders(
                allocations=(held(Place(uuid=WHOLE, replica=3), resource="nvidia.com/gpu.shared"),),
                unresolved=(),
            ),
            id="a renamed shared resource",
        ),
        pytest.param(
            grants(devices=(DeviceGrant(resource="cloud.example/gpu", device_ids=("nvidia0",)),)),
            Holders(
                allocations=(held(Place(uuid=DIVIDED), resource="cloud.example/gpu"),),
                unresolved=(),
            ),
            id="a GPU under any name",
        ),
        pytest.param(
            grants(devices=(DeviceGrant(resource="rdma/hca", device_ids=("mlx5_0",)),)),
            Holders(allocations=(), unresolved=()),
            id="another device is none of ours",
        ),
        pytest.param(
            grants(devices=(DeviceGrant(resource="nvidia.com/gpu", device_ids=("x", WHOLE, "x")),)),
            Holders(
                allocations=(held(Place(uuid=WHOLE), resource="nvidia.com/gpu"),),
                unresolved=("x",),
            ),
            id="an unknown name of NVIDIA's plugin is told",
        ),
        pytest.param(
            grants(claims=(claimed("gpu-1", "gpu-0-mig-1g10gb-19-5"),)),
            Holders(
                allocations=(held(Place(uuid=WHOLE), resource=None, claim="team-a/mine"),),
                unresolved=("gpu-0-mig-1g10gb-19-5",),
            ),
            id="claim with an instance that has no known place",
        ),
        pytest.param(
            grants(claims=(claimed("channel-0", driver="compute-domain.nvidia.com"),)),
            Holders(allocations=(), unresolved=()),
            id="another driver's claim",
        ),
    ],
)
def test_holders(container: ContainerGrants, holders: Holders) -> None:
    assert holders_of((container,), index=INDEX) == holders


def test_a_device_listed_once_per_numa_node_is_held_once() -> None:
    twice = DeviceGrant(resource="nvidia.com/gpu", device_ids=(WHOLE,))
    found = holders_of((grants(devices=(twice, twice)),), index=INDEX)
    assert len(found.allocations) == 1
