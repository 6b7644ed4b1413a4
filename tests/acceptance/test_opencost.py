"""Every numeric case restated from the tests of OpenCost and the documents of Kubecost."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from pathlib import Path

import pytest

from analytics.cost.assets import (
    Used,
    component_rates,
    efficiency,
    gpu_count,
    node_cost,
    node_price,
)
from analytics.cost.idle import Allocated, Asset, IdleCost, Level, idle_cost, quota_overhead
from analytics.cost.rounding import money_text, parts_of, rounded
from analytics.cost.settle import IDLE, Line, Rules, Settlement, printed_bills, settle
from analytics.cost.shares import REMAINDER, active_shares
from analytics.cost.split import SplitRule
from steward.units import MIB_BYTES
from tests.support.cost_cases import cases_of
from tests.support.exposition_texts import Exporter, cells, events, line

MISSING = "__unallocated__"
"""The row of what lacks the key it is grouped by."""
TOTAL = Fraction(112)
SIGNALS = ("device_uuid", "memory_used_bytes", "sm_active_ratio")
CENT, PART, MANY, SAME = "cent", "1e-6", "1e-5", "exact"

Given = Mapping[str, object]
World = Mapping[str, object]
Found = Mapping[str, object]


def number(told: object) -> Fraction:
    """Return a number of the file as it is written."""
    return Fraction(str(told))


def lines(world: World, key: str, *, shared: str | None = None) -> list[Line]:
    """Return the fixture's allocations grouped by a key; those a condition names are shared."""
    found = []
    for one in world["allocations"]:
        field, _, wanted = (shared or "").partition("=")
        found.append(
            Line(
                owner=_text(one, key) or MISSING,
                place=one["cluster"],
                costs={name: number(cost) for name, cost in one["cost"].items()},
                is_shared=shared is not None and _text(one, field) == wanted,
            )
        )
    return found


def idle_of(world: World) -> dict[tuple[str, str], Fraction]:
    """Return the fixture's idle by cluster and resource."""
    return {
        (place, resource): number(cost)
        for place, costs in world["idle"].items()
        for resource, cost in costs.items()
    }


def _text(allocation: Given, key: str) -> str | None:
    if key.startswith("label:"):
        return allocation["labels"].get(key.removeprefix("label:"))
    return allocation[key]


def settled(given: Given, world: World) -> Settlement:
    """Return the bills that a case asks for; the total never changes."""
    (key,) = given.get("aggregate", ["namespace"])
    overhead = number(given.get("overhead_hourly", 0)) * int(given.get("hours", 0))
    even = given.get("split") == "even"
    rules = Rules(
        shares_idle=given.get("share_idle") == "weighted",
        rule=SplitRule.EVEN_ALL if even else SplitRule.PROPORTIONAL,
        overhead=overhead,
    )
    told = settle(lines(world, key, shared=given.get("share")), idle=idle_of(world), rules=rules)
    assert told.total == TOTAL + overhead
    assert told.warnings == ()
    assert _printed_cents(told) == rounded((TOTAL + overhead) * 100)
    return told


def _printed_cents(told: Settlement) -> int:
    in_parts = {
        owner: type(bill)(direct=parts_of(bill.total)) for owner, bill in told.bills.items()
    }
    return sum(row["total"] for row in printed_bills(in_parts, "USD").values())


def bills(given: Given, world: World) -> Found:
    """Return totals by owner, filtered last."""
    told = settled(given, world)
    kept = told.bills
    if "filter" in given:
        wanted = str(given["filter"]).partition("=")[2]
        kept = told.kept(lambda owner: owner == wanted)
    return {"__idle__" if owner == IDLE else owner: bill.total for owner, bill in kept.items()}


def assets(given: Given) -> list[Asset]:
    """Return the nodes of an asset case."""
    return [
        Asset(
            cluster=asset["cluster"],
            node=node,
            costs={name: number(asset[name]) for name in ("cpu", "ram", "gpu")},
            adjustment=number(asset["adjustment"]),
        )
        for node, asset in given["assets"].items()
    ]


def asset_idle(given: Given, world: World, *, level: Level) -> IdleCost:
    """Return idle of the asset cases; resources that no node has a price for are not in them."""
    held = [
        Allocated(
            cluster=one["cluster"],
            node=one["node"],
            costs={name: number(one["cost"][name]) for name in ("cpu", "ram", "gpu")},
        )
        for one in world["allocations"]
    ]
    return idle_cost(assets(given), held, level=level)


