"""Laws of room and fairness: counts equal brute force, moves never cost room, shares add up."""

from __future__ import annotations

from datetime import timedelta
from itertools import product

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.defragmentation import SLOT_GPUS, Node, Workload, hint, moved, slots
from analytics.fairness import (
    faded,
    fair_shares,
    lending,
    quota_by_day,
    quota_spans,
    quota_use,
    starvation,
)
from analytics.intervals import bounds
from analytics.mig_geometry import SEVEN_SLICES, room_for
from analytics.placement import LIFTABLE, alternatives, fit, workers_on
from analytics.request import Request, request_from, text_of
from analytics.rooms import NodeRoom
from analytics.shapes import shapes_from_json, shapes_json, shapes_version
from steward.period import Period
from tests.support.analytics_frames import HOUR, NOON
from tests.support.governance_rows import told
from tests.support.ledger_rows import held, ledger

TWO_HOURS = Period(NOON, NOON + 2 * HOUR)
EXAMPLES = 200

ROOM = st.builds(
    NodeRoom,
    cluster=st.just("c"),
    node=st.sampled_from(["n1", "n2", "n3"]),
    model=st.sampled_from(["H100", "A100", None]),
    is_schedulable=st.booleans(),
    free_milli=st.lists(st.sampled_from([0.0, 250.0, 500.0, 1000.0]), max_size=6).map(tuple),
    lost_count=st.integers(0, 2),
    cpu_free_milli=st.one_of(st.none(), st.integers(0, 12).map(lambda n: n * 1000.0)),
    memory_free_bytes=st.one_of(st.none(), st.integers(0, 12).map(float)),
)
REQUEST = st.builds(
    lambda count, milli, cpu, memory, models, workers: Request(
        gpu_count=count if milli == 1000 else 1,
        gpu_milli=milli,
        cpu_milli=cpu,
        memory_bytes=memory,
        models=models,
        worker_count=workers,
    ),
    st.integers(1, 6),
    st.sampled_from([250, 500, 1000]),
    st.sampled_from([None, 1000, 3000]),
    st.sampled_from([None, 1, 5]),
    st.sampled_from([(), ("H100",), ("H100", "A100")]),
    st.integers(1, 6),
)


def one_by_one(room: NodeRoom, asked: Request) -> int:
    """Place workers on a node one after the other until one finds no room."""
    free, cpu, memory = list(room.free_milli), room.cpu_free_milli, room.memory_free_bytes
    if not room.is_schedulable or (asked.models and room.model not in asked.models):
        return 0
    count = 0
    while True:
        able = [n for n, left in enumerate(free) if left >= asked.gpu_milli]
        if len(able) < asked.gpu_count:
            return count
        for left, need in ((cpu, asked.cpu_milli), (memory, asked.memory_bytes)):
            if need is not None and (left is None or left < need):
                return count
        for n in able[: asked.gpu_count]:
            free[n] -= asked.gpu_milli
        cpu = None if cpu is None else cpu - (asked.cpu_milli or 0)
        memory = None if memory is None else memory - (asked.memory_bytes or 0)
        count += 1


@given(ROOM, REQUEST)
@settings(max_examples=EXAMPLES)
def test_workers_on_a_node_are_those_placed_one_by_one(room: NodeRoom, asked: Request) -> None:
    assert workers_on(room, asked) == one_by_one(room, asked)


@given(st.lists(ROOM, max_size=4), REQUEST)
@settings(max_examples=EXAMPLES)
def test_every_node_fits_or_is_blocked_for_one_reason(
    rooms: list[NodeRoom], asked: Request
) -> None:
    found = fit(rooms, asked)
    assert sum(count for _, count in found.by_node) == found.worker_count
    assert len(found.by_node) + sum(count for _, count in found.blocked) == len(rooms)
    assert all(more > 0 for _, more in found.if_lifted)
    for name in LIFTABLE:
        lifted = sum(workers_on(room, asked, lift=frozenset({name})) for room in rooms)
        assert lifted == found.worker_count + dict(found.if_lifted).get(name, 0)


@given(st.lists(ROOM, max_size=4), REQUEST)
@settings(max_examples=EXAMPLES)
def test_what_is_offered_instead_fits(rooms: list[NodeRoom], asked: Request) -> None:
    others = alternatives(rooms, asked)
    if fit(rooms, asked).worker_count >= asked.worker_count:
        assert others == ()
    for _, other in others:
        assert fit(rooms, other).worker_count >= other.worker_count >= 1
    assert len({other for _, other in others}) == len(others)


@given(REQUEST)
@settings(max_examples=EXAMPLES)
def test_a_request_reads_as_it_is_written(asked: Request) -> None:
    assert request_from(text_of(asked)) == asked


