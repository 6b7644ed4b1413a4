"""How an operator names exporters of the cluster, and what is no such name."""

from __future__ import annotations

import pytest

from collector.discovery_kubernetes import Role, Selection
from collector.exporter_selection import selection, selections
from steward.errors import SettingsError

DCGM = "app=nvidia-dcgm-exporter"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(DCGM, Selection(label_selector=DCGM), id="labels alone mean pods"),
        pytest.param(
            f" {DCGM}@gpu-operator:9400 ",
            Selection(label_selector=DCGM, namespace="gpu-operator", port="9400"),
            id="namespace and port number",
        ),
        pytest.param(
            f"endpointslice:{DCGM}:gpu-metrics",
            Selection(role=Role.ENDPOINTSLICE, label_selector=DCGM, port="gpu-metrics"),
            id="role and port name",
        ),
        pytest.param(
            "app.kubernetes.io/name in (dcgm-exporter, hami),!canary",
            Selection(label_selector="app.kubernetes.io/name in (dcgm-exporter, hami),!canary"),
            id="a set and an absence",
        ),
        pytest.param("gpu", Selection(label_selector="gpu"), id="a label that is there"),
    ],
)
def test_a_selection(text: str, expected: Selection) -> None:
    assert selection(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        ":9400",
        "@ns",
        "a=b@",
        "a=b:",
        "a=b:0",
        "a=b:65536",
        "a=b@Upper",
        "a b",
        "service:a=b:1",
        "a=b,,c=d",
    ],
)
def test_what_selects_nothing_is_named(text: str) -> None:
    with pytest.raises(SettingsError, match="selects no exporters by their labels") as told:
        selections([DCGM, text])
    assert repr(text) in told.value.message