def by_place(idle: Mapping[tuple[str, str], Fraction]) -> Found:
    """Return idle nested by place and resource."""
    found: dict[str, dict[str, Fraction]] = {}
    for (place, resource), amount in idle.items():
        found.setdefault(place, {})[resource] = amount
    return found


def asset_idle_cluster(given: Given, world: World) -> Found:
    """Idle after the adjustment, by cluster; what the clusters hide is told beside."""
    told = asset_idle(given, world, level=Level.CLUSTER)
    assert {(fault.node, fault.resource) for fault in told.faults} == {
        ("node1", "gpu"),
        ("node2", "gpu"),
    }
    return by_place(told.exact)


def asset_idle_node(_given: Given, world: World) -> Found:
    """The same by node: below zero is exact in the books, flagged, and never shown."""
    told = asset_idle(world["asset-idle-cluster"], world, level=Level.NODE)
    shown = told.shown()
    assert [shown[node, "gpu"] for node in ("node1", "node2", "node3")] == [None, None, 8]
    assert [str(fault) for fault in told.faults] == [
        f"{node}: gpu is allocated for more than the node costs" for node in ("node1", "node2")
    ]
    return by_place(told.exact)


def share_over_time(given: Given, _world: World) -> Found:
    """Each segment goes evenly to its holders; there is no remainder, and it is told."""
    first, last = given["resource_minutes"]
    spans = {pod: [(start, end)] for pod, (start, end) in given["minutes"].items()}
    shares = active_shares(spans, (first, last))
    assert sum(shares.values()) == 1
    assert shares.pop(REMAINDER) == 0
    return shares


def quota_unused(given: Given, _world: World) -> Found:
    """A notional row: it says so itself."""
    told = quota_overhead(
        _numbers(given["quota"]),
        _numbers(given["requested"]),
        prices=_numbers(given["price"]),
        hours=number(given["hours"]),
    )
    assert told.is_notional
    return {"cpu": told.costs["cpu"], "ram": told.costs["ram_gib"], "total": told.total}


def gpus(given: Given, _world: World) -> Found:
    """Boards and what they are offered as."""
    told = gpu_count(given["capacity"], given["labels"])
    return {"gpu": told.physical, "vgpu": told.virtual}


def price_csv(given: Given, _world: World) -> Found:
    """Base and GPUs."""
    base, each = number(given["node_price"]), number(given["gpu_price"])
    return {"node_total": node_price(base, gpus=given["gpus"], per_gpu=each)}


def price_normalise(given: Given, _world: World) -> Found:
    """Component rates add up to the node's price."""
    price, amounts = number(given["node_price_month"]), _numbers(given["amount"])
    rates = component_rates(_numbers(given["base"]), amounts, node_price=price)
    assert rates is not None
    assert node_cost(rates, amounts) == price
    return {"gpu": rates["gpu"], "cpu": rates["cpu"], "ram": rates["ram_gb"]}


def csv_text(given: Given, _world: World) -> Found:
    """A total as text: no binary artefact."""
    amounts = [number(given[name]) for name in ("cpu", "ram", "net", "pv", "gpu")]
    return {
        "total_text": money_text(parts_of(sum(amounts)), "USD"),
        "gpus": Fraction(given["gpu_hours"]) / given["hours"],
    }


def absence(given: Given, _world: World) -> Found:
    """The collector's own rows: what an exporter does not say is null, and noise makes no row."""
    used = int(number(given["given"]["memory_used_ratio_avg"]) * 1_000)
    memory = (line("DCGM_FI_DEV_FB_USED", used), line("DCGM_FI_DEV_FB_FREE", 1_000 - used))
    noise = 'DCGM_FI_PROF_SM_ACTIVE{UUID="GPU-b" nonsense'
    exporter = Exporter()
    codes = [0, *range(31, 31 + given["given"]["xid_error_count"])]
    scrapes = [
        exporter.scrape(*memory, line("DCGM_FI_DEV_XID_ERRORS", code), noise) for code in codes
    ]
    found = {row for told in scrapes for row in cells(told, *SIGNALS)}
    ((device, memory_bytes, active),) = found
    assert device == "GPU-a"
    return {
        "memory_used_ratio_avg": Fraction(memory_bytes, 1_000 * MIB_BYTES),
        "xid_error_count": sum(kind == "xid" for told in scrapes for kind, _, _ in events(told)),
        "sm_active_avg": active,
    }


