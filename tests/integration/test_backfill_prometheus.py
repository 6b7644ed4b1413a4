"""``steward import prometheus`` from a real server with a known past: exact, once, resumable."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from steward.errors import SourceError, WarehouseError
from tests.support.backfill_cluster import cluster_lines
from tests.support.backfill_exporters import mig_text, plain_text
from tests.support.backfill_history import (
    KEEP_FOREVER,
    START,
    TABLES,
    PastTarget,
    asked_for,
    direct_rows,
    every,
    openmetrics,
    ordered,
    run_import,
    run_import_dying,
    stored_rows,
)
from tests.support.collector_process import running_steward, steward
from tests.support.prometheus_server import (
    PrometheusOptions,
    PrometheusServer,
    history_blocks,
    prometheus_server,
)

pytestmark = pytest.mark.slow

LENGTH = timedelta(hours=3)
DOWN = range(40, 44)
PLAIN = PastTarget(
    instance="10.0.0.1:9400",
    job="dcgm",
    texts={at: None if n in DOWN else plain_text(n) for n, at in every(LENGTH)},
)
MIG = PastTarget(
    instance="10.0.0.2:9400",
    job="dcgm",
    labels={"pod": "exporter-x7", "namespace": "gpu", "container": "exporter", "node": "mig-node"},
    texts={at: mig_text(n) for n, at in every(LENGTH)},
)


@pytest.fixture(scope="module")
def blocks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return three hours of two targets and a cluster, as a server keeps them."""
    lines = [*openmetrics([PLAIN, MIG]), *cluster_lines()]
    return history_blocks(tmp_path_factory.mktemp("history"), lines)


@pytest.fixture(scope="module")
def server(blocks: Path) -> Iterator[PrometheusServer]:
    """Run a server with that past."""
    with prometheus_server([], options=PrometheusOptions(blocks=blocks, flags=KEEP_FOREVER)) as one:
        yield one


@pytest.fixture(scope="module")
def whole(
    server: PrometheusServer, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, list[str]]:
    """Return all rows of one import without a break."""
    folder = tmp_path_factory.mktemp("whole")
    assert run_import(folder, asked_for(server.url, length=LENGTH)) == 0
    return tables(folder)


def tables(folder: Path) -> dict[str, list[str]]:
    """Return all rows that were stored."""
    return {name: ordered(stored_rows(folder, name)) for name in TABLES}


def test_the_rows_are_those_of_scraping_directly(server: PrometheusServer, tmp_path: Path) -> None:
    assert run_import(tmp_path, asked_for(server.url, length=LENGTH)) == 0
    plain, mig = direct_rows(PLAIN), direct_rows(MIG)
    for table in ("device", "device_event", "device_sample"):
        assert plain[table]
        assert ordered(stored_rows(tmp_path, table)) == ordered(plain[table] + mig[table])
    scrapes = stored_rows(tmp_path, "scrape")
    failed = [row for row in scrapes if not row["is_ok"]]
    assert [row["reason"] for row in failed] == ["up_is_0"] * len(DOWN)
    good = [row for row in scrapes if row["is_ok"]]
    assert ordered(good) == ordered(plain["scrape"] + mig["scrape"])


