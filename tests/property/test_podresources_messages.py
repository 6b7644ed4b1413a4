"""Whatever protobuf's own runtime writes, the lean reader reads the same."""

from __future__ import annotations

from typing import Any

from google.protobuf import json_format
from hypothesis import given
from hypothesis import strategies as st

from collector.sources.podresources.messages import read_allocatable, read_list
from collector.sources.podresources.wire import MessageError, fields
from tests.support.kubelet_server import claim, container, encoded, message_classes, pod

TEXT = st.text(st.characters(codec="utf-8"), max_size=12)
NAMES = st.lists(TEXT, max_size=3)
DEVICES = st.dictionaries(TEXT, NAMES, max_size=3)
CLAIMS = st.lists(st.builds(lambda name, ids: claim(name, *ids), TEXT, NAMES), max_size=2)
CONTAINERS = st.builds(
    lambda name, devices, claims: container(name, devices=devices, claims=claims),
    TEXT,
    DEVICES,
    CLAIMS,
)
PODS = st.lists(
    st.builds(
        lambda name, namespace, inside: pod(name, *inside, namespace=namespace),
        TEXT,
        TEXT,
        st.lists(CONTAINERS, max_size=3),
    ),
    max_size=4,
)
Json = dict[str, Any]


def as_read(one: Json, held: Json) -> tuple[object, ...]:
    """Return a container as the reader must give it."""
    return (
        one.get("namespace", ""),
        one.get("name", ""),
        held.get("name", ""),
        [
            (each.get("resourceName", ""), tuple(each.get("deviceIds", ())))
            for each in held.get("devices", ())
        ],
        [
            (
                each.get("claimNamespace", ""),
                each.get("claimName", ""),
                [
                    (
                        inside.get("driverName", ""),
                        inside.get("poolName", ""),
                        inside.get("deviceName", ""),
                    )
                    for inside in each.get("claimResources", ())
                ],
            )
            for each in held.get("dynamicResources", ())
        ],
    )


@given(PODS)
def test_list(pods: list[Json]) -> None:
    message = encoded("ListPodResourcesResponse", {"podResources": pods})
    read = [
        (
            each.namespace,
            each.pod,
            each.container,
            [(grant.resource, grant.device_ids) for grant in each.devices],
            [
                (
                    held.namespace,
                    held.claim,
                    [(one.driver, one.pool, one.device) for one in held.devices],
                )
                for held in each.claims
            ],
        )
        for each in read_list(message)
    ]
    assert read == [as_read(one, held) for one in pods for held in one["containers"]]


@given(DEVICES)
def test_allocatable(devices: dict[str, list[str]]) -> None:
    content = container("", devices=devices)
    message = encoded(
        "AllocatableResourcesResponse", {"devices": content["devices"], "memory": content["memory"]}
    )
    assert [(each.resource, list(each.device_ids)) for each in read_allocatable(message)] == list(
        devices.items()
    )


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(message: bytes) -> None:
    """Whatever comes, nothing but ``MessageError`` escapes."""
    try:
        list(fields(message))
        read_list(message)
    except MessageError:
        return


@given(PODS, st.data())
def test_a_message_that_was_cut_is_no_crash(pods: list[Json], data: st.DataObject) -> None:
    message = encoded("ListPodResourcesResponse", {"podResources": pods})
    cut = message[: data.draw(st.integers(0, len(message)))]
    try:
        read_list(cut)
    except MessageError:
        return


def test_the_reference_is_the_kubelets_own() -> None:
    """The fields that the reader knows have these numbers in ``api.proto``."""
    numbers = {
        (name, field.name): field.number
        for name, each in message_classes().items()
        for field in each.DESCRIPTOR.fields
    }
    assert numbers["ListPodResourcesResponse", "pod_resources"] == 1
    assert numbers["ContainerResources", "dynamic_resources"] == 5
    assert numbers["ClaimResource", "device_name"] == 4
    assert json_format.MessageToDict(message_classes()["PodResources"]()) == {}
