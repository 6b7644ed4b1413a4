"""A cluster's past from a real server: pods, workloads, attempts and nodes exactly as they were."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from sql.access import open_warehouse
from steward.settings import Settings
from tests.support.backfill_cluster import cluster_lines
from tests.support.backfill_exporters import gpu_text_held_by
from tests.support.backfill_history import (
    KEEP_FOREVER,
    PastTarget,
    asked_for,
    every,
    openmetrics,
    run_import,
)
from tests.support.prometheus_server import (
    PrometheusOptions,
    PrometheusServer,
    history_blocks,
    prometheus_server,
)

pytestmark = pytest.mark.slow

LENGTH = timedelta(hours=3)
HELD = range(13, 40)
"""Minutes in which pod fit-1 held the GPU; its label stays two minutes longer."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrometheusServer]:
    """Run a server that knows a cluster and one exporter."""
    exporter = PastTarget(
        instance="10.0.0.1:9400",
        job="dcgm",
        texts={
            at: gpu_text_held_by("fit-1" if n in HELD or n - 2 in HELD else "")
            for n, at in every(LENGTH, step=timedelta(minutes=1))
        },
    )
    blocks = history_blocks(
        tmp_path_factory.mktemp("history"), [*openmetrics([exporter]), *cluster_lines()]
    )
    with prometheus_server([], options=PrometheusOptions(blocks=blocks, flags=KEEP_FOREVER)) as one:
        yield one


@pytest.fixture(scope="module")
def folder(server: PrometheusServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a data folder with that past."""
    place = tmp_path_factory.mktemp("w")
    assert run_import(place, asked_for(server.url, length=LENGTH)) == 0
    return place


def rows(folder: Path, statement: str) -> list[tuple[object, ...]]:
    """Return the rows of a statement."""
    with open_warehouse(Settings(data_dir=folder)) as warehouse:
        return [tuple(row.values()) for row in pa.table(warehouse.sql(statement)).to_pylist()]


def test_each_attempt_has_its_wait(folder: Path) -> None:
    told = rows(
        folder,
        """
        select workload_uid, attempt, transition, strftime(occurred_at, '%H:%M')
        from workload_transition
        order by workload_uid, attempt, occurred_at, transition
        """,
    )
    assert [row[1:] for row in told if row[0] == "past/Job/lab/fit"] == [
        (1, "created", "06:04"),
        (1, "scheduled", "06:12"),
        (1, "started", "06:13"),
        (1, "finished", "06:40"),
        (2, "requeued", "06:41"),
        (2, "scheduled", "07:05"),
        (2, "started", "07:06"),
        (2, "ready", "07:07"),
        (2, "finished", "08:05"),
    ]
    assert [row[1:] for row in told if row[0] == "past/Deployment/lab/serve"] == [
        (1, "created", "05:10"),
        (1, "scheduled", "05:31"),
        (1, "started", "05:32"),
        (1, "ready", "05:33"),
    ]
    assert [row[1:] for row in told if row[0] == "uid-waiting"] == [(1, "created", "07:40")]
    assert ("uid-evicted", 1, "finished", "07:31") in told


def test_pods_that_were_deleted_are_told_as_gone(folder: Path) -> None:
    gone = rows(
        folder,
        "select pod, reason, strftime(deleted_at, '%H:%M') from pod where deleted_at is not null "
        "order by pod",
    )
    assert gone == [("fit-1", "Failed", "07:09"), ("lonely", "PodDeleted", "07:14")]


def test_workloads_have_their_owners(folder: Path) -> None:
    found = rows(folder, "select distinct kind, name, tenant_id, workload_class from workload")
    assert ("Job", "fit", "vision", "training") in found
    assert ("Deployment", "serve", None, "inference") in found


def test_a_cordon_is_seen_and_its_end(folder: Path) -> None:
    found = rows(
        folder,
        "select is_schedulable, gpu_count, allocatable_gpu_count, gpu_model from node "
        "order by observed_at",
    )
    model = "NVIDIA-A100-SXM4-40GB"
    assert found == [(True, 4, 4, model), (False, 4, 4, model), (True, 4, 4, model)]


def test_an_allocation_ends_with_its_containers_not_with_its_label(folder: Path) -> None:
    held = rows(
        folder,
        """
        select pod, pod_uid, workload_uid, tenant_id, strftime(started_at, '%H:%M'),
            strftime(max(ended_at), '%H:%M')
        from allocation
        group by all
        """,
    )
    assert held == [("fit-1", "uid-fit-1", "past/Job/lab/fit", "vision", "06:13", "06:40")]
