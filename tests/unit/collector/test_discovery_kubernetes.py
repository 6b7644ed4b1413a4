"""Exporters in the cluster: which objects stand for which targets."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from collector.discovery import ScrapeTarget
from collector.discovery_kubernetes import ExporterTargets, Role, Selection
from collector.sources.kubernetes.change import Change, ChangeType, ObjectKey
from collector.sources.kubernetes.resource import KubernetesObject
from tests.support.kubernetes_feeds import NOON, THINGS, Thing, ThingMetadata, ThingSpec

Manifest = dict[str, Any]
NOTHING = ObjectKey(namespace=None, name="", uid="")


def metadata(name: str, **more: object) -> Manifest:
    return {"name": name, "namespace": "gpu", "uid": f"uid-{name}", "resourceVersion": "1", **more}


def pod(
    name: str = "dcgm-1",
    *,
    ports: list[Manifest] | None = None,
    ip: str | None = "10.0.0.1",
    phase: str = "Running",
    annotations: dict[str, str] | None = None,
) -> Manifest:
    return {
        "metadata": metadata(name, annotations=annotations),
        "spec": {
            "nodeName": "node-1",
            "containers": [{"ports": [{"containerPort": 9400}] if ports is None else ports}],
        },
        "status": {"phase": phase, "podIP": ip},
    }


def endpoint(ip: str, *, node: str | None = "node-1", pod_name: str | None = "dcgm-1") -> Manifest:
    reference = None if pod_name is None else {"kind": "Pod", "name": pod_name}
    return {"addresses": [ip], "nodeName": node, "targetRef": reference}


def endpoint_slice(*endpoints: Manifest, ports: list[Manifest] | None = None) -> Manifest:
    return {
        "metadata": metadata("dcgm-abc"),
        "addressType": "IPv4",
        "endpoints": list(endpoints),
        "ports": [{"name": "metrics", "port": 9400}] if ports is None else ports,
    }


def told(
    found: ExporterTargets, manifest: Manifest, kind: ChangeType = ChangeType.ADDED
) -> ExporterTargets:
    """Tell one change of the only selection, decoded as the feed does."""
    (resource,) = found.resources
    decoded: KubernetesObject = msgspec.json.decode(
        msgspec.json.encode(manifest), type=resource.decode
    )
    own = decoded.metadata
    key = ObjectKey(namespace=own.namespace, name=own.name, uid=own.uid)
    found.apply(Change(resource=resource, type=kind, key=key, object=decoded, observed_at=NOON))
    return found


def exporters(role: Role = Role.POD, **more: str) -> ExporterTargets:
    return ExporterTargets([Selection(role=role, label_selector="app=dcgm", **more)])


@pytest.mark.parametrize(
    ("role", "plural", "group"),
    [
        (Role.POD, "pods", ""),
        (Role.ENDPOINTSLICE, "endpointslices", "discovery.k8s.io"),
        (Role.ENDPOINTS, "endpoints", ""),
    ],
)
def test_feed_is_told_what_to_follow(role: Role, plural: str, group: str) -> None:
    (resource,) = exporters(role, namespace="gpu").resources
    assert (resource.plural, resource.group) == (plural, group)
    assert (resource.label_selector, resource.namespace) == ("app=dcgm", "gpu")


def test_pod_is_a_target_with_its_node_and_its_own_name() -> None:
    assert told(exporters(), pod()).look() == (
        ScrapeTarget(url="http://10.0.0.1:9400/metrics", node="node-1", pod="dcgm-1"),
    )


@pytest.mark.parametrize(
    "gone",
    [
        pytest.param(pod(ip=None), id="no address yet"),
        pytest.param(pod(ip=""), id="empty address"),
        pytest.param(pod(phase="Succeeded"), id="succeeded"),
        pytest.param(pod(phase="Failed"), id="failed"),
        pytest.param({**pod(), "status": None}, id="no status"),
    ],
)
def test_pod_that_cannot_be_reached_is_no_target(gone: Manifest) -> None:
    found = told(exporters(), pod())
    told(found, gone, ChangeType.MODIFIED)
    assert found.look() == ()
    assert found.states()[0].error is None


def test_pod_that_is_deleted_is_gone_and_one_that_moves_has_its_new_address() -> None:
    found = told(exporters(), pod())
    told(found, pod(ip="10.0.0.2"), ChangeType.MODIFIED)
    assert [one.url for one in found.look()] == ["http://10.0.0.2:9400/metrics"]
    told(found, pod(), ChangeType.DELETED)
    assert found.look() == ()


@pytest.mark.parametrize(
    ("ports", "wanted", "url"),
    [
        pytest.param([{"containerPort": 1}], None, "http://10.0.0.1:1/metrics", id="the only one"),
        pytest.param(
            [{"containerPort": 1}, {"containerPort": 2, "name": "metrics"}],
            None,
            "http://10.0.0.1:2/metrics",
            id="the one named metrics",
        ),
        pytest.param(
            [{"containerPort": 1, "name": "a"}, {"containerPort": 2, "name": "b"}],
            "b",
            "http://10.0.0.1:2/metrics",
            id="the one of that name",
        ),
        pytest.param(
            [], "9400", "http://10.0.0.1:9400/metrics", id="a number need not be declared"
        ),
    ],
)
def test_port_of_a_pod(ports: list[Manifest], wanted: str | None, url: str) -> None:
    more = {} if wanted is None else {"port": wanted}
    assert [one.url for one in told(exporters(**more), pod(ports=ports)).look()] == [url]


@pytest.mark.parametrize(
    ("ports", "wanted", "words"),
    [
        pytest.param([], None, "gpu/dcgm-1 declares no port", id="none at all"),
        pytest.param([{"containerPort": 1}], "x", "declares no port x", id="none of that name"),
    ],
)
def test_pod_without_a_port_is_told(ports: list[Manifest], wanted: str | None, words: str) -> None:
    more = {} if wanted is None else {"port": wanted}
    found = told(exporters(**more), pod(ports=ports))
    assert found.look() == ()
    assert words in (found.states()[0].error or "")
    told(found, pod(ports=ports), ChangeType.DELETED)
    assert found.states()[0].error is None


def test_annotations_of_a_pod_are_kept_to_unless_a_port_is_set() -> None:
    noted = pod(
        annotations={
            "prometheus.io/port": "7000",
            "prometheus.io/path": "/gpu",
            "prometheus.io/scheme": "https",
        }
    )
    assert [one.url for one in told(exporters(), noted).look()] == ["https://10.0.0.1:7000/gpu"]
    own = exporters(port="1")
    assert [one.url for one in told(own, noted).look()] == ["https://10.0.0.1:1/gpu"]


def test_address_that_makes_no_url_is_told() -> None:
    found = told(exporters(), pod(annotations={"prometheus.io/path": "/a b"}))
    assert found.look() == ()
    assert "gpu/dcgm-1: bad target" in (found.states()[0].error or "")


def test_ipv6_address_stands_in_brackets() -> None:
    assert told(exporters(), pod(ip="fd00::1")).look()[0].url == "http://[fd00::1]:9400/metrics"


def test_slice_gives_a_target_per_endpoint() -> None:
    found = told(
        exporters(Role.ENDPOINTSLICE),
        endpoint_slice(
            endpoint("10.0.0.1"),
            {**endpoint("10.0.0.2", node="node-2", pod_name=None), "addresses": ["10.0.0.2", "x"]},
            {"addresses": []},
        ),
    )
    assert found.look() == (
        ScrapeTarget(url="http://10.0.0.1:9400/metrics", node="node-1", pod="dcgm-1"),
        ScrapeTarget(url="http://10.0.0.2:9400/metrics", node="node-2", pod=None),
    )


@pytest.mark.parametrize(
    "empty",
    [
        pytest.param({**endpoint_slice(), "endpoints": None}, id="no endpoints"),
        pytest.param({**endpoint_slice(), "ports": None}, id="no endpoints and no ports"),
    ],
)
def test_slice_of_nothing_has_no_targets(empty: Manifest) -> None:
    found = told(exporters(Role.ENDPOINTSLICE), empty)
    assert (found.look(), found.states()[0].error) == ((), None)


def test_slice_without_the_port_is_told() -> None:
    found = told(exporters(Role.ENDPOINTSLICE, port="x"), endpoint_slice(endpoint("10.0.0.1")))
    assert "declares no port x" in (found.states()[0].error or "")


def test_endpoints_count_ready_or_not() -> None:
    address = {"ip": "10.0.0.1", "nodeName": "node-1", "targetRef": {"kind": "Pod", "name": "p1"}}
    other = {"ip": "10.0.0.2", "targetRef": {"kind": "Node", "name": "node-2"}}
    manifest = {
        "metadata": metadata("dcgm"),
        "subsets": [
            {"addresses": [address], "notReadyAddresses": [other], "ports": [{"port": 9400}]},
            {"addresses": None, "ports": None},
        ],
    }
    assert told(exporters(Role.ENDPOINTS), manifest).look() == (
        ScrapeTarget(url="http://10.0.0.1:9400/metrics", node="node-1", pod="p1"),
        ScrapeTarget(url="http://10.0.0.2:9400/metrics", node=None, pod=None),
    )


def test_selection_that_matches_nothing_says_so_once_all_is_known() -> None:
    found = exporters(namespace="gpu")
    (resource,) = found.resources
    assert (found.is_synced, found.states()[0].error) == (False, None)
    synced = Change(
        resource=resource, type=ChangeType.SYNCED, key=NOTHING, object=None, observed_at=NOON
    )
    found.apply(synced)
    assert found.is_synced is True
    (state,) = found.states()
    assert state.source == "pod app=dcgm in gpu"
    assert state.error == "nothing in the cluster matches"


def test_changes_of_other_resources_are_passed_over() -> None:
    thing = Thing(
        metadata=ThingMetadata(name="x", uid="u", resource_version="1"), spec=ThingSpec(size=1)
    )
    key = ObjectKey(namespace=None, name="x", uid="u")
    found = exporters()
    found.apply(
        Change(resource=THINGS, type=ChangeType.ADDED, key=key, object=thing, observed_at=NOON)
    )
    assert found.look() == ()