@st.composite
def fleets(draw: st.DrawFn) -> tuple[dict[tuple[str, str], Node], list[Workload]]:
    fleet: dict[tuple[str, str], Node] = {}
    workloads = []
    for index in range(draw(st.integers(1, 5))):
        key = ("c", f"n{index}")
        held_by = draw(st.lists(st.sampled_from([None, None, 0, 1, 2]), min_size=8, max_size=9))
        devices = {f"g{n}": 1000.0 if owner is None else 0.0 for n, owner in enumerate(held_by)}
        cpu = draw(st.sampled_from([0.0, 4_000.0, 64_000.0, None]))
        fleet[key] = Node(
            model=draw(st.sampled_from(["H100", "H100", "A100"])),
            is_schedulable=draw(st.sampled_from([True, True, True, False])),
            devices=devices,
            cpu_milli=cpu,
            memory_bytes=1_000.0,
        )
        workloads += [
            Workload(
                key=key,
                uid=f"{index}-{owner}",
                name="w",
                tenant_id=None,
                pieces=tuple((f"g{n}", 1000.0) for n, by in enumerate(held_by) if by == owner),
                cpu_milli=4_000.0,
                memory_bytes=100.0,
                models=draw(st.sampled_from([(), ("H100",), ("H100", "A100")])),
            )
            for owner in (0, 1)
            if owner in held_by
        ]
    return fleet, workloads


@given(fleets())
@settings(max_examples=EXAMPLES)
def test_moves_never_cost_room_and_always_fit(
    world: tuple[dict[tuple[str, str], Node], list[Workload]],
) -> None:
    fleet, workloads = world
    found = hint(fleet, workloads)
    after = moved(fleet, found.moves)
    assert after is not None
    assert slots(after) == found.slots_after_count
    assert found.slots_before_count == slots(fleet)
    assert found.gain_count > 0 or not found.moves
    assert len({move.workload.uid for move in found.moves}) == len(found.moves)
    free_before = sum(node.whole_idle_count for node in fleet.values())
    assert sum(node.whole_idle_count for node in after.values()) == free_before
    for node in after.values():
        assert min(node.devices.values()) >= 0
        assert (node.cpu_milli or 0) >= 0
    assert found.slots_after_count <= free_before // SLOT_GPUS


PROFILES = sorted(SEVEN_SLICES.profiles)


@given(st.lists(st.sampled_from(PROFILES), max_size=5).map(tuple), st.sampled_from(PROFILES))
@settings(max_examples=EXAMPLES)
def test_bounds_of_mig_room_enclose_every_arrangement(there: tuple[str, ...], wanted: str) -> None:
    """Against every choice of starts, tried one by one."""
    counts = []
    for starts in product(*(SEVEN_SLICES.profiles[name].starts for name in there)):
        taken = [
            range(start, start + SEVEN_SLICES.profiles[name].memory_slices)
            for name, start in zip(there, starts, strict=True)
        ]
        cells = [cell for span in taken for cell in span]
        if len(cells) == len(set(cells)) and _is_within(there):
            counts.append(_most(set(cells), there, wanted))
    room = room_for(there, wanted, SEVEN_SLICES)
    if not counts:
        assert room is None
    else:
        assert room is not None
        assert (room.at_least, room.at_most) == (min(counts), max(counts))
        assert room.at_most <= room.by_slices


def _is_within(names: tuple[str, ...]) -> bool:
    profiles = [SEVEN_SLICES.profiles[name] for name in names]
    compute = sum(each.compute_slices for each in profiles)
    return compute <= SEVEN_SLICES.compute_slices and sum(e.is_single for e in profiles) <= 1


def _most(taken: set[int], there: tuple[str, ...], wanted: str) -> int:
    profile = SEVEN_SLICES.profiles[wanted]
    best = 0
    for start in profile.starts:
        cells = set(range(start, start + profile.memory_slices))
        if not cells & taken and _is_within((*there, wanted)):
            best = max(best, 1 + _most(taken | cells, (*there, wanted), wanted))
    return best


READING = st.fixed_dictionaries(
    {
        "tenant_id": st.sampled_from(["a", "b", "c"]),
        "gpu_model": st.sampled_from(["H100", "T4", None]),
        "observed_at": st.integers(-60, 119).map(lambda n: NOON + n * timedelta(minutes=1)),
        "used_gpu_count": st.one_of(st.none(), st.integers(0, 20).map(float)),
        "guaranteed_gpu_count": st.one_of(st.none(), st.integers(0, 12).map(float)),
        "pending_workload_count": st.sampled_from([None, 0, 2]),
    }
).map(lambda row: {**row, "queue": f"{row['tenant_id']}-queue"})
READINGS = st.lists(
    READING, max_size=20, unique_by=lambda row: (row["queue"], row["gpu_model"], row["observed_at"])
)


@given(READINGS)
@settings(max_examples=EXAMPLES)
def test_no_more_is_lent_than_borrowed_or_left_unused(readings: list[dict[str, object]]) -> None:
    spans = quota_spans(told("quota_use", *readings), TWO_HOURS)
    use = quota_use(spans, "tenant_id")
    lent, starved = lending(spans, "tenant_id"), starvation(spans, "tenant_id")
    borrowed = {key: value or 0.0 for key, value in _by(use, "borrowed_gpu_hours").items()}
    unused = {key: value or 0.0 for key, value in _by(use, "unused_gpu_hours").items()}
    for (borrower,), part in lent.group_by("borrower"):
        assert part["gpu_hours"].sum() <= borrowed[str(borrower)] + 1e-9
    for (lender,), part in lent.group_by("lender"):
        assert part["gpu_hours"].sum() <= unused[str(lender)] + 1e-9
    for (waiting,), part in starved.group_by("waiting"):
        assert part["gpu_hours"].sum() <= unused[str(waiting)] + 1e-9
    assert (lent["gpu_hours"] >= 0).all()
    assert (starved["gpu_hours"] >= 0).all()
    assert (lent["borrower"] != lent["lender"]).all()


