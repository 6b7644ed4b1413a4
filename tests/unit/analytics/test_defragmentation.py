"""Which few moves would free the most room, counted again after them."""

from __future__ import annotations

import pytest

from analytics.defragmentation import MOST_MOVES, Hint, Move, Node, Workload, hint, moved, slots
from analytics.movable import Movable, movable
from analytics.segments import Inputs
from tests.support.analytics_frames import ONE_HOUR, Row, rows
from tests.support.governance_rows import told

FULL = 1000.0


def node(idle: int, *, held: int = 0, **given: object) -> Node:
    devices = {f"g{number}": FULL if number < idle else 0.0 for number in range(idle + held)}
    harmless: dict[str, object] = {
        "model": "H100",
        "is_schedulable": True,
        "devices": devices,
        "cpu_milli": 64_000.0,
        "memory_bytes": 1_000.0,
    }
    return Node(**{**harmless, **given})  # type: ignore[arg-type]  # a case gives right types


def work(on: str, *devices: str, **given: object) -> Workload:
    harmless: dict[str, object] = {
        "key": ("c", on),
        "uid": f"w-{on}-{'-'.join(devices)}",
        "name": "w",
        "tenant_id": "a",
        "pieces": tuple((device, FULL) for device in devices),
        "cpu_milli": 8_000.0,
        "memory_bytes": 100.0,
        "models": (),
    }
    return Workload(**{**harmless, **given})  # type: ignore[arg-type]  # a case gives right types


def fleet(**nodes: Node) -> dict[tuple[str, str], Node]:
    return {("c", name): each for name, each in nodes.items()}


def told_moves(found: Hint) -> list[tuple[str, str, str]]:
    return [(move.workload.uid, move.workload.key[1], move.to[1]) for move in found.moves]


def test_one_small_workload_in_the_way() -> None:
    found = hint(fleet(n1=node(7, held=1), n2=node(1, held=7)), [work("n1", "g7")])
    assert told_moves(found) == [("w-n1-g7", "n1", "n2")]
    assert (found.slots_before_count, found.slots_after_count, found.gain_count) == (0, 1, 1)


@pytest.mark.parametrize(
    ("there", "reason"),
    [
        pytest.param(node(0, held=8), "no GPU", id="no GPU free"),
        pytest.param(node(8), "would lose a slot", id="would lose a slot there"),
        pytest.param(node(1, held=7, model="A100"), "model", id="another model"),
        pytest.param(node(1, held=7, model=None), "model", id="model unknown"),
        pytest.param(node(1, held=7, is_schedulable=False), "cordoned", id="cordoned"),
        pytest.param(node(1, held=7, cpu_milli=7_999.0), "CPU", id="CPU one milli short"),
        pytest.param(node(1, held=7, cpu_milli=None), "CPU", id="CPU unknown"),
        pytest.param(node(1, held=7, memory_bytes=99.0), "memory", id="memory one byte short"),
        pytest.param(node(1, held=7, memory_bytes=None), "memory", id="memory unknown"),
    ],
)
def test_never_to_where_it_does_not_fit(there: Node, reason: str) -> None:
    found = hint(fleet(n1=node(7, held=1), n2=there), [work("n1", "g7")])
    assert (found.moves, found.gain_count) == ((), 0), reason


@pytest.mark.parametrize("free", [8_000.0, 8_001.0])
def test_where_it_just_fits(free: float) -> None:
    there = node(1, held=7, cpu_milli=free, memory_bytes=100.0)
    assert hint(fleet(n1=node(7, held=1), n2=there), [work("n1", "g7")]).gain_count == 1


def test_never_to_another_cluster() -> None:
    nodes = {("c", "n1"): node(7, held=1), ("d", "n2"): node(1, held=7)}
    assert hint(nodes, [work("n1", "g7")]).moves == ()


def test_no_moves_where_they_gain_nothing() -> None:
    """Clearing two of three held GPUs frees no slot."""
    nodes = fleet(n1=node(5, held=3), n2=node(2, held=6))
    assert hint(nodes, [work("n1", "g6"), work("n1", "g7")]).moves == ()


def test_a_cordoned_node_is_not_cleared() -> None:
    nodes = fleet(n1=node(7, held=1, is_schedulable=False), n2=node(1, held=7))
    assert hint(nodes, [work("n1", "g7")]).moves == ()


def test_the_node_with_the_fewest_moves_is_cleared_first() -> None:
    nodes = fleet(n1=node(6, held=2), n2=node(6, held=2), n3=node(2, held=6))
    there = [work("n1", "g6"), work("n1", "g7"), work("n2", "g6", "g7")]
    found = hint(nodes, there)
    assert told_moves(found) == [("w-n2-g6-g7", "n2", "n3")]


