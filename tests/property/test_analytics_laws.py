"""Laws of the measures: nothing is lost, order does not matter, parts add up to the whole."""

from __future__ import annotations

from datetime import timedelta

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from analytics.fragmentation import CATEGORIES, fragmentation, free_nodes
from analytics.ledger import CLASSES, by_class
from analytics.reports.measured import device_time
from analytics.survival import survival, survival_quantile_s
from analytics.waits import attempts
from steward.period import Period
from tests.support.analytics_frames import HOUR, MINUTE, NOON, Row, frames, rows

TWO_HOURS = Period(NOON, NOON + 2 * HOUR)
RATIO = st.one_of(st.none(), st.sampled_from([0.0, 0.005, 0.4, 1.0]))
STEP = st.integers(-20, 140)

READING = st.fixed_dictionaries(
    {
        "device_uuid": st.sampled_from(["GPU-a", "GPU-b"]),
        "instance_id": st.sampled_from([None, None, 1, 2]),
        "sampled_at": STEP.map(lambda step: NOON + step * MINUTE),
        "busy_ratio": RATIO,
        "sm_active_ratio": RATIO,
        "tensor_active_ratio": RATIO,
        "dram_active_ratio": RATIO,
    }
)
ALLOCATION = st.builds(
    lambda device, instance, start, length, share, tenant: {
        "device_uuid": device,
        "instance_id": instance,
        "started_at": NOON + start * MINUTE,
        "ended_at": None if length is None else NOON + (start + length) * MINUTE,
        "gpu_share_ratio": share,
        "tenant_id": tenant,
        "pod": f"{device}-{start}",
    },
    st.sampled_from(["GPU-a", "GPU-b"]),
    st.sampled_from([None, 1]),
    STEP,
    st.one_of(st.none(), st.integers(1, 90)),
    st.sampled_from([0.25, 1 / 7, 1.0]),
    st.sampled_from(["a", "b", None]),
)
EVENT = st.builds(
    lambda kind, step: {"kind": kind, "occurred_at": NOON + step * MINUTE},
    st.sampled_from(["lost", "returned", "xid"]),
    STEP,
)
INSTANCE = st.builds(
    lambda instance, step, share, present: {
        "device_uuid": "GPU-b",
        "instance_id": instance,
        "observed_at": NOON + step * MINUTE,
        "sm_share_ratio": share,
        "memory_share_ratio": share,
        "is_present": present,
    },
    st.sampled_from([1, 2]),
    STEP,
    st.sampled_from([1 / 7, 3 / 7, 1.0, None]),
    st.booleans(),
)


@st.composite
def worlds(draw: st.DrawFn) -> dict[str, pl.DataFrame]:
    born = draw(st.integers(-60, 60))
    devices: list[Row] = [
        {},
        {"device_uuid": "GPU-b", "observed_at": NOON + born * MINUTE},
        *draw(st.lists(INSTANCE, max_size=4)),
    ]
    readings = draw(st.lists(READING, max_size=30))
    return frames(
        node_history=rows("node_history", {}),
        device_history=rows("device_history", *devices),
        device_event_history=rows("device_event_history", *draw(st.lists(EVENT, max_size=4))),
        allocation_history=rows("allocation_history", *draw(st.lists(ALLOCATION, max_size=5))),
        utilization_sample=rows("utilization_sample", *readings),
    )


def classes(world: dict[str, pl.DataFrame], period: Period) -> dict[str, float]:
    found: dict[str, float] = by_class(device_time(world, period).rows).row(0, named=True)
    return found


def wall_of(world: dict[str, pl.DataFrame], period: Period) -> float:
    first = world["device_history"].group_by("device_uuid").agg(pl.col("observed_at").min())
    lives = [
        max(period.until_at - max(born, period.from_at), timedelta()) / HOUR
        for born in first["observed_at"]
    ]
    return float(sum(lives))


@given(worlds())
@settings(max_examples=30)
def test_gpu_hours_are_conserved(world: dict[str, pl.DataFrame]) -> None:
    found = classes(world, TWO_HOURS)
    wall = wall_of(world, TWO_HOURS)
    assert found["wall_gpu_hours"] == pytest.approx(wall, rel=1e-9, abs=1e-12)
    assert sum(found[name] for name in CLASSES) == pytest.approx(wall, rel=1e-9, abs=1e-12)
    assert all(found[name] >= 0 for name in CLASSES)


@given(worlds(), st.integers(1, 119))
@settings(max_examples=20)
def test_parts_of_a_period_add_up_to_the_whole(world: dict[str, pl.DataFrame], cut: int) -> None:
    middle = NOON + cut * MINUTE
    parts = [
        classes(world, Period(NOON, middle)),
        classes(world, Period(middle, TWO_HOURS.until_at)),
    ]
    whole = classes(world, TWO_HOURS)
    for name in CLASSES:
        assert sum(part[name] for part in parts) == pytest.approx(whole[name], abs=1e-6)


@given(worlds(), st.randoms(use_true_random=False))
@settings(max_examples=15)
def test_order_of_rows_does_not_matter(world: dict[str, pl.DataFrame], random: object) -> None:
    # Two states of one instance at one instant have no defined last one: keep the first given.
    keys = ["device_uuid", "instance_id", "observed_at"]
    world["device_history"] = world["device_history"].unique(keys, maintain_order=True)
    sample_keys = ["device_key", "instance_id", "sampled_at"]
    samples = world["utilization_sample"].unique(sample_keys, maintain_order=True)
    world["utilization_sample"] = samples
    shuffled = {
        name: frame.sample(fraction=1.0, shuffle=True, seed=random.randint(0, 99))  # type: ignore[attr-defined]  # random.Random
        for name, frame in world.items()
    }
    one, other = device_time(world, TWO_HOURS), device_time(shuffled, TWO_HOURS)
    assert_frame_equal(by_class(one.rows, "tenant_id"), by_class(other.rows, "tenant_id"))


