"""The openb trace as rows, and every way in which its files can be wrong."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from collector.sources.replay import OpenbTrace, read_openb
from steward.errors import InputError
from tests.support.openb_files import (
    NODE_HEADER,
    NODES,
    POD_HEADER,
    PODS,
    node_file,
    pod_file,
    write_lines,
)

START = datetime(2023, 1, 1, tzinfo=UTC)


def rows(trace: OpenbTrace, table: str) -> list[dict[str, Any]]:
    """Return the rows of one table."""
    return [row for each in trace.batches() if each.table == table for row in each.rows.to_pylist()]


def read(nodes: Path, pods: Path) -> OpenbTrace:
    """Return the trace in a cluster named after the test."""
    return read_openb(nodes=nodes, pods=pods, cluster="c")


@pytest.fixture
def trace(tmp_path: Path) -> OpenbTrace:
    return read(node_file(tmp_path), pod_file(tmp_path))


def test_a_node_with_gpus_and_one_without(trace: OpenbTrace) -> None:
    kept = ("node", "gpu_model", "gpu_count", "cpu_milli", "memory_bytes", "observed_at")
    assert [tuple(row[name] for name in kept) for row in rows(trace, "node")] == [
        ("n0", "P100", 2, 64_000, 1024 * 1024**2, START),
        ("n1", None, 0, 32_000, 512 * 1024**2, START),
    ]
    assert [row["device_uuid"] for row in rows(trace, "device")] == ["n0/0", "n0/1"]


def test_a_pod_keeps_its_shape(trace: OpenbTrace) -> None:
    kept = ("name", "kind", "tenant_id", "gpu_count", "gpu_milli", "gpu_models", "qos_class")
    assert [tuple(row[name] for name in kept) for row in rows(trace, "workload")] == [
        ("p0", "Pod", None, 1, 1000, None, "LS"),
        ("p1", "Pod", None, 1, 460, "T4|P100", "BE"),
    ]


def test_second_zero_is_scheduled_and_blank_is_never(trace: OpenbTrace) -> None:
    told = [
        (row["workload_uid"], row["transition"], row["reason"], row["occurred_at"])
        for row in rows(trace, "workload_transition")
    ]
    at = [START.replace(minute=second // 60, second=second % 60) for second in (0, 5, 50, 100)]
    assert told == [
        ("openb/p0", "created", None, at[0]),
        ("openb/p0", "scheduled", None, at[0]),
        ("openb/p1", "created", None, at[1]),
        ("openb/p1", "finished", "Pending", at[2]),
        ("openb/p0", "finished", "Running", at[3]),
    ]


def test_columns_may_come_in_another_order(tmp_path: Path) -> None:
    nodes = node_file(tmp_path, "model,gpu,memory_mib,cpu_milli,sn", "P100,2,1024,64000,n0")
    assert read(nodes, pod_file(tmp_path)).nodes[0].name == "n0"


def test_gzip_and_plain_are_the_same_import(tmp_path: Path, trace: OpenbTrace) -> None:
    packed = tmp_path / "pods.csv.gz"
    packed.write_bytes(gzip.compress((tmp_path / "pods.csv").read_bytes()))
    other = read(tmp_path / "nodes.csv", packed)
    assert [each.batch_id for each in other.batches()] == [
        each.batch_id for each in trace.batches()
    ]


def test_other_contents_are_another_import(tmp_path: Path, trace: OpenbTrace) -> None:
    other = read(tmp_path / "nodes.csv", pod_file(tmp_path, *PODS[:2]))
    assert other.identity() != trace.identity()
    ids = {each.batch_id for each in trace.batches()}
    assert ids.isdisjoint(each.batch_id for each in other.batches())


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        pytest.param((NODE_HEADER,), "no rows", id="header only"),
        pytest.param(("sn,cpu_milli,gpu,model", "n,1,1,T4"), "missing 'memory_mib'", id="missing"),
        pytest.param((f"{NODE_HEADER},price", "n,1,1,1,T4,9"), "unknown 'price'", id="extra"),
        pytest.param((f"{NODE_HEADER},sn", "n,1,1,1,T4,n"), "repeated 'sn'", id="column twice"),
        pytest.param((*NODES, "n2,64000,10"), ":4: 3 fields where the header has 5", id="cut off"),
        pytest.param((*NODES, "n2,1,1,1,T4,x"), ":4: 6 fields", id="field too many"),
        pytest.param((*NODES, ""), ":4: 0 fields", id="empty line"),
        pytest.param((*NODES, "n2,many,1,1,T4"), ":4: column cpu_milli is not", id="no number"),
        pytest.param((*NODES, "n2,1.5,1,1,T4"), ":4: column cpu_milli is not", id="fraction"),
        pytest.param((*NODES, "n2,nan,1,1,T4"), ":4: column cpu_milli is not", id="nan"),
        pytest.param(
            (*NODES, "n2,\u0661,1,1,T4"), ":4: column cpu_milli is not", id="other digits"
        ),
        pytest.param((*NODES, "n2,1,1,-1,T4"), ":4: column gpu is negative: -1", id="negative"),
        pytest.param((*NODES, "n2,1,1,1025,T4"), ":4: column gpu is more GPUs", id="too many GPUs"),
        pytest.param((*NODES, "n2,1,,1,T4"), ":4: column memory_mib is blank", id="blank"),
        pytest.param((*NODES, "n2,1,1,1,"), ":4: column model is blank", id="GPUs without model"),
        pytest.param((*NODES, "n0,1,1,1,T4"), ":4: column sn repeats 'n0' of line 2", id="twice"),
        pytest.param((*NODES, f"n2,{'9' * 5000},1,1,T4"), "is too large", id="huge number"),
        pytest.param((*NODES, f"n2,1,{2**30 + 1},1,T4"), "more memory", id="too much memory"),
        pytest.param((*NODES, f"n2,1,{2**53},1,T4"), "more memory", id="memory beyond a column"),
        pytest.param((*NODES, 'n2,"1,1,1,T4'), ":4: not CSV", id="open quote"),
        pytest.param(("{}",), "not the columns of an openb node list", id="JSON"),
    ],
)
def test_a_broken_node_list(tmp_path: Path, lines: tuple[str, ...], told: str) -> None:
    with pytest.raises(InputError) as caught:
        read(node_file(tmp_path, *lines), pod_file(tmp_path))
    assert told in caught.value.message
    assert str(tmp_path / "nodes.csv") in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("p9,1,1,1,1001,,LS,Running,0,9,0", "column gpu_milli is more than one GPU"),
        ("p9,1,1,1,1000,,LS,Running,9,8,", "column deletion_time is before creation_time"),
        ("p9,1,1,1,1000,,LS,Running,5,9,4", "column scheduled_time is not between"),
        ("p9,1,1,1,1000,,LS,Running,5,9,10", "column scheduled_time is not between"),
        ("p9,1,1,1,1000,,LS,,5,9,6", "column pod_phase is blank"),
        ("p9,1,1,1,1000,,LS,Running,5,99999999999,6", "column deletion_time is no time"),
        ("p1,1,1,1,1000,,LS,Running,0,9,0", "column name repeats 'p1' of line 3"),
    ],
)
def test_a_broken_pod(tmp_path: Path, line: str, told: str) -> None:
    with pytest.raises(InputError) as caught:
        read(node_file(tmp_path), pod_file(tmp_path, *PODS, line))
    assert f"pods.csv:4: {told}" in caught.value.message


@pytest.mark.parametrize("scheduled", [5, 6, 9])
def test_scheduled_at_both_ends_and_between(tmp_path: Path, scheduled: int) -> None:
    line = f"p,1,1,1,1000,,LS,Running,5,9,{scheduled}"
    (pod,) = read(node_file(tmp_path), pod_file(tmp_path, POD_HEADER, line)).pods
    assert pod.scheduled_s == scheduled


@pytest.mark.parametrize("kept", [1, 20, -9, -1])
def test_gzip_that_was_cut_off(tmp_path: Path, kept: int) -> None:
    packed = gzip.compress("\n".join(PODS).encode())
    (tmp_path / "pods.csv.gz").write_bytes(packed[:kept] if kept != 1 else packed[:2] + b"x")
    with pytest.raises(InputError, match="broken gzip"):
        read(node_file(tmp_path), tmp_path / "pods.csv.gz")


def test_text_that_is_not_utf8_names_its_line(tmp_path: Path) -> None:
    (tmp_path / "pods.csv").write_bytes("\n".join(PODS[:2]).encode() + b"\np\xff,1")
    with pytest.raises(InputError, match=r"pods.csv:3: not UTF-8 \(byte 0xff\)"):
        read(node_file(tmp_path), tmp_path / "pods.csv")


@pytest.mark.parametrize("name", ["absent.csv", "."])
def test_a_file_that_cannot_be_read(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="cannot read"):
        read(node_file(tmp_path), tmp_path / name)


def test_an_empty_file(tmp_path: Path) -> None:
    (tmp_path / "pods.csv").touch()
    with pytest.raises(InputError, match="is empty"):
        read(node_file(tmp_path), tmp_path / "pods.csv")


def test_a_byte_order_mark_is_skipped(tmp_path: Path) -> None:
    pods = write_lines(tmp_path / "pods.csv", f"\ufeff{PODS[0]}", *PODS[1:])
    assert len(read(node_file(tmp_path), pods).pods) == 2


@pytest.mark.parametrize("cut_count", [1, 2, 3])
def test_a_list_cut_off_in_its_last_field_is_refused(tmp_path: Path, cut_count: int) -> None:
    nodes = node_file(tmp_path, NODE_HEADER, "n0,64000,1024,2,V100M32")
    nodes.write_bytes(nodes.read_bytes()[:-cut_count])
    with pytest.raises(InputError, match=r"nodes\.csv:2: the last line does not end"):
        read(nodes, pod_file(tmp_path))
