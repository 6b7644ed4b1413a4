"""Laws that hold for every simulated fleet, whatever its seed and size."""

from __future__ import annotations

from itertools import pairwise

import polars as pl
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.sources.simulated import SimulationParameters, simulated_batches
from tests.support import simulated_fleets as fleets

some_fleets = st.builds(
    fleets.parameters,
    seed=st.integers(0, 2**32 - 1),
    days=st.integers(1, 2),
    node_count=st.integers(4, 20),
    cadence_s=st.sampled_from([300, 600, 700]),
)
few = settings(max_examples=5)


def _serialized(asked: SimulationParameters) -> list[tuple[str, str, bytes]]:
    told = []
    for batch in simulated_batches(asked):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.rows.schema) as stream:
            stream.write_table(batch.rows)
        told.append((batch.table, str(batch.batch_id), sink.getvalue().to_pybytes()))
    return told


@given(some_fleets)
@settings(max_examples=3)
def test_the_same_parameters_make_the_same_bytes(asked: SimulationParameters) -> None:
    assert _serialized(asked) == _serialized(asked)


@given(st.integers(0, 1000))
@settings(max_examples=3)
def test_another_seed_makes_another_fleet_and_other_batches(seed: int) -> None:
    one, other = fleets.parameters(seed=seed), fleets.parameters(seed=seed + 1)
    ids = {batch.batch_id for batch in fleets.batches(one)}
    assert ids.isdisjoint(batch.batch_id for batch in fleets.batches(other))
    assert not fleets.table(one, "workload").equals(fleets.table(other, "workload"))


@given(some_fleets)
@few
def test_batch_ids_are_distinct_and_rows_stay_within_the_period(
    asked: SimulationParameters,
) -> None:
    batches = fleets.batches(asked)
    assert len({batch.batch_id for batch in batches}) == len(batches)
    for name, column in {
        "device_sample": "sampled_at",
        "scrape": "scraped_at",
        "node": "observed_at",
        "workload_transition": "occurred_at",
        "allocation": "observed_at",
    }.items():
        instants = fleets.table(asked, name)[column]
        assert instants.is_sorted()
        assert all(asked.from_at <= instant < asked.until_at for instant in instants.to_list())


@given(some_fleets)
@few
def test_each_allocation_lies_within_an_attempt_of_its_workload(
    asked: SimulationParameters,
) -> None:
    transitions = fleets.table(asked, "workload_transition")
    ends = transitions.filter(pl.col("transition").is_in(["finished", "evicted", "preempted"]))
    attempts = (
        transitions.filter(pl.col("transition") == "scheduled")
        .select("workload_uid", "attempt", scheduled_at="occurred_at")
        .join(
            ends.select("workload_uid", "attempt", stopped_at="occurred_at"),
            on=["workload_uid", "attempt"],
            how="left",
        )
    )
    allocations = fleets.table(asked, "allocation")
    held = allocations.join(
        attempts, left_on=["workload_uid", "started_at"], right_on=["workload_uid", "scheduled_at"]
    )
    assert held.height == allocations.height
    assert held["ended_at"].equals(held["stopped_at"], null_equal=True)
    assert (held["ended_at"].is_null() | (held["ended_at"] > held["started_at"])).all()


@given(some_fleets)
@few
def test_no_slot_has_two_holders_and_no_board_is_held_beyond_itself(
    asked: SimulationParameters,
) -> None:
    allocations = fleets.table(asked, "allocation").with_columns(
        pl.col("ended_at").fill_null(pl.lit(asked.until_at))
    )
    slot = ["device_uuid", "instance_id", "replica"]
    for _, holders in allocations.group_by(slot):
        ordered = holders.sort("started_at", "ended_at").to_dicts()
        assert all(a["ended_at"] <= b["started_at"] for a, b in pairwise(ordered))
    starts = allocations.select("device_uuid", at="started_at", share="gpu_share_ratio")
    stops = allocations.select("device_uuid", at="ended_at", share=-pl.col("gpu_share_ratio"))
    held = (
        pl.concat([starts, stops])
        .group_by("device_uuid", "at")
        .agg(pl.col("share").sum())
        .sort("device_uuid", "at")
        .select(share=pl.col("share").cum_sum().over("device_uuid"))
    )
    lowest, highest = fleets.extent(held, "share")
    assert -1e-9 < lowest <= highest < 1 + 1e-9


