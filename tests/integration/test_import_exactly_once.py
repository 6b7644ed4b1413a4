"""``steward import`` into a real warehouse: whole, once, and nothing of what is broken."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from collector.batches import Batch
from collector.imports import store
from collector.sources.simulated import simulated_batches
from sql.access import open_warehouse
from steward.errors import WarehouseError
from steward.ids import BatchId
from steward.main import main
from steward.ports import AppendReceipt, ArrowTable, Writer
from steward.settings import Settings
from tests.support import simulated_fleets as fleets
from tests.support.openb_files import PODS, node_file, pod_file

SMALL = ["--days", "1", "--nodes", "4", "--cadence", "1800"]
UNTIL = ["--until", "2026-06-15T00:00:00Z"]
TABLES = (
    "node",
    "device",
    "device_sample",
    "device_event",
    "scrape",
    "allocation",
    "workload",
    "workload_transition",
    "kubernetes_event",
    "quota_snapshot",
)
EXPOSITION = """\
# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).
# TYPE DCGM_FI_DEV_GPU_UTIL gauge
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-a",modelName="Tesla T4",Hostname="n1"} 38
"""


def counts(folder: Path) -> dict[str, int]:
    """Return the rows of each table."""
    with open_warehouse(Settings(data_dir=folder)) as warehouse:
        return {
            name: pa.table(warehouse.sql(f"select count(*) as n from {name}"))["n"][0].as_py()  # noqa: S608 - names of this file
            for name in TABLES
        }


def run_import(*arguments: str, folder: Path) -> int:
    """Run the command as a person would."""
    return main(["import", *arguments, "--data-dir", str(folder)])


def test_a_simulated_fleet_is_stored_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_import("simulated", *SMALL, *UNTIL, folder=tmp_path) == 0
    first = counts(tmp_path)
    assert min(first.values()) > 0
    told = capsys.readouterr()
    assert f"{first['device_sample']:,} rows" in told.out
    assert told.err.startswith("importing a simulated fleet of 4 nodes, seed 7")
    assert run_import("simulated", *SMALL, *UNTIL, folder=tmp_path) == 0
    assert counts(tmp_path) == first
    assert "already imported" in capsys.readouterr().out


def test_without_until_the_stored_fleet_is_meant(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_import("simulated", *SMALL, *UNTIL, folder=tmp_path) == 0
    assert run_import("simulated", *SMALL, folder=tmp_path) == 0
    assert "already imported" in capsys.readouterr().out


def test_another_fleet_is_not_mixed_in(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_import("simulated", *SMALL, *UNTIL, folder=tmp_path) == 0
    first = counts(tmp_path)
    assert run_import("simulated", *SMALL, *UNTIL, "--seed", "8", folder=tmp_path) == 4
    assert "already holds another simulated fleet" in capsys.readouterr().err
    assert counts(tmp_path) == first


class FailingWriter:
    """A warehouse that stops serving after some batches."""

    def __init__(self, writer: Writer, *, batch_count: int) -> None:
        """Serve this many batches."""
        self._writer = writer
        self._left = batch_count

    def append(self, table: str, rows: ArrowTable, *, batch_id: BatchId) -> AppendReceipt:
        """Store the batch, or fail."""
        if self._left == 0:
            raise WarehouseError("no space left on device", hint="free some space")
        self._left -= 1
        return self._writer.append(table, rows, batch_id=batch_id)


@pytest.mark.parametrize("stored_count", [0, 1, 5])
def test_an_import_cut_short_goes_on_where_it_stopped(tmp_path: Path, stored_count: int) -> None:
    asked = fleets.parameters(node_count=4, cadence_s=1_800)
    whole: dict[str, int] = {}
    for batch in fleets.batches(asked):
        whole[batch.table] = whole.get(batch.table, 0) + batch.rows.num_rows
    seen: list[Batch] = []
    with open_warehouse(Settings(data_dir=tmp_path)) as warehouse:
        failing = FailingWriter(warehouse, batch_count=stored_count)
        with pytest.raises(WarehouseError, match="no space"):
            store(failing, simulated_batches(asked), on_batch=seen.append)
        assert len(seen) == stored_count
        tally = store(warehouse, simulated_batches(asked), on_batch=seen.append)
    assert sum(tally.repeated_rows.values()) == sum(
        each.rows.num_rows for each in seen[:stored_count]
    )
    assert not tally.is_repeat
    assert counts(tmp_path) == whole


def test_openb_is_stored_once_and_another_list_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, nodes, pods = tmp_path / "w", node_file(tmp_path), pod_file(tmp_path)
    flags = ["openb", "--nodes", str(nodes), "--pods", str(pods)]
    assert run_import(*flags, folder=folder) == 0
    first = counts(folder)
    assert (first["node"], first["device"], first["workload"]) == (2, 2, 2)
    assert run_import(*flags, folder=folder) == 0
    assert "already imported: openb" in capsys.readouterr().out
    pod_file(tmp_path, *PODS[:2])
    assert run_import(*flags, folder=folder) == 4
    assert "already holds another openb trace" in capsys.readouterr().err
    assert counts(folder) == first


def test_a_broken_last_line_stores_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, nodes = tmp_path / "w", node_file(tmp_path)
    pods = pod_file(tmp_path, *PODS, "p2,1,1")
    assert run_import("openb", "--nodes", str(nodes), "--pods", str(pods), folder=folder) == 4
    told = capsys.readouterr().err
    assert f"{pods}:4: 3 fields where the header has 11" in told
    assert "hint:" in told
    assert sum(counts(folder).values()) == 0


def test_a_saved_text_is_one_scrape(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved, folder = tmp_path / "n1.prom", tmp_path / "w"
    saved.write_text(EXPOSITION, encoding="utf-8")
    at = datetime(2026, 5, 1, 12, tzinfo=UTC)
    os.utime(saved, (at.timestamp(), at.timestamp()))
    assert run_import("exposition", str(saved), folder=folder) == 0
    stored = counts(folder)
    assert (stored["device_sample"], stored["device"], stored["scrape"]) == (1, 1, 1)
    with open_warehouse(Settings(data_dir=folder)) as warehouse:
        (row,) = pa.table(warehouse.sql("select * from device_sample")).to_pylist()
    assert (row["sampled_at"], row["device_uuid"], row["busy_ratio"]) == (at, "GPU-a", 0.38)
    assert run_import("exposition", str(saved), folder=folder) == 0
    assert counts(folder) == stored
    assert "already imported: 1 exporter text" in capsys.readouterr().out


def test_one_bad_file_among_saved_texts_stores_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good, bad, folder = tmp_path / "a.prom", tmp_path / "b.prom", tmp_path / "w"
    good.write_text(EXPOSITION, encoding="utf-8")
    bad.write_text("<html><body>login</body></html>\n", encoding="utf-8")
    assert run_import("exposition", str(good), str(bad), folder=folder) == 4
    assert str(bad) in capsys.readouterr().err
    assert not folder.exists()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["simulated", "--days", "0"], "--days 0 is outside 1..90"),
        (["simulated", "--until", "yesterday"], "is not an ISO 8601 instant"),
        (["simulated", "--until", "2026-06-15T00:00:00"], "has no time zone"),
        (["simulated", "--until", "9999-06-15T00:00:00Z"], "is not a year from 1970 to 2200"),
        (["openb"], "--nodes, --pods"),
        ([], "SOURCE"),
    ],
)
def test_a_wrong_command_line(
    arguments: list[str], told: str, *, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_import(*arguments, folder=tmp_path / "w") == 2
    assert told in capsys.readouterr().err
    assert not (tmp_path / "w").exists()