@pytest.mark.parametrize("batch_count", [0, 1, 12, 20])
def test_an_import_cut_short_goes_on_to_the_same_rows(
    server: PrometheusServer,
    whole: dict[str, list[str]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    *,
    batch_count: int,
) -> None:
    asked = asked_for(server.url, length=LENGTH)
    with pytest.raises(WarehouseError, match="killed"):
        run_import_dying(tmp_path, asked, batch_count=batch_count)
    capsys.readouterr()
    assert run_import(tmp_path, asked) == 0
    assert ("going on at" in capsys.readouterr().err) == (batch_count >= 12)
    assert tables(tmp_path) == whole


def test_other_windows_and_a_lost_checkpoint_store_nothing_twice(
    server: PrometheusServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = asked_for(server.url, length=LENGTH)
    run_import(tmp_path, asked)
    first = tables(tmp_path)
    (checkpoint,) = (tmp_path / "imports").iterdir()
    checkpoint.unlink()
    capsys.readouterr()
    assert run_import(tmp_path, replace(asked, window_minutes=7)) == 0
    assert "already imported" in capsys.readouterr().out
    assert tables(tmp_path) == first


def test_a_longer_period_adds_only_what_is_new(
    server: PrometheusServer, whole: dict[str, list[str]], tmp_path: Path
) -> None:
    for hours in (1, 2, 2, 3):
        assert run_import(tmp_path, asked_for(server.url, length=timedelta(hours=hours))) == 0
    assert tables(tmp_path) == whole


def test_a_new_warehouse_is_filled_though_a_checkpoint_says_it_is(
    server: PrometheusServer, whole: dict[str, list[str]], tmp_path: Path
) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    asked = asked_for(server.url, length=LENGTH)
    run_import(old, asked)
    new.mkdir()
    (old / "imports").rename(new / "imports")
    run_import(new, asked)
    assert tables(new) == whole


def test_a_server_with_low_limits_is_asked_for_less(
    blocks: Path, whole: dict[str, list[str]], tmp_path: Path
) -> None:
    options = PrometheusOptions(blocks=blocks, flags=(*KEEP_FOREVER, "--query.max-samples=400"))
    with prometheus_server([], options=options) as limited:
        assert run_import(tmp_path, asked_for(limited.url, length=LENGTH)) == 0
    assert tables(tmp_path) == whole


def test_a_server_that_gives_not_even_one_scrape_is_told(blocks: Path, tmp_path: Path) -> None:
    options = PrometheusOptions(blocks=blocks, flags=(*KEEP_FOREVER, "--query.max-samples=3"))
    with (
        prometheus_server([], options=options) as limited,
        pytest.raises(SourceError, match="so much at once") as told,
    ):
        run_import(tmp_path, asked_for(limited.url, length=LENGTH))
    assert "--match" in told.value.hint


def test_only_matching_series_are_read(server: PrometheusServer, tmp_path: Path) -> None:
    run_import(tmp_path, asked_for(server.url, length=LENGTH, match='{instance="10.0.0.2:9400"}'))
    nodes = {row["node"] for row in stored_rows(tmp_path, "device_sample")}
    assert nodes == {"mig-node"}


def test_a_period_without_gpu_metrics_is_told(server: PrometheusServer, tmp_path: Path) -> None:
    asked = asked_for(server.url, start=START - timedelta(days=90), length=timedelta(days=1))
    with pytest.raises(SourceError, match="holds no GPU metrics") as told:
        run_import(tmp_path, asked)
    assert "how far back" in told.value.hint


def test_a_shorter_retention_than_asked_is_said(
    server: PrometheusServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = asked_for(server.url, start=START - timedelta(hours=5), length=timedelta(hours=6))
    assert run_import(tmp_path, asked) == 0
    assert "no GPU metrics of the first 5 hours asked for" in capsys.readouterr().out


def test_a_period_that_somebody_else_told_of_is_said(
    server: PrometheusServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = asked_for(server.url, length=timedelta(hours=1))
    assert run_import(tmp_path, asked) == 0
    assert "already holds" not in capsys.readouterr().err
    next((tmp_path / "imports").iterdir()).unlink()
    assert run_import(tmp_path, asked) == 0
    assert "already holds" not in capsys.readouterr().err
    assert run_import(tmp_path, replace(asked, match='{job="dcgm"}')) == 0
    assert "already holds scrapes of cluster 'default'" in capsys.readouterr().err


def test_a_process_that_is_killed_is_simply_run_again(
    server: PrometheusServer, whole: dict[str, list[str]], tmp_path: Path
) -> None:
    period = ("--from", "2026-01-05T06:00:00Z", "--to", "2026-01-05T09:00:00Z")
    command = ("import", "prometheus", "--url", server.url, *period, "--data-dir", str(tmp_path))
    with running_steward(*command, cwd=tmp_path, name="first") as first:
        first.wait_for(lambda: any(tmp_path.glob("imports/*.msgpack")))
        first.stop(signal.SIGKILL)
    again = steward(*command, cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert "going on at" in again.stderr or "already imported" in again.stdout
    assert tables(tmp_path) == whole
