"""Every pathology that a fleet shows is there, in the default size, for more than one seed."""

from __future__ import annotations

import polars as pl
import pytest

from collector.sources.simulated import SimulationParameters
from tests.support import simulated_fleets as fleets

DAY_COUNT = 2
SEEDS = [7, 8]
MIG_BOARD_COLUMNS = ["power_w", "energy_j", "temperature_celsius", "sm_clock_hz"]
ENGINE_COLUMNS = ["graphics_active_ratio", "sm_active_ratio", "dram_active_ratio"]


@pytest.fixture(params=SEEDS)
def asked(request: pytest.FixtureRequest) -> SimulationParameters:
    return fleets.parameters(seed=request.param, days=DAY_COUNT, node_count=24)


def held_samples(asked: SimulationParameters, workload: str) -> pl.DataFrame:
    """Return the samples of a planted workload once it has surely started."""
    pods = fleets.table(asked, "allocation").filter(pl.col("pod").str.starts_with(workload))
    assert pods.height > 0
    return (
        fleets.table(asked, "device_sample")
        .join(
            pods.select("device_uuid", "instance_id", "started_at", "ended_at"),
            on=["device_uuid", "instance_id"],
            nulls_equal=True,
        )
        .filter(
            pl.col("sampled_at") > pl.col("started_at") + pl.duration(seconds=90),
            pl.col("ended_at").is_null() | (pl.col("sampled_at") < pl.col("ended_at")),
        )
    )


def test_four_models_five_tenants_and_three_classes(asked: SimulationParameters) -> None:
    assert fleets.table(asked, "node")["gpu_model"].n_unique() == 4
    workloads = fleets.table(asked, "workload")
    assert workloads["tenant_id"].n_unique() == 5
    assert {"training", "inference", "development"} <= set(workloads["workload_class"])


def test_idle_holders_hold_memory_and_do_nothing(asked: SimulationParameters) -> None:
    samples = held_samples(asked, "reserved-just-in-case")
    assert (samples["busy_ratio"] == 0).all()
    assert (samples["sm_active_ratio"].drop_nulls() == 0).all()
    assert (samples["memory_used_bytes"] > 0).all()


def test_one_kernel_on_one_multiprocessor_looks_busy(asked: SimulationParameters) -> None:
    samples = held_samples(asked, "one-sm-loop")
    assert (samples["busy_ratio"] == 1).all()
    assert fleets.mean(samples, "sm_active_ratio") == pytest.approx(0.0076, abs=0.0004)


def test_a_deadlock_spins_at_low_power(asked: SimulationParameters) -> None:
    samples = held_samples(asked, "collective-hang")
    assert (samples["busy_ratio"] == 1).all()
    assert fleets.mean(samples, "sm_active_ratio") > 0.95
    for name in ("tensor_active_ratio", "dram_active_ratio"):
        assert (samples[name].drop_nulls() == 0).all()
    idle_w, limit_w = 70, 700
    assert fleets.extent(samples, "power_w")[1] < idle_w + 0.3 * (limit_w - idle_w)


def test_memory_bound_work_leaves_the_tensor_pipes_empty(asked: SimulationParameters) -> None:
    for name in ("embedding-scan", "slice-scan"):
        samples = held_samples(asked, name)
        assert fleets.mean(samples, "graphics_active_ratio") > 0.95
        assert fleets.extent(samples, "tensor_active_ratio")[1] < 0.001
        assert fleets.mean(samples, "dram_active_ratio") == pytest.approx(0.648, abs=0.02)


def test_short_kernels_starve(asked: SimulationParameters) -> None:
    samples = held_samples(asked, "tiny-kernels")
    assert fleets.mean(samples, "busy_ratio") > 0.9
    assert fleets.mean(samples, "sm_active_ratio") == pytest.approx(0.2, abs=0.02)


def test_boards_in_mig_mode_split_their_values(asked: SimulationParameters) -> None:
    samples = fleets.table(asked, "device_sample")
    in_mig = samples.filter(pl.col("instance_id").is_not_null())["device_uuid"].unique()
    rows = samples.filter(pl.col("device_uuid").is_in(in_mig.implode()))
    boards = rows.filter(pl.col("instance_id").is_null())
    instances = rows.filter(pl.col("instance_id").is_not_null())
    assert rows["busy_ratio"].is_null().all()
    assert boards.select(MIG_BOARD_COLUMNS).null_count().sum_horizontal().item() == 0
    assert instances.select(pl.col(MIG_BOARD_COLUMNS).is_null().all()).row(0) == (True,) * 4
    assert boards.select(pl.col(ENGINE_COLUMNS).is_null().all()).row(0) == (True,) * 3
    assert instances["memory_used_bytes"].null_count() == 0
    assert fleets.extent(boards, "power_w")[0] >= 76


