"""The public openb trace arrives whole: counts by model, pods, and those never scheduled."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

from steward.main import main
from steward.settings import Settings

GPUS_BY_MODEL = {
    "G2": 4392,
    "T4": 842,
    "G3": 312,
    "P100": 265,
    "V100M32": 204,
    "V100M16": 195,
    "A10": 2,
}


@pytest.fixture(scope="module")
def imported(test_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a data folder into which the command has imported the trace."""
    folder = tmp_path_factory.mktemp("openb")
    trace = test_data / "traces" / "openb"
    nodes, pods = trace / "openb_node_list_gpu_node.csv", trace / "openb_pod_list_default.csv"
    flags = ["--nodes", str(nodes), "--pods", str(pods), "--data-dir", str(folder)]
    assert main(["import", "openb", *flags]) == 0
    return folder


def asked(folder: Path, statement: str) -> list[tuple[object, ...]]:
    """Return the rows of a statement."""
    from sql.access import open_warehouse

    with open_warehouse(Settings(data_dir=folder)) as warehouse:
        table = pa.table(warehouse.sql(statement))
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def test_nodes_and_devices(imported: Path) -> None:
    assert asked(imported, "select count(*), sum(gpu_count) from node") == [(1213, 6212)]
    by_model = asked(imported, "select model, count(*) from device group by model order by model")
    assert Counter(dict(by_model)) == Counter(GPUS_BY_MODEL)  # type: ignore[arg-type]  # two columns


def test_pods_and_those_never_scheduled(imported: Path) -> None:
    counts = asked(
        imported,
        "select transition, count(*) from workload_transition group by transition "
        "order by transition",
    )
    assert counts == [("created", 8152), ("finished", 8152), ("scheduled", 8152 - 897)]
    assert asked(imported, "select count(distinct workload_uid) from workload") == [(8152,)]
    never = asked(
        imported,
        "select reason, count(*) from workload_transition where transition = 'finished' "
        "and workload_uid not in (select workload_uid from workload_transition "
        "where transition = 'scheduled') group by reason order by reason",
    )
    assert never == [("Pending", 897)]


@pytest.mark.parametrize(
    ("pods", "count"),
    [
        ("openb_pod_list_gpuspec33.csv", 8152),
        ("openb_pod_list_gpuspec10.csv.gz", 8152),
        ("openb_pod_list_gpushare100.csv.gz", 8152),
        ("openb_pod_list_cpu050.csv.gz", 7439),
        ("openb_pod_list_cpu250.csv.gz", 9420),
    ],
)
def test_the_other_lists_are_read_too(test_data: Path, pods: str, count: int) -> None:
    from collector.sources.replay import read_openb

    trace = test_data / "traces" / "openb"
    read = read_openb(
        nodes=trace / "openb_node_list_all_node.csv", pods=trace / pods, cluster="default"
    )
    assert len(read.pods) == count


def test_a_list_of_shapes_without_times_is_refused(
    test_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = test_data / "traces" / "openb"
    nodes = trace / "openb_node_list_gpu_node.csv"
    pods = trace / "openb_pod_list_multigpu50.csv.gz"
    flags = ["--nodes", str(nodes), "--pods", str(pods), "--data-dir", str(tmp_path / "w")]
    assert main(["import", "openb", *flags]) == 4
    assert "missing 'gpu_spec', 'qos', 'pod_phase', 'creation_time'" in capsys.readouterr().err
    assert not (tmp_path / "w").exists()
