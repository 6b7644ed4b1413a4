"""Nodes and what they are made of, idle per node, and quota nobody used."""

from __future__ import annotations

from fractions import Fraction

import pytest

from analytics.cost.assets import (
    GpuCount,
    Used,
    component_rates,
    efficiency,
    gpu_count,
    node_cost,
    node_price,
    physical_share,
)
from analytics.cost.idle import (
    Allocated,
    Asset,
    Fault,
    Level,
    adjusted,
    idle_cost,
    quota_overhead,
)


@pytest.mark.parametrize(
    ("node", "rates"),
    [
        pytest.param(70, {"cpu": 30, "gpu": 40}, id="what the components cost anyway"),
        pytest.param(35, {"cpu": 15, "gpu": 20}, id="half of it"),
        pytest.param(0, {"cpu": 0, "gpu": 0}, id="a free node"),
        pytest.param(None, {"cpu": 30, "gpu": 40}, id="no price of its own"),
    ],
)
def test_component_rates_keep_their_ratio(node: int | None, rates: dict[str, int]) -> None:
    base, amounts = {"cpu": 30, "gpu": 40}, {"cpu": 1, "gpu": 1, "disk": 5}
    assert component_rates(base, amounts, node_price=node) == rates


def test_a_node_price_cannot_be_divided_over_nothing() -> None:
    assert component_rates({"cpu": 0}, {"cpu": 4}, node_price=5) is None
    assert component_rates({"cpu": 1}, {}, node_price=5) is None


@pytest.mark.parametrize(
    ("base", "gpus", "per_gpu", "price"),
    [
        pytest.param(1, 2, 3, 7, id="base and GPUs"),
        pytest.param(1, 0, None, 1, id="no GPU needs no price for one"),
        pytest.param(0, 0, 3, 0, id="zero is a price"),
        pytest.param(1, 1, None, None, id="GPUs without a price"),
        pytest.param(None, 1, 3, None, id="no base"),
        pytest.param(1, None, 3, None, id="GPUs not counted"),
    ],
)
def test_node_price(
    base: int | None, gpus: int | None, per_gpu: int | None, price: int | None
) -> None:
    assert node_price(base, gpus=gpus, per_gpu=per_gpu) == price


PLAIN, SHARED = "nvidia.com/gpu", "nvidia.com/gpu.shared"
COUNT = "nvidia.com/gpu.count"


@pytest.mark.parametrize(
    ("capacity", "labels", "physical", "virtual"),
    [
        pytest.param({PLAIN: 2}, {}, 2, 2, id="whole GPUs"),
        pytest.param({PLAIN: 8}, {COUNT: 2}, 2, 8, id="replicas under the plain name"),
        pytest.param({SHARED: 4}, {COUNT: "1"}, 1, 4, id="renamed replicas"),
        pytest.param({SHARED: 4}, {}, None, 4, id="replicas of unknown boards"),
        pytest.param({PLAIN: 1, SHARED: 4}, {COUNT: 2}, 2, 5, id="both kinds"),
        pytest.param({PLAIN: 1, SHARED: 4}, {}, None, 5, id="both kinds, boards unknown"),
        pytest.param({PLAIN: 0}, {}, 0, 0, id="zero is a count"),
        pytest.param({}, {}, None, None, id="not told"),
        pytest.param({PLAIN: "many"}, {}, None, None, id="no number"),
        pytest.param({PLAIN: "-1"}, {}, None, None, id="what upstream calls not found"),
        pytest.param({PLAIN: 2}, {COUNT: "?"}, 2, 2, id="a label that says nothing"),
    ],
)
def test_gpu_count(
    capacity: dict[str, int | str],
    labels: dict[str, int | str],
    physical: int | None,
    virtual: int | None,
) -> None:
    assert gpu_count(capacity, labels) == GpuCount(physical=physical, virtual=virtual)


@pytest.mark.parametrize(
    ("physical", "virtual", "share"),
    [
        pytest.param(2, 10, 1, id="five of ten replicas of two boards"),
        pytest.param(None, 10, None, id="boards unknown"),
        pytest.param(2, None, None, id="replicas unknown"),
        pytest.param(2, 0, None, id="nothing offered"),
    ],
)
def test_physical_share(physical: int | None, virtual: int | None, share: int | None) -> None:
    assert physical_share(5, GpuCount(physical=physical, virtual=virtual)) == share