def test_both_must_leave_but_one_finds_a_place() -> None:
    nodes = fleet(n1=node(14, held=2), n2=node(1, held=7))
    assert hint(nodes, [work("n1", "g14"), work("n1", "g15")]).moves == ()


def test_only_as_many_leave_as_are_in_the_way() -> None:
    nodes = fleet(n1=node(15, held=3), n2=node(2, held=6))
    found = hint(nodes, [work("n1", "g15"), work("n1", "g16")])
    assert (found.gain_count, len(found.moves)) == (1, 1)


def test_parts_of_a_gpu_go_to_a_shared_gpu_only() -> None:
    part = work("n1", pieces=(("g7", 400.0),))
    home = node(7, devices={**{f"g{n}": FULL for n in range(7)}, "g7": 600.0})
    whole, shared = node(2, held=6), node(0, held=7, devices={"g0": 400.0})
    short = node(0, devices={"g0": 399.0})
    assert hint(fleet(n1=home, n2=whole), [part]).moves == ()
    assert hint(fleet(n1=home, n2=short), [part]).moves == ()
    assert hint(fleet(n1=home, n2=shared), [part]).gain_count == 1


def test_all_sharers_of_a_gpu_must_be_able_to_leave() -> None:
    home = node(7, devices={**{f"g{n}": FULL for n in range(7)}, "g7": 0.0})
    half = [work("n1", uid=uid, pieces=(("g7", 500.0),)) for uid in ("w1", "w2")]
    there = node(0, devices={"g0": 500.0, "g1": 500.0})
    assert hint(fleet(n1=home, n2=there), half[:1]).moves == ()
    assert hint(fleet(n1=home, n2=there), half).gain_count == 1


def test_never_more_than_a_few_moves() -> None:
    nodes = {("c", f"n{index}"): node(7, held=1) for index in range(40)}
    nodes |= {("c", f"t{index}"): node(1, held=7) for index in range(40)}
    there = [work(f"n{index}", "g7") for index in range(40)]
    found = hint(nodes, there)
    assert len(found.moves) == found.gain_count == MOST_MOVES


def test_moves_that_do_not_fit_give_no_fleet() -> None:
    nodes = fleet(n1=node(7, held=1), n2=node(0, held=8))
    move = Move(workload=work("n1", "g7"), to=("c", "n2"))
    assert moved(nodes, [move]) is None
    assert slots(nodes) == 0


def found_movable(*allocations: Row, standing: tuple[Row, ...] = ({},)) -> Movable:
    inputs = Inputs(
        nodes=rows("node_history", {}, {"node": "n2"}),
        devices=rows(
            "device_history", {}, {"device_uuid": "GPU-b"}, {"device_uuid": "GPU-c", "node": "n2"}
        ),
        events=rows("device_event_history"),
        allocations=rows("allocation_history", *allocations),
    )
    return movable(
        inputs,
        standing=told("workload_standing", *standing),
        places=told("node_place", {}, {"node": "n2"}),
        period=ONE_HOUR,
    )


def test_fleet_from_stored_rows() -> None:
    found = found_movable({})
    assert found.fleet["c", "n1"].devices == {"GPU-a": 0.0, "GPU-b": FULL}
    assert found.fleet["c", "n1"].cpu_milli == 88_000
    assert [each.pieces for each in found.workloads] == [(("GPU-a", FULL),)]


@pytest.mark.parametrize(
    ("standing", "allocations", "count", "left_out"),
    [
        pytest.param({}, [{}], 1, 0, id="training"),
        pytest.param({"workload_class": "development"}, [{}], 1, 0, id="development"),
        pytest.param({"workload_class": "inference"}, [{}], 0, 0, id="inference stays"),
        pytest.param({"workload_class": "system"}, [{}], 0, 0, id="system work stays"),
        pytest.param({"workload_class": None}, [{}], 0, 0, id="unknown class stays"),
        pytest.param({"priority_class": "production"}, [{}], 0, 0, id="critical stays"),
        pytest.param({"priority_class": None}, [{}], 1, 0, id="no priority told"),
        pytest.param({"cpu_milli": None}, [{}], 0, 1, id="CPU unknown"),
        pytest.param({"memory_bytes": None}, [{}], 0, 1, id="memory unknown"),
        pytest.param({}, [{}, {"device_uuid": "GPU-b"}], 1, 0, id="two GPUs of one node"),
        pytest.param({}, [{}, {"device_uuid": "GPU-c", "node": "n2"}], 0, 0, id="two nodes"),
        pytest.param({}, [{"workload_uid": None}], 0, 0, id="unknown holder"),
    ],
)
def test_who_may_move(standing: Row, allocations: list[Row], count: int, left_out: int) -> None:
    found = found_movable(*allocations, standing=(standing,))
    assert (len(found.workloads), found.left_out_count) == (count, left_out)