def _by(use: pl.DataFrame, name: str) -> dict[str, float | None]:
    return dict(use.select("tenant_id", name).iter_rows())


@given(READINGS, st.integers(1, 119))
@settings(max_examples=EXAMPLES)
def test_quota_of_parts_adds_up_to_the_whole(readings: list[dict[str, object]], cut: int) -> None:
    rows = told("quota_use", *readings)
    middle = NOON + cut * timedelta(minutes=1)
    periods = (TWO_HOURS, Period(NOON, middle), Period(middle, TWO_HOURS.until_at))
    totals = [
        quota_use(quota_spans(rows, period), "tenant_id")["used_gpu_hours"].sum()
        for period in periods
    ]
    assert totals[0] == pytest.approx(totals[1] + totals[2])
    whole = quota_spans(rows, TWO_HOURS)
    days = quota_by_day(whole, "tenant_id", edges=[middle], period=TWO_HOURS)
    assert totals[0] == pytest.approx(days["used_gpu_hours"].sum())


HELD = st.builds(
    lambda tenant, start, length, used, idle: held(
        tenant_id=tenant,
        started_at=NOON + start * timedelta(minutes=1),
        ended_at=NOON + (start + length) * timedelta(minutes=1),
        used=used,
        idle=idle,
    ),
    st.sampled_from(["a", "b", "c", None]),
    st.integers(0, 100),
    st.integers(1, 20),
    st.integers(0, 8),
    st.integers(0, 8),
)


@given(st.lists(HELD, max_size=8), READINGS, st.floats(60, 1e7))
@settings(max_examples=EXAMPLES)
def test_shares_add_up_to_one(
    rows: list[dict[str, object]], readings: list[dict[str, object]], half_life_s: float
) -> None:
    spans = quota_spans(told("quota_use", *readings), TWO_HOURS)
    found = fair_shares(
        ledger(*rows), spans, TWO_HOURS, entity="tenant_id", half_life_s=half_life_s
    )
    for name in ("allocated_share_ratio", "effective_share_ratio", "entitled_share_ratio"):
        known = found[name].drop_nulls()
        assert known.is_empty() or known.sum() == pytest.approx(1.0)
    for name in ("allocated_factor_ratio", "effective_factor_ratio"):
        assert found[name].drop_nulls().is_between(0, 1).all()
    assert (found["effective_gpu_hours"] <= found["allocated_gpu_hours"] + 1e-9).all()


@given(st.integers(0, 100), st.integers(1, 20), st.floats(60, 1e7), st.floats(1.01, 50))
@settings(max_examples=EXAMPLES)
def test_fading_is_monotone_in_age_and_half_life(
    start: int, length: int, half_life_s: float, times: float
) -> None:
    minute = timedelta(minutes=1)
    older = held(started_at=NOON + start * minute, ended_at=NOON + (start + length) * minute)
    newer = held(
        started_at=NOON + (start + length) * minute, ended_at=NOON + (start + 2 * length) * minute
    )
    _, until_us = bounds(Period(NOON, NOON + 4 * HOUR))

    def weights(half_life: float) -> list[float]:
        weight = faded(until_us, half_life_s=half_life)
        found: list[float] = ledger(older, newer).select(weight.alias("weight"))["weight"].to_list()
        return found

    (first, second), slower = weights(half_life_s), weights(half_life_s * times)
    assert 0 <= first <= second <= 1
    assert slower[0] >= first
    assert slower[1] >= second


SHAPES = st.lists(
    st.tuples(
        st.integers(0, 64_000),
        st.sampled_from([0, 500, 1000]),
        st.integers(0, 8),
        st.sampled_from(["", "H100", "A|B"]),
        st.integers(1, 99),
    ),
    min_size=1,
    max_size=6,
    unique_by=lambda shape: shape[:4],
)


@given(SHAPES, st.randoms(use_true_random=False))
@settings(max_examples=EXAMPLES)
def test_a_version_does_not_depend_on_order(
    shapes: list[tuple[int, int, int, str, int]], random: object
) -> None:
    columns = ["cpu_milli", "gpu_milli", "gpu_count", "gpu_models", "request_count"]
    frame = pl.DataFrame(shapes, schema=columns, orient="row")
    shuffled = frame.sample(fraction=1.0, shuffle=True, seed=random.randint(0, 99))  # type: ignore[attr-defined]  # random.Random
    assert shapes_version(frame) == shapes_version(shuffled)
    assert shapes_version(shapes_from_json(shapes_json(frame))) == shapes_version(frame)