@given(some_fleets)
@few
def test_no_node_hands_out_more_processors_or_memory_than_it_has(
    asked: SimulationParameters,
) -> None:
    world = fleets.world(asked)
    steps = []
    for run in world.history.runs:
        for pod in run.pods:
            size = (run.request.cpu_milli, run.request.memory_bytes)
            end_s = asked.duration_s if run.ended_s is None else run.ended_s
            steps.append((run.scheduled_s, 1, pod.node_index, size))
            steps.append((end_s, -1, pod.node_index, size))
    free = [[node.shape.cpu_milli, node.shape.memory_bytes] for node in world.fleet.nodes]
    for _, sign, index, size in sorted(steps):
        free[index] = [left - sign * part for left, part in zip(free[index], size, strict=True)]
        assert min(free[index]) >= 0


@given(some_fleets)
@few
def test_quota_is_never_exceeded(asked: SimulationParameters) -> None:
    quota = fleets.table(asked, "quota_snapshot")
    assert (quota["used_gpu_count"] <= quota["limit_gpu_count"] + 1e-6).all()
    assert (quota["used_gpu_count"] >= 0).all()
    by_model = quota.group_by("observed_at", "gpu_model").agg(
        pl.col("used_gpu_count").sum(), pl.col("guaranteed_gpu_count").sum()
    )
    assert (by_model["used_gpu_count"] <= by_model["guaranteed_gpu_count"] + 1e-6).all()


@given(some_fleets)
@few
def test_each_life_goes_forward(asked: SimulationParameters) -> None:
    order = [
        "created",
        "requeued",
        "quota_reserved",
        "admitted",
        "scheduled",
        "started",
        "ready",
        "evicted",
        "preempted",
        "finished",
    ]
    transitions = fleets.table(asked, "workload_transition")
    for _, life in transitions.group_by("workload_uid", maintain_order=True):
        steps = [
            (row["attempt"], order.index(row["transition"])) for row in life.iter_rows(named=True)
        ]
        assert steps == sorted(set(steps))
        assert steps[0] == (1, 0)


@given(some_fleets)
@few
def test_readings_are_physical(asked: SimulationParameters) -> None:
    samples = fleets.table(asked, "device_sample")
    for name in samples.columns:
        if name.endswith("_ratio"):
            known = samples[name].drop_nulls()
            assert known.is_between(0, 1).all()
    assert samples["sm_occupancy_ratio"].drop_nulls().len() > 0
    assert (samples["sm_occupancy_ratio"] <= samples["sm_active_ratio"]).all()
    parts = samples.select(
        pl.col("memory_used_bytes")
        + pl.col("memory_free_bytes")
        + pl.col("memory_reserved_bytes")
        - pl.col("memory_total_bytes")
    ).to_series()
    assert (parts.drop_nulls() == 0).all()
    assert samples.select("device_uuid", "instance_id", "sampled_at").is_unique().all()


@given(some_fleets)
@few
def test_energy_only_rises_but_for_one_reset(asked: SimulationParameters) -> None:
    falls = (
        fleets.table(asked, "device_sample")
        .filter(pl.col("energy_j").is_not_null())
        .sort("device_uuid", "sampled_at")
        .select("device_uuid", fell=pl.col("energy_j").diff().over("device_uuid") < 0)
        .filter("fell")
    )
    returned = fleets.table(asked, "device_event").filter(pl.col("kind") == "returned")
    assert falls["device_uuid"].to_list() == returned["device_uuid"].to_list()
