"""Addresses with labels beside, as Prometheus' service discovery writes them."""

from __future__ import annotations

import pytest

from collector.discovery import ScrapeTarget
from collector.discovery_labels import labelled_target, merged_targets, targets_of
from steward.errors import InputError


@pytest.mark.parametrize(
    ("address", "labels", "url"),
    [
        pytest.param("h:9400", {}, "http://h:9400/metrics", id="address alone"),
        pytest.param("h", {}, "http://h/metrics", id="without a port"),
        pytest.param("[::1]:9400", {}, "http://[::1]:9400/metrics", id="IPv6"),
        pytest.param("h:1", {"__scheme__": "https"}, "https://h:1/metrics", id="scheme"),
        pytest.param("h:1", {"__metrics_path__": "/x/y"}, "http://h:1/x/y", id="path"),
        pytest.param("h:1", {"__metrics_path__": "x"}, "http://h:1/x", id="path without slash"),
        pytest.param(
            "h:1", {"__address__": "other:2"}, "http://other:2/metrics", id="address label"
        ),
        pytest.param(
            "h:1",
            {"__param_module": "gpu", "__param_a": "b c"},
            "http://h:1/metrics?a=b+c&module=gpu",
            id="parameters",
        ),
        pytest.param("https://h/own", {}, "https://h/own", id="a URL stands for itself"),
        pytest.param("h:1", {"job": "x", "__meta_x": "y"}, "http://h:1/metrics", id="others"),
    ],
)
def test_url_follows_the_conventions(address: str, labels: dict[str, str], url: str) -> None:
    assert labelled_target(address, labels) == ScrapeTarget(url=url, node=None, pod=None)


@pytest.mark.parametrize(
    ("labels", "node"),
    [
        pytest.param({}, None, id="nothing"),
        pytest.param({"node": "n1"}, "n1", id="node"),
        pytest.param({"node": ""}, None, id="an empty node is none"),
        pytest.param({"__meta_kubernetes_pod_node_name": "n1"}, "n1", id="of the pod"),
        pytest.param({"__meta_kubernetes_endpoint_node_name": "n1"}, "n1", id="of the endpoint"),
        pytest.param(
            {"__meta_kubernetes_endpointslice_endpoint_node_name": "n1"}, "n1", id="of the slice"
        ),
        pytest.param({"__meta_kubernetes_node_name": "n1"}, "n1", id="of the node"),
        pytest.param({"node": "n1", "__meta_kubernetes_node_name": "n2"}, "n1", id="node wins"),
        pytest.param({"node": "n1", "instance": "n2"}, "n1", id="node wins over instance"),
        pytest.param({"instance": "n2"}, "n2", id="instance with a name"),
        pytest.param({"instance": "h:9400"}, None, id="instance with an address"),
        pytest.param({"instance": "10.0.0.1"}, None, id="instance with an IP address"),
        pytest.param({"instance": "http://h/"}, None, id="instance with a URL"),
    ],
)
def test_node_is_taken_from_the_first_label_that_names_it(
    labels: dict[str, str], node: str | None
) -> None:
    assert labelled_target("h:1", labels).node == node


@pytest.mark.parametrize(
    ("labels", "pod"),
    [
        pytest.param({}, None, id="nothing"),
        pytest.param({"pod": "p1"}, "p1", id="pod"),
        pytest.param({"pod": "p1", "__meta_kubernetes_pod_name": "p2"}, "p2", id="meta wins"),
    ],
)
def test_exporters_own_pod_is_known(labels: dict[str, str], pod: str | None) -> None:
    assert labelled_target("h:1", labels).pod == pod


def test_groups_are_flattened_in_order() -> None:
    document = [
        {"targets": ["a:1", "b:2"], "labels": {"node": "n1"}},
        {"targets": ["c:3"]},
        {"targets": [], "labels": None},
        {},
    ]
    assert targets_of(document, source="f") == (
        ScrapeTarget(url="http://a:1/metrics", node="n1"),
        ScrapeTarget(url="http://b:2/metrics", node="n1"),
        ScrapeTarget(url="http://c:3/metrics"),
    )


@pytest.mark.parametrize(
    ("document", "words"),
    [
        pytest.param({}, "it is not a list of groups", id="an object"),
        pytest.param(None, "it is not a list of groups", id="nothing"),
        pytest.param(["h:1"], "group 1 is no object", id="plain addresses"),
        pytest.param([{}, {"targets": "h:1"}], "targets of group 2", id="one text"),
        pytest.param([{"targets": [3]}], "targets of group 1", id="a number"),
        pytest.param([{"labels": []}], "labels of group 1 is no object", id="labels as list"),
        pytest.param([{"labels": {"a": 1}}], "a label of group 1 is no text", id="number label"),
        pytest.param([{"targets": ["h h"]}], "bad target", id="bad address"),
        pytest.param([{"targets": ["ok:1", "u:p@h"]}], "credentials", id="credentials"),
    ],
)
def test_document_is_taken_whole_or_not_at_all(document: object, words: str) -> None:
    with pytest.raises(InputError, match="the source") as caught:
        targets_of(document, source="the source")
    assert words in caught.value.message


def test_merging_keeps_each_url_once_and_what_is_known_of_it() -> None:
    plain = ScrapeTarget(url="http://a/metrics")
    with_pod = ScrapeTarget(url="http://a/metrics", pod="p")
    with_node = ScrapeTarget(url="http://a/metrics", node="n")
    whole = ScrapeTarget(url="http://a/metrics", node="n", pod="p")
    other = ScrapeTarget(url="http://Z/metrics")
    assert merged_targets([]) == ()
    assert merged_targets([[plain, other], [plain]]) == (other, plain)
    assert merged_targets([[plain], [with_pod]]) == (with_pod,)
    assert merged_targets([[with_node], [with_pod]]) == (with_node,)
    assert merged_targets([[whole], [with_node], [plain]]) == (whole,)
