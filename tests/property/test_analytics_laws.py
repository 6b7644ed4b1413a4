"""Laws of the measures: nothing is lost, order does not matter, parts add up to the whole."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.fragmentation import CATEGORIES, fragmentation, free_nodes
from analytics.survival import survival, survival_quantile_s
from analytics.waits import attempts
from steward.period import Period
from tests.support.analytics_frames import HOUR, MINUTE, NOON, Row, rows

TWO_HOURS = Period(NOON, NOON + 2 * HOUR)

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
