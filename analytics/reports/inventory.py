"""Report: which nodes and GPUs there are."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from analytics.inputs import conform
from analytics.inventory import current_devices, current_instances, current_nodes, device_models
from analytics.reports.model import Figure, Question, Report, ReportDefinition, Table
from analytics.reports.shape import column, figure, percent, ratio, table

MODEL_COLUMNS = (
    column("model", "GPU model", "text"),
    column("node_count", "Nodes", "count", "nodes with at least one GPU of the model"),
    column("gpu_count", "GPUs", "GPU", "physical GPUs, present or not"),
    column("absent_count", "Absent", "GPU", "GPUs last seen as not present"),
    column("memory_bytes", "Memory", "bytes", "of present GPUs; unknown if any of them is"),
)


def build(frames: Mapping[str, pl.DataFrame], question: Question) -> Report:
    """Return the inventory at the period's end."""
    period = question.period
    told = conform("node_history", frames["node_history"])
    stored = conform("device_history", frames["device_history"])
    devices = current_devices(stored, told)
    nodes = current_nodes(told).filter(pl.col("is_present").fill_null(value=True))
    by_model = device_models(devices)
    absent = int(by_model["absent_count"].sum())
    findings = []
    if absent:
        findings.append(
            f"{absent} of {devices.height} GPUs "
            f"({percent(ratio(absent, devices.height))}) are absent."
        )
    return Report(
        name=DEFINITION.name,
        title="Inventory",
        period=period,
        figures=_figures(nodes, stored, devices),
        tables=(models_table(by_model), _nodes_table(nodes, devices)),
        findings=tuple(findings),
    )


def node_count(nodes: pl.DataFrame, devices: pl.DataFrame) -> int:
    """Return how many nodes are known, by their own row or by a device on them."""
    keys = pl.concat([nodes.select("cluster", "node"), devices.select("cluster", "node")]).unique()
    return keys.height


def models_table(by_model: pl.DataFrame) -> Table:
    """Return GPUs by model."""
    return table(
        "models", "GPUs by model", frame=by_model, columns=MODEL_COLUMNS, rows="device_history"
    )


def _figures(
    nodes: pl.DataFrame, stored: pl.DataFrame, devices: pl.DataFrame
) -> tuple[Figure, ...]:
    cpu = nodes["cpu_milli"]
    known_cpu = int(cpu.is_not_null().sum())
    cores = float(cpu.sum()) / 1000 if known_cpu else None
    facts = (
        ("node_count", "Nodes", node_count(nodes, devices), "count",
         "Nodes seen by the period's end and not removed."),
        ("gpu_count", "GPUs", devices.height, "GPU",
         "Physical GPUs seen by the period's end, present or not, on nodes not removed."),
        ("present_gpu_count", "Present GPUs", int(devices["is_present"].sum()), "GPU",
         "GPUs last seen as present."),
        ("mig_instance_count", "MIG instances", _instance_count(stored, devices), "count",
         "MIG instances last seen as present."),
        ("cpu_core_count", "CPU cores", cores, "count",
         "Cores of the nodes whose processors are known."),
    )  # fmt: skip
    from_nodes = {"node_count", "cpu_core_count"}
    return tuple(
        figure(
            key,
            title,
            value=value,
            unit=unit,
            definition=definition,
            rows="node_history" if key in from_nodes else "device_history",
            coverage_ratio=ratio(known_cpu, cpu.len()) if key == "cpu_core_count" else None,
        )
        for key, title, value, unit, definition in facts
    )


def _instance_count(stored: pl.DataFrame, devices: pl.DataFrame) -> int:
    instances = current_instances(stored)
    return instances.join(devices, on="device_uuid", how="semi").height


def _nodes_table(nodes: pl.DataFrame, devices: pl.DataFrame) -> Table:
    on_node = devices.group_by("cluster", "node").agg(
        gpu_model=pl.col("model").drop_nulls().unique().sort().str.join("|"),
        gpu_count=pl.len().cast(pl.Int64),
        present_count=pl.col("is_present").sum().cast(pl.Int64),
    )
    known = nodes.select("cluster", "node", "cpu_milli", "memory_bytes", "is_schedulable")
    schedulable = pl.col("is_schedulable")
    frame = (
        known.join(on_node, on=["cluster", "node"], how="full", coalesce=True)
        .with_columns(
            gpu_count=pl.col("gpu_count").fill_null(0),
            cpu_core_count=pl.col("cpu_milli") / 1000,
            state=pl.when(schedulable)
            .then(pl.lit("schedulable"))
            .when(~schedulable)
            .then(pl.lit("cordoned")),
        )
        .sort("cluster", "node")
    )
    columns = (
        column("cluster", "Cluster", "text"),
        column("node", "Node", "text"),
        column("gpu_model", "GPU model", "text"),
        column("gpu_count", "GPUs", "GPU"),
        column("present_count", "Present", "GPU"),
        column("cpu_core_count", "CPU cores", "count"),
        column("memory_bytes", "Memory", "bytes"),
        column("state", "State", "text", "whether the node takes new work"),
    )
    return table("nodes", "Nodes", frame=frame, columns=columns, rows="node_history")


DEFINITION = ReportDefinition(
    name="inventory",
    summary="nodes, GPUs and MIG instances by model",
    inputs=("node_history", "device_history"),
    build=build,
)
