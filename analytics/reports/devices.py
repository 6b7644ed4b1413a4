"""Report: the latest reading of every physical GPU, and of every MIG instance on it."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from analytics.identity import named_by_cluster, named_by_node, shared_ids
from analytics.inputs import conform
from analytics.inventory import current_devices, current_instances, known_devices
from analytics.reports.model import Figure, Question, Report, ReportDefinition
from analytics.reports.shape import column, figure, ratio, table
from analytics.rollup import device_readings, instance_readings

_ROWS = "latest_device_sample"
_EFFECTIVE = "min(SM activity, max(busiest pipe, DRAM / 0.80)); null where the tier is 4"
_TIER = "1 measured from pipes and memory, 2 upper bound from SM activity, 4 apparent only"
_READING = (
    column("apparent_ratio", "Apparent", "ratio", "busy time, else graphics engine activity"),
    column("apparent_source", "Apparent from", "text", "the two are not comparable"),
    column("effective_ratio", "Effective", "ratio", _EFFECTIVE),
    column("gap_ratio", "Gap", "ratio", "apparent - effective"),
    column("tier", "Tier", "count", _TIER),
    column("dram_active_ratio", "DRAM active", "ratio"),
    column("memory_used_bytes", "Memory used", "bytes"),
)
DEVICE_COLUMNS = (
    column("node", "Node", "text"),
    column("device_uuid", "GPU", "text"),
    column("model", "Model", "text"),
    column("sampled_at", "Read at", "text"),
    column("power_w", "Power", "W", "of the board, once"),
    *_READING,
    column("instance_count", "Instances", "count"),
    column("configured_apparent_ratio", "Apparent, configured", "ratio", "over configured slices"),
    column("unconfigured_ratio", "Unconfigured", "ratio", "share of the GPU without instance"),
    column("temperature_celsius", "Temperature (°C)", "text"),
    column("energy_j", "Energy counter", "J", "since the driver was loaded"),
)
INSTANCE_COLUMNS = (
    column("node", "Node", "text"),
    column("device_uuid", "GPU", "text"),
    column("instance_id", "Instance", "count"),
    column("mig_profile", "Profile", "text"),
    column("sm_share_ratio", "SM share", "ratio"),
    column("memory_share_ratio", "Memory share", "ratio"),
    column("sampled_at", "Read at", "text"),
    *_READING,
)


def build(frames: Mapping[str, pl.DataFrame], question: Question) -> Report:
    """Return the latest readings inside the period."""
    period = question.period
    nodes = conform("node_history", frames["node_history"])
    seen = conform("device_history", frames["device_history"])
    shared = shared_ids(seen)
    stored = named_by_cluster(seen, shared)
    samples = named_by_node(conform(_ROWS, frames[_ROWS]), shared, devices=seen)
    boards, instances = current_devices(stored, nodes), current_instances(stored)
    left = known_devices(stored, nodes).join(boards, on="device_uuid", how="anti")
    samples = samples.join(left, on="device_uuid", how="anti", maintain_order="left")
    readings = device_readings(samples, boards, instances)
    return Report(
        name=DEFINITION.name,
        title="Devices, latest reading",
        period=period,
        figures=_figures(readings, boards.height),
        tables=(
            table(
                "devices",
                "Physical GPUs",
                frame=readings,
                columns=DEVICE_COLUMNS,
                rows=_ROWS,
                note="MIG instances are weighted by their share of the GPU; "
                "unconfigured slices count as resting.",
            ),
            table(
                "instances",
                "MIG instances",
                frame=instance_readings(samples, instances),
                columns=INSTANCE_COLUMNS,
                rows=_ROWS,
                note="Ratios are relative to the instance, not to the GPU.",
            ),
        ),
    )


def _figures(readings: pl.DataFrame, device_count: int) -> tuple[Figure, ...]:
    power = readings["power_w"].drop_nulls()
    return (
        figure(
            "read_gpu_count",
            "GPUs read",
            value=readings.height,
            unit="GPU",
            definition="GPUs with at least one reading in the period.",
            rows=_ROWS,
            coverage_ratio=ratio(readings.height, device_count),
        ),
        figure(
            "power_w",
            "Power",
            value=float(power.sum()) if power.len() else None,
            unit="W",
            definition="Sum of the boards' latest power, each board once.",
            rows=_ROWS,
            coverage_ratio=ratio(power.len(), device_count),
        ),
    )


DEFINITION = ReportDefinition(
    name="devices",
    summary="latest reading of each GPU: power, apparent and effective utilisation, memory",
    inputs=("node_history", "device_history", _ROWS),
    build=build,
)