def cost_efficiency(given: Given, _world: World) -> Found:
    """Use weighted by cost."""
    told = efficiency(
        Used(
            price=number(given[f"{name}_price"]),
            requested=number(given[f"{name}_req"]),
            used=number(given[f"{name}_use"]),
        )
        for name in ("cpu", "ram")
    )
    assert told.coverage_ratio == 1
    return {"eff": told.ratio}


def _numbers(told: object) -> dict[str, Fraction]:
    assert isinstance(told, dict)
    return {name: number(value) for name, value in told.items()}


RUNNERS: dict[str, Callable[[Given, World], Found]] = {
    "agg-namespace": bills,
    "agg-pod": bills,
    "agg-label-app": bills,
    "idle-weighted": bills,
    "idle-filtered-invariant": bills,
    "share-even": bills,
    "share-weighted": bills,
    "share-label-even": bills,
    "overhead-weighted": bills,
    "idle+share": bills,
    "asset-idle-cluster": asset_idle_cluster,
    "asset-idle-node-negative": asset_idle_node,
    "share-over-time-4": share_over_time,
    "quota-unused": quota_unused,
    "gpu-count-plain": gpus,
    "gpu-count-timeslice-rename": gpus,
    "price-csv-2xRTX4000": price_csv,
    "price-normalise": price_normalise,
    "csv-float-artifact": csv_text,
    "absence-is-not-zero": absence,
    "kubecost-efficiency": cost_efficiency,
}


@pytest.fixture(scope="module")
def golden(test_data: Path) -> Path:
    """Return the file of cases."""
    return test_data / "golden" / "opencost_cases.json"


@pytest.mark.parametrize("case_id", RUNNERS)
def test_opencost(case_id: str, golden: Path) -> None:
    cases = cases_of(golden)
    case, world = cases[case_id], mock_fleet(golden)
    found = RUNNERS[case_id](case["inputs"], world)
    expected = dict(_leaves(expected_of(case)))
    assert dict(_leaves(found)).keys() == expected.keys()
    for path, value in _leaves(found):
        assert_close(value, expected[path], str(case["tolerance"]))


def test_every_case_has_a_runner(golden: Path) -> None:
    assert sorted(cases_of(golden)) == sorted(RUNNERS)


def test_rounding_each_row_alone_would_lose_a_cent(golden: Path) -> None:
    """Why printed rows are apportioned: alone they print 111.99 for 112.00."""
    given = cases_of(golden)["share-label-even"]["inputs"]
    told = settled(given, mock_fleet(golden))
    assert sum(rounded(bill.total * 100) for bill in told.bills.values()) == 11_199


def test_the_binary_text_of_the_total_is_absent(golden: Path) -> None:
    case = cases_of(golden)["csv-float-artifact"]
    assert csv_text(case["inputs"], {})["total_text"] != case["expected"]["total_text"]
    assert case["expected"]["total_text"] == "4.6000000000000005"


def mock_fleet(path: Path) -> World:
    """Return the allocations and idle that most cases speak of."""
    told = json.loads(path.read_text())
    cases = {case["id"]: case for case in told["cases"]}
    return {
        **told["fixtures"]["mock12"],
        "asset-idle-cluster": cases["asset-idle-cluster"]["inputs"],
    }


def expected_of(case: Mapping[str, object]) -> object:
    """Return what is right: where the upstream value is wrong, the correct text instead."""
    if "upstream_value_is_wrong" not in case:
        return case["expected"]
    return {**case["expected"], "total_text": case["upstream_value_is_wrong"]["correct_text"]}


def assert_close(found: object, expected: object, tolerance: str) -> None:
    """Compare by the file's legend."""
    if expected is None or isinstance(expected, str) or tolerance == SAME:
        assert found == (number(expected) if isinstance(expected, float) else expected)
    elif tolerance == CENT:
        assert rounded(found * 100) == rounded(number(expected) * 100)
    else:
        assert float(found) == pytest.approx(expected, rel={PART: 1e-6, MANY: 1e-5}[tolerance])


def _leaves(told: object, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], object]]:
    if isinstance(told, Mapping):
        for key, value in told.items():
            yield from _leaves(value, (*path, key))
    else:
        yield path, told
