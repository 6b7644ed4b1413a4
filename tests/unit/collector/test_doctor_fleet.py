"""What the doctor sees only when all targets, and the cluster's nodes, are seen together."""

from __future__ import annotations

import pytest

from collector.doctor.exporters import exporter_findings
from collector.doctor.fleet import NodeView, fleet_findings, told_nowhere, views_findings
from collector.doctor.target_view import TargetView
from tests.support.doctor_views import answer, codes, told, view

FIRST, SECOND, THIRD = (f"http://10.0.0.{n}:9400/metrics" for n in (1, 2, 3))


def board(uuid: str, *, node: str = "n1", url: str = FIRST) -> TargetView:
    return view(answer(labels={"UUID": uuid, "Hostname": node}), url=url)


def boards(count: int, *, node: str = "n1") -> TargetView:
    """Return a target with so many boards."""
    lines = [
        text
        for n in range(count)
        for text in answer(labels={"UUID": f"GPU-{n}", "gpu": str(n), "Hostname": node})
    ]
    return view(lines, url=FIRST)


def node(gpu_count: int = 8, *, board_count: int | None = 8, name: str = "n1") -> NodeView:
    return NodeView(name=name, gpu_count=gpu_count, board_count=board_count)


def test_targets_of_their_own_are_nothing_to_tell() -> None:
    views = [board("GPU-a"), board("GPU-b", node="n2", url=SECOND)]
    assert fleet_findings(views, nodes=None) == []


def test_two_exporters_on_one_node() -> None:
    views = [board("GPU-a", url=SECOND), board("GPU-a"), board("GPU-b", node="n3", url=THIRD)]
    (found,) = fleet_findings(views, nodes=None)
    assert (found.code, found.subject) == ("devices_doubled", FIRST)
    assert found.message.startswith(f"1 device shown by {SECOND} too")


@pytest.mark.parametrize(
    ("shown", "code"),
    [
        pytest.param(0, "node_unseen", id="none of eight"),
        pytest.param(1, "node_partly_seen", id="one of eight"),
        pytest.param(7, "node_partly_seen", id="one missing"),
        pytest.param(8, None, id="all"),
        pytest.param(9, None, id="more than the cluster knows"),
    ],
)
def test_gpus_of_a_node_that_no_target_shows(shown: int, code: str | None) -> None:
    views = [boards(shown)] if shown else []
    found = fleet_findings(views, nodes=[node()])
    assert codes(found) == ([] if code is None else [code])
    if code is not None:
        assert found[0].subject == "n1"


@pytest.mark.parametrize(
    ("gpu_count", "board_count", "codes_told"),
    [
        pytest.param(0, None, [], id="a node without GPUs"),
        pytest.param(56, None, [], id="instances or shares: boards are not known"),
        pytest.param(80, 8, ["node_partly_seen"], id="shares of boards that are known"),
    ],
)
def test_nodes_that_offer_no_boards(
    gpu_count: int, board_count: int | None, codes_told: list[str]
) -> None:
    found = fleet_findings([boards(2)], nodes=[node(gpu_count, board_count=board_count)])
    assert codes(found) == codes_told


def test_a_node_whose_gpus_are_handed_out_in_shares_by_hami() -> None:
    hami = view(
        ['HostGPUMemoryUsage{deviceidx="0",deviceuuid="GPU-0",node="n1",zone="vGPU"} 5'],
        url=SECOND,
        node="n1",
    )
    assert codes(fleet_findings([boards(1), hami], nodes=[node(10, board_count=10)])) == [
        "devices_doubled"
    ]


def test_a_target_on_a_node_that_the_cluster_does_not_have() -> None:
    (found,) = fleet_findings([board("GPU-a", node="n1.example.org")], nodes=[node(0)])
    assert (found.code, found.subject) == ("node_unknown", FIRST)
    assert "n1.example.org, which is no node of the cluster" in found.message
    assert fleet_findings([board("GPU-a")], nodes=[node(1, board_count=1)]) == []
    assert fleet_findings([board("GPU-a", node="n9")], nodes=None) == []


def test_what_one_exporter_lacks_another_may_tell() -> None:
    poor = view(answer(without=("DCGM_FI_DEV_POWER_USAGE",)), url=FIRST)
    rich = board("GPU-a", url=SECOND)
    stranger = board("GPU-b", url=THIRD)
    findings = exporter_findings(poor)
    assert codes(findings) == ["power_absent"]
    assert told_nowhere(findings, views=[poor, rich]) == []
    assert codes(told_nowhere(findings, views=[poor, stranger])) == ["power_absent"]
    both = [
        *findings,
        *exporter_findings(view(answer(without=("DCGM_FI_DEV_POWER_USAGE",)), url=SECOND)),
    ]
    views = [poor, view(answer(), url=SECOND)]
    assert told(told_nowhere(both, views=views)) == [("gap", "power_absent")] * 2
    assert told(views_findings([poor, rich])) == [
        ("fine", "target_complete"),
        ("fine", "target_complete"),
    ]


def test_a_wrong_clock_is_not_made_good_by_another_target() -> None:
    skewed = view(answer(), url=FIRST, skew_s=60.0)
    findings = exporter_findings(skewed)
    assert codes(told_nowhere(findings, views=[skewed, board("GPU-a", url=SECOND)])) == [
        "clock_skew"
    ]