@pytest.mark.parametrize(
    ("resources", "ratio", "coverage"),
    [
        pytest.param([], None, None, id="nothing"),
        pytest.param([Used(price=1, requested=4, used=1)], Fraction(1, 4), 1, id="known"),
        pytest.param([Used(price=1, requested=4, used=0)], 0, 1, id="zero"),
        pytest.param([Used(price=1, requested=4, used=None)], None, 0, id="unknown"),
        pytest.param(
            [Used(price=1, requested=4, used=2), Used(price=3, requested=4, used=None)],
            Fraction(1, 2),
            Fraction(1, 4),
            id="half of what is known, a quarter of the cost",
        ),
        pytest.param([Used(price=0, requested=4, used=2)], None, None, id="free of charge"),
        pytest.param([Used(price=1, requested=1, used=3)], 3, 1, id="more than requested"),
    ],
)
def test_efficiency(
    resources: list[Used], ratio: Fraction | None, coverage: Fraction | None
) -> None:
    told = efficiency(resources)
    assert (told.ratio, told.coverage_ratio) == (ratio, coverage)


def asset(node: str, cost: int, *, adjustment: int = 0) -> Asset:
    """Return a node of one resource."""
    return Asset(cluster="c", node=node, costs={"gpu": cost}, adjustment=adjustment)


def held(node: str, cost: int) -> Allocated:
    """Return what was allocated of it."""
    return Allocated(cluster="c", node=node, costs={"gpu": cost})


@pytest.mark.parametrize(
    ("allocated", "idle", "shown", "faults"),
    [
        pytest.param(9, 1, 1, (), id="just inside"),
        pytest.param(10, 0, 0, (), id="all allocated"),
        pytest.param(
            11,
            -1,
            None,
            (Fault(cluster="c", node="n1", resource="gpu", excess=Fraction(1)),),
            id="more than there is",
        ),
    ],
)
def test_idle_below_zero_is_flagged_not_clamped_not_shown(
    allocated: int, idle: int, shown: int | None, faults: tuple[Fault, ...]
) -> None:
    told = idle_cost([asset("n1", 10)], [held("n1", allocated)], level=Level.NODE)
    assert told.exact == {("n1", "gpu"): idle}
    assert told.shown() == {("n1", "gpu"): shown}
    assert told.faults == faults


def test_a_cluster_s_sum_does_not_hide_a_node_s_fault() -> None:
    assets = [asset("n1", 0), asset("n2", 10)]
    told = idle_cost(assets, [held("n1", 2)], level=Level.CLUSTER)
    assert told.exact == {("c", "gpu"): 8}
    assert [fault.node for fault in told.faults] == ["n1"]


def test_a_node_without_work_is_idle_and_one_without_an_asset_is_a_fault() -> None:
    told = idle_cost([asset("n1", 3)], [held("unpriced", 2)], level=Level.NODE)
    assert told.exact == {("n1", "gpu"): 3, ("unpriced", "gpu"): -2}
    assert [fault.node for fault in told.faults] == ["unpriced"]


def test_an_adjustment_is_spread_by_cost() -> None:
    node = Asset(cluster="c", node="n", costs={"cpu": 30, "gpu": 10}, adjustment=-4)
    assert adjusted(node) == {"cpu": 27, "gpu": 9}
    assert adjusted(asset("n", 0)) == {"gpu": 0}
    with pytest.raises(ValueError, match="costs nothing"):
        adjusted(asset("n", 0, adjustment=1))


@pytest.mark.parametrize(
    ("requested", "unused"),
    [
        pytest.param({"gpu": 3}, 1, id="one unused"),
        pytest.param({"gpu": 4}, 0, id="all requested"),
        pytest.param({"gpu": 5}, 0, id="beyond the quota"),
        pytest.param({}, 4, id="nothing requested"),
    ],
)
def test_quota_overhead_is_never_below_zero(requested: dict[str, int], unused: int) -> None:
    told = quota_overhead({"gpu": 4, "free": 9}, requested, prices={"gpu": 2}, hours=3)
    assert told.costs == {"gpu": unused * 6}
    assert told.total == unused * 6
    assert told.is_notional


def test_components_without_an_amount_cost_nothing() -> None:
    assert node_cost({"gpu": 5, "cpu": 1}, {"cpu": 2}) == 2
