"""Dynamic resource allocation: claims, devices on offer, holdings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from collector.holdings import Holding, HoldingSource
from collector.lifecycle.claims import Instances
from collector.sources.kubernetes.resources import PODS, RESOURCE_CLAIMS, RESOURCE_SLICES
from tests.support.kubernetes_objects import Body, metadata, owner_reference, pod
from tests.support.lifecycle_drive import Drive, settled

DRIVER = "gpu.nvidia.com"
WHOLE = {
    "name": "gpu-0",
    "attributes": {
        "type": {"string": "gpu"},
        "uuid": {"string": "GPU-a"},
        "minor": {"int": 0},
        "index": {"int": 0},
        "productName": {"string": "NVIDIA H100 80GB HBM3"},
        "driverVersion": {"version": "580.65.6"},
    },
    "capacity": {"memory": {"value": "81559Mi"}},
}
STATIC_MIG = {
    "name": "gpu-1-mig-9-4-4",
    "attributes": {
        "type": {"string": "mig"},
        "uuid": {"string": "MIG-b"},
        "parentUUID": {"string": "GPU-b"},
        "profile": {"string": "3g.40gb"},
    },
}
DYNAMIC = "gpu-0-mig-1g5gb-19-4"


@dataclass
class Table:
    """Knows one instance."""

    board_uuid: str
    placement_start: int | None
    instance_id: int

    def instance_of(
        self,
        *,
        board_uuid: str,
        mig_uuid: str | None,
        profile: str | None,
        placement_start: int | None,
    ) -> int | None:
        """Return the one instance if it is meant."""
        del mig_uuid, profile
        is_meant = (board_uuid, placement_start) == (self.board_uuid, self.placement_start)
        return self.instance_id if is_meant else None


def offer(*devices: Body, generation: int = 1, name: str = "n1-slice") -> Body:
    """Return a slice of node n1."""
    pool = {"name": "n1", "generation": generation, "resourceSliceCount": 1}
    return {
        "metadata": metadata(name, namespace=None),
        "spec": {"driver": DRIVER, "nodeName": "n1", "pool": pool, "devices": list(devices)},
    }


def claim(
    device: str | None = "gpu-0",
    *,
    pods: tuple[str, ...] = ("p",),
    admin: bool = False,
    driver: str = DRIVER,
) -> Body:
    """Return a claim for one device, used by these pods."""
    result: Body = {"request": "gpu", "driver": driver, "pool": "n1", "device": device}
    if admin:
        result["adminAccess"] = True
    consumers = [{"resource": "pods", "name": name, "uid": f"{name}-uid"} for name in pods]
    status = {"allocation": {"devices": {"results": [result]}}, "reservedFor": consumers}
    return {"metadata": metadata("c"), "status": status if device else {}}


def drive_with(*slices: Body, instances: Instances | None = None) -> Drive:
    """Return a drive in which these devices are on offer."""
    drive = settled(instances=instances)
    for each in slices:
        drive.put(RESOURCE_SLICES, each)
    return drive


STATES = ("state", "pod", "device", "device_uuid", "parent_uuid", "mig_profile", "reason")


def test_life_of_a_claim() -> None:
    drive = drive_with(offer(WHOLE))
    drive.put(RESOURCE_CLAIMS, claim(None))
    drive.put(RESOURCE_CLAIMS, claim(pods=()))
    drive.put(RESOURCE_CLAIMS, claim())
    drive.put(RESOURCE_CLAIMS, claim())
    drive.put(RESOURCE_CLAIMS, claim(pods=()))
    drive.delete(RESOURCE_CLAIMS, "c-uid", seen_s=9)
    assert drive.table("device_claim", *STATES) == [
        ("pending", None, None, None, None, None, None),
        ("allocated", None, "gpu-0", "GPU-a", None, None, None),
        ("reserved", "p", "gpu-0", "GPU-a", None, None, None),
        ("released", None, "gpu-0", None, None, None, None),
        ("allocated", None, "gpu-0", "GPU-a", None, None, None),
        ("released", "p", "gpu-0", None, None, None, None),
        ("deleted", None, "gpu-0", None, None, None, None),
    ]


def test_whole_board_is_held() -> None:
    drive = drive_with(offer(WHOLE))
    drive.put(RESOURCE_CLAIMS, claim())
    assert drive.lifecycle.holdings() == {
        "n1": (
            Holding(
                node="n1",
                device_uuid="GPU-a",
                instance_id=None,
                replica=None,
                namespace="research",
                pod="p",
                container=None,
                claim="research/c",
                resource=None,
                source=HoldingSource.DRA,
                pod_uid="p-uid",
            ),
        )
    }


def test_claim_shared_by_two_pods_is_held_by_both() -> None:
    drive = drive_with(offer(WHOLE))
    drive.put(RESOURCE_CLAIMS, claim(pods=("p", "q")))
    assert [each.pod for each in drive.lifecycle.holdings()["n1"]] == ["p", "q"]


def test_administrators_access_is_marked() -> None:
    drive = drive_with(offer(WHOLE))
    drive.put(RESOURCE_CLAIMS, claim(admin=True))
    (seen,) = drive.lifecycle.holdings()["n1"]
    assert seen.is_admin_access
    assert drive.table("device_claim", "is_admin_access", "state") == [(True, "reserved")]


@pytest.mark.parametrize(
    ("pods", "is_held"), [((), False), (("p",), True)], ids=["nobody uses it", "one does"]
)
def test_only_what_is_used_is_held(pods: tuple[str, ...], is_held: bool) -> None:
    drive = drive_with(offer(WHOLE))
    drive.put(RESOURCE_CLAIMS, claim(pods=pods))
    assert bool(drive.lifecycle.holdings()) is is_held


def test_fault_24_partition_made_on_demand_is_found_by_board_and_place() -> None:
    drive = drive_with(offer(WHOLE), instances=Table("GPU-a", 4, 9))
    drive.put(RESOURCE_CLAIMS, claim(DYNAMIC))
    (held,) = drive.lifecycle.holdings()["n1"]
    assert (held.device_uuid, held.instance_id) == ("GPU-a", 9)
    assert drive.table("device_claim", *STATES) == [
        ("reserved", "p", DYNAMIC, None, "GPU-a", "1g.5gb", None)
    ]


def test_fault_24_partition_that_nobody_knows_is_unattributed_with_a_reason() -> None:
    drive = drive_with(offer(WHOLE))
    drive.put(RESOURCE_CLAIMS, claim(DYNAMIC))
    (held,) = drive.lifecycle.holdings()["n1"]
    assert (held.device_uuid, held.instance_id, held.unresolved) == ("GPU-a", None, DYNAMIC)
    assert drive.table("device_claim", "parent_uuid", "reason") == [
        ("GPU-a", "mig_instance_unknown")
    ]


def test_fault_24_partition_without_its_board_is_unattributed_with_a_reason() -> None:
    drive = drive_with()
    drive.put(RESOURCE_CLAIMS, claim(DYNAMIC))
    (held,) = drive.lifecycle.holdings()["n1"]
    assert (held.device_uuid, held.unresolved) == (f"n1/{DYNAMIC}", DYNAMIC)
    assert drive.table("device_claim", "parent_uuid", "reason") == [(None, "mig_parent_unknown")]


def test_partition_with_attributes() -> None:
    drive = drive_with(offer(STATIC_MIG), instances=Table("GPU-b", None, 2))
    drive.put(RESOURCE_CLAIMS, claim("gpu-1-mig-9-4-4"))
    (held,) = drive.lifecycle.holdings()["n1"]
    assert (held.device_uuid, held.instance_id) == ("GPU-b", 2)
    assert drive.table("device_claim", "device_uuid", "mig_profile") == [("MIG-b", "3g.40gb")]


@pytest.mark.parametrize(
    ("slices", "reason"),
    [
        pytest.param((), "device_not_in_slices", id="no slice has it"),
        pytest.param((offer({"name": "gpu-0"}),), "device_without_uuid", id="no identity"),
    ],
)
def test_device_that_is_not_known(slices: tuple[Body, ...], reason: str) -> None:
    drive = drive_with(*slices)
    drive.put(RESOURCE_CLAIMS, claim())
    assert drive.table("device_claim", "device_uuid", "reason") == [(None, reason)]
    (held,) = drive.lifecycle.holdings()["n1"]
    assert (held.device_uuid, held.unresolved) == ("n1/gpu-0", "gpu-0")


def test_older_api_wrapped_devices() -> None:
    wrapped = {
        "name": "gpu-0",
        "basic": {
            "attributes": {"gpu.nvidia.com/uuid": {"string": "GPU-a"}},
            "capacity": {"memory": {"value": "80Gi"}},
        },
    }
    drive = drive_with(offer(wrapped))
    drive.put(RESOURCE_CLAIMS, claim())
    assert drive.lifecycle.holdings()["n1"][0].device_uuid == "GPU-a"
    assert drive.table("device", "memory_total_bytes") == [(80 * 1024**3,)]


def test_boards_on_offer() -> None:
    drive = drive_with(offer(WHOLE, STATIC_MIG))
    drive.put(RESOURCE_SLICES, offer(WHOLE, STATIC_MIG))
    columns = ("node", "device_uuid", "vendor", "model", "device_index", "memory_total_bytes")
    assert drive.table("device", *columns, "driver_version", "is_present") == [
        ("n1", "GPU-a", "nvidia", "NVIDIA H100 80GB HBM3", 0, 81_559 * 1024**2, "580.65.6", True)
    ]


def test_board_that_is_no_longer_offered() -> None:
    drive = drive_with(offer(WHOLE))
    drive.put(RESOURCE_SLICES, offer(generation=2))
    assert drive.table("device", "node", "device_uuid", "is_present")[-1] == ("n1", "GPU-a", False)


def test_board_stays_while_its_slice_is_written_anew() -> None:
    drive = drive_with(offer(WHOLE))
    drive.put(RESOURCE_SLICES, offer(WHOLE, generation=2, name="n1-new"))
    drive.delete(RESOURCE_SLICES, "n1-slice-uid")
    assert drive.table("device", "is_present") == [(True,)]


def test_board_removed_while_nobody_watched() -> None:
    drive = drive_with(offer(WHOLE))
    drive.delete_unseen(RESOURCE_SLICES, "n1-slice-uid")
    drive.restart(seen_s=60)
    assert drive.table("device", "is_present") == [(True,), (False,)]


def test_network_cards_are_not_told() -> None:
    drive = drive_with()
    drive.put(RESOURCE_CLAIMS, claim("mlx5-0", driver="dra.example.org"))
    assert drive.table("device_claim") == []


def test_wish_that_turns_out_to_be_for_a_network_card() -> None:
    drive = drive_with()
    drive.put(RESOURCE_CLAIMS, claim(None))
    drive.put(RESOURCE_CLAIMS, claim("mlx5-0", driver="dra.example.org"))
    assert drive.table("device_claim", "state", "driver") == [("pending", None), ("released", None)]


def claiming_pod(*, made: bool = True, **options: Any) -> Body:  # noqa: ANN401 - passed on to pod()
    """Return a pod without requests that uses the claim ``c``."""
    wish = {"name": "gpu", "resourceClaimTemplateName": "template"}
    found = pod("p", gpu_count=0, spec={"resourceClaims": [wish]}, **options)
    if made:
        found["status"]["resourceClaimStatuses"] = [{"name": "gpu", "resourceClaimName": "c"}]
    return found


def wish(*, count: int | None = None, is_old: bool = False) -> Body:
    """Return a claim that got nothing yet."""
    exactly: Body = {"deviceClassName": DRIVER, **({"count": count} if count else {})}
    request = {"name": "gpu", **(exactly if is_old else {"exactly": exactly})}
    return {"metadata": metadata("c"), "spec": {"devices": {"requests": [request]}}}


@pytest.mark.parametrize(
    ("claims", "made", "expected"),
    [
        pytest.param([], False, (None, None, None), id="claim not made yet"),
        pytest.param([], True, (None, None, None), id="claim not seen yet"),
        pytest.param([wish()], True, (1, None, DRIVER), id="wished for"),
        pytest.param([wish(count=4)], True, (4, None, DRIVER), id="four wished for"),
        pytest.param([wish(is_old=True)], True, (1, None, DRIVER), id="in the older API"),
        pytest.param([claim()], True, (1, 1_000, DRIVER), id="a whole board"),
        pytest.param([claim(DYNAMIC)], True, (1, 143, DRIVER), id="a partition"),
        pytest.param([claim(admin=True)], True, (0, None, None), id="administrator"),
        pytest.param([claim("x", driver="dra.net")], True, (0, None, None), id="network card"),
    ],
)
def test_pod_asks_by_claim(
    claims: list[Body], made: bool, expected: tuple[int | None, int | None, str | None]
) -> None:
    drive = drive_with(offer(WHOLE))
    for each in claims:
        drive.put(RESOURCE_CLAIMS, each)
    drive.put(PODS, claiming_pod(made=made))
    count, milli, resource = expected
    assert drive.table("pod", "gpu_count", "gpu_resource") == [(count, resource)]
    assert drive.table("workload", "gpu_count", "gpu_milli") == [(count, milli)]


def test_claim_seen_after_its_pod_is_counted_with_the_next_change() -> None:
    drive = drive_with(offer(WHOLE))
    drive.put(PODS, claiming_pod(made=False))
    drive.put(RESOURCE_CLAIMS, claim())
    drive.put(PODS, claiming_pod(scheduled_s=4))
    assert drive.table("workload", "gpu_count", "gpu_milli") == [(None, None), (1, 1_000)]


def test_gang_with_claims_keeps_its_size_when_one_of_it_ends() -> None:
    drive = drive_with(offer(WHOLE))
    drive.put(RESOURCE_CLAIMS, claim())
    for name in ("p", "q"):
        body = claiming_pod(scheduled_s=1, started_s=2, owner=owner_reference("Trial", "t"))
        body["metadata"] |= {"name": name, "uid": f"{name}-uid"}
        drive.put(PODS, body)
    done = claiming_pod(
        scheduled_s=1, started_s=2, finished_s=9, owner=owner_reference("Trial", "t")
    )
    drive.put(PODS, done, seen_s=9)
    assert drive.table("workload", "gpu_count") == [(1,), (2,)]