def test_several_holders_share_one_gpu(asked: SimulationParameters) -> None:
    shared = fleets.table(asked, "allocation").filter(pl.col("sharing_mode") == "shared_equal")
    assert (shared["gpu_share_ratio"] == 0.25).all()
    holders = shared.group_by("device_uuid").agg(pod_count=pl.col("pod").n_unique())
    assert fleets.extent(holders, "pod_count")[1] > 2


def test_free_gpus_are_stranded_on_a_node_without_processors(
    asked: SimulationParameters,
) -> None:
    world = fleets.world(asked)
    runs = [run for run in world.history.runs if run.request.name.startswith("feature-extract")]
    (node_index,) = {run.pods[0].node_index for run in runs}
    taken_milli = sum(run.request.cpu_milli for run in runs)
    assert world.fleet.nodes[node_index].shape.cpu_milli - taken_milli < 6_000
    assert sum(run.request.slot_count for run in runs) == 2


def test_telemetry_is_missing_in_three_ways(asked: SimulationParameters) -> None:
    scrapes = fleets.table(asked, "scrape")
    reasons = scrapes.filter(~pl.col("is_ok"))["reason"].value_counts()
    assert set(reasons["reason"]) == {"timeout", "connection_refused"}
    away = scrapes.filter(pl.col("reason") == "connection_refused")
    instants = away["scraped_at"].to_list()
    assert (max(instants) - min(instants)).total_seconds() >= 5 * 3600
    assert (scrapes.filter(~pl.col("is_ok"))["sample_count"] == 0).all()
    lost = fleets.table(asked, "device_sample").filter(
        pl.col("absences").str.contains("sm_active_ratio=blank")
    )
    assert lost.height > 0
    assert lost["sm_active_ratio"].is_null().all()
    assert lost["busy_ratio"].null_count() == 0
    listed = lost["absences"][0].split(",")
    assert listed == sorted(listed)


def test_no_samples_come_from_a_silent_exporter(asked: SimulationParameters) -> None:
    failed = (
        fleets.table(asked, "scrape")
        .filter(~pl.col("is_ok"))
        .select(
            sampled_at="scraped_at",
            node=pl.col("target").str.extract(r"http://(.*):9400/metrics"),
        )
    )
    samples = fleets.table(asked, "device_sample")
    assert samples.join(failed, on=["sampled_at", "node"]).height == 0


def test_a_gpu_is_lost_and_comes_back(asked: SimulationParameters) -> None:
    events = fleets.table(asked, "device_event").filter(pl.col("kind") != "xid")
    first = events["device_uuid"][0]
    lost_at, returned_at = events.filter(pl.col("device_uuid") == first)["occurred_at"]
    seen = fleets.table(asked, "device_sample").filter(pl.col("device_uuid") == first)
    away = pl.col("sampled_at").is_between(lost_at, returned_at, closed="left")
    assert seen.filter(away).height == 0
    assert seen.filter(pl.col("sampled_at") >= returned_at).height > 0
    states = fleets.table(asked, "device").filter(pl.col("device_uuid") == first)
    assert set(states["is_present"]) == {True, False}
    xids = fleets.table(asked, "device_event").filter(pl.col("kind") == "xid")
    assert first in set(xids.filter(pl.col("code") == 79)["device_uuid"])


def test_some_wait_some_give_up_and_one_still_waits(asked: SimulationParameters) -> None:
    transitions = fleets.table(asked, "workload_transition")
    names = fleets.table(asked, "workload").select("workload_uid", "name")
    lives = transitions.join(names, on="workload_uid")
    kinds = {
        name: lives.filter(pl.col("name") == name)["transition"].to_list()
        for name in ("too-large", "still-waiting")
    }
    assert kinds == {"too-large": ["created", "finished"], "still-waiting": ["created"]}
    reasons = set(fleets.table(asked, "kubernetes_event")["reason"])
    assert reasons == {"FailedScheduling", "Pending"}


def test_a_tenant_borrows_while_another_waits(asked: SimulationParameters) -> None:
    quota = fleets.table(asked, "quota_snapshot")
    borrowing = quota.filter(pl.col("borrowed_gpu_count") > 0).select(
        "observed_at", "gpu_model", borrower="tenant_id"
    )
    waiting = quota.filter(pl.col("pending_workload_count") > 0)
    both = waiting.join(borrowing, on=["observed_at", "gpu_model"])
    assert both.filter(pl.col("tenant_id") != pl.col("borrower")).height > 0


def test_services_follow_the_day(asked: SimulationParameters) -> None:
    samples = held_samples(asked, "ranker").with_columns(hour=pl.col("sampled_at").dt.hour())
    noon = fleets.mean(samples.filter(pl.col("hour") == 13), "sm_active_ratio")
    night = fleets.mean(samples.filter(pl.col("hour") == 1), "sm_active_ratio")
    assert noon > 3 * night > 0