@given(worlds())
@settings(max_examples=15)
def test_null_is_never_counted_as_idle(world: dict[str, pl.DataFrame]) -> None:
    ratios = [name for name in world["utilization_sample"].columns if name.endswith("_ratio")]
    silent = world["utilization_sample"].with_columns(
        pl.lit(None, dtype=pl.Float32).alias(name) for name in ratios
    )
    found = classes({**world, "utilization_sample": silent}, TWO_HOURS)
    assert found["idle_gpu_hours"] == 0
    assert found["effective_gpu_hours"] == 0
    assert found["ineffective_gpu_hours"] == 0


FREE = st.lists(st.sampled_from([0.0, 200.0, 500.0, 999.0, 1000.0]), min_size=1, max_size=8)
NODES = st.lists(
    st.tuples(st.integers(0, 96_000), FREE, st.sampled_from(["T4", "G2", None])), max_size=6
)
SHAPE = st.tuples(
    st.integers(0, 64_000),
    st.sampled_from([0, 200, 500, 1000]),
    st.integers(0, 8),
    st.sampled_from(["", "T4", "T4|A10"]),
)


def node_frame(nodes: list[tuple[int, list[float], str | None]]) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "cpu_free_milli": [float(cpu) for cpu, _, _ in nodes],
            "gpu_free_milli": [gpus for _, gpus, _ in nodes],
            "gpu_model": [model for _, _, model in nodes],
        },
        schema={
            "cpu_free_milli": pl.Float64,
            "gpu_free_milli": pl.List(pl.Float64),
            "gpu_model": pl.String,
        },
    )


def shape_frame(shapes: list[tuple[int, int, int, str]]) -> pl.DataFrame:
    share = 1 / len(shapes)
    columns = ["cpu_milli", "gpu_milli", "gpu_count", "gpu_models", "share_ratio"]
    return pl.DataFrame([(*one, share) for one in shapes], schema=columns, orient="row")


def plain_fragment(
    node: tuple[int, list[float], str | None], shapes: list[tuple[int, int, int, str]]
) -> float:
    """The definition, one node and one shape at a time."""
    cpu, gpus, model = node
    idle, total = sum(gpus), 0.0
    for shape_cpu, milli, count, models in shapes:
        refused = milli == 0 or (models and (model or "") not in models.split("|"))
        fits = sum(free >= milli for free in gpus) >= count and cpu >= shape_cpu
        part = idle if refused or not fits else sum(free for free in gpus if free < milli)
        total += part / len(shapes)
    return total


@given(NODES, st.lists(SHAPE, min_size=1, max_size=6))
def test_fragmentation_is_its_definition_and_adds_up(
    nodes: list[tuple[int, list[float], str | None]], shapes: list[tuple[int, int, int, str]]
) -> None:
    found = fragmentation(free_nodes(node_frame(nodes)), shape_frame(shapes))
    total = found.select(pl.sum_horizontal(CATEGORIES)).to_series().to_list()
    assert total == pytest.approx(found["idle_milli"].to_list())
    expected = [plain_fragment(node, shapes) for node in nodes]
    assert found["fragment_milli"].to_list() == pytest.approx(expected)


@given(st.lists(st.integers(0, 50).map(float), min_size=1, max_size=40), st.floats(0.01, 0.99))
def test_without_censoring_kaplan_meier_is_the_empirical_quantile(
    waits: list[float], quantile: float
) -> None:
    curve = survival(pl.DataFrame({"wait_s": waits, "is_scheduled": [True] * len(waits)}))
    ordered = sorted(waits)
    reached = [
        wait
        for index, wait in enumerate(ordered, start=1)
        if index / len(waits) >= quantile - 1e-12
    ]
    assert survival_quantile_s(curve, quantile) == reached[0]


@given(st.lists(st.tuples(st.integers(0, 50).map(float), st.booleans()), max_size=40))
def test_survival_falls_from_one_towards_zero(waits: list[tuple[float, bool]]) -> None:
    frame = pl.DataFrame(
        waits, schema={"wait_s": pl.Float64, "is_scheduled": pl.Boolean}, orient="row"
    )
    curve = survival(frame)
    assert curve["waiting_ratio"].is_sorted(descending=True)
    assert curve["waiting_ratio"].is_between(0, 1).all()
    assert curve["ended_count"].sum() == frame["is_scheduled"].sum()


@given(
    st.lists(st.tuples(st.integers(-60, 110), st.integers(0, 40), st.integers(1, 60)), max_size=8),
    st.integers(1, 119),
)
@settings(max_examples=20)
def test_hours_of_workloads_add_up_over_a_split(
    lives: list[tuple[int, int, int]], cut: int
) -> None:
    told: list[Row] = [
        {"workload_uid": f"w{n}", "transition": name, "occurred_at": NOON + minute * MINUTE}
        for n, (created, wait, length) in enumerate(lives)
        for name, minute in (
            ("created", created),
            ("scheduled", created + wait),
            ("finished", created + wait + length),
        )
    ]
    asked: list[Row] = [{"workload_uid": f"w{n}"} for n in range(len(lives))]
    middle = NOON + cut * MINUTE

    def hours(period: Period) -> float:
        found = attempts(
            rows("transition_history", *told), rows("workload_current", *asked), period
        )
        return float(found["gpu_hours"].sum())

    parts = hours(Period(NOON, middle)) + hours(Period(middle, TWO_HOURS.until_at))
    assert parts == pytest.approx(hours(TWO_HOURS))
