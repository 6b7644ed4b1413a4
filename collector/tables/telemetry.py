"""Schemas of what is observed of nodes and devices."""

from __future__ import annotations

from typing import Final

from collector.tables.schema import BIG, FLAG, INSTANT, INTEGER, RATIO, REAL, TEXT, schema

NODE: Final = schema(
    {
        "observed_at": INSTANT,
        "cluster": TEXT,
        "node": TEXT,
        "gpu_model": TEXT,
        "gpu_count": INTEGER,
        "cpu_milli": BIG,
        "memory_bytes": BIG,
        "is_schedulable": FLAG,
        "rack": TEXT,
        "nvlink_domain": TEXT,
        "labels_json": TEXT,
        "source": TEXT,
        "allocatable_gpu_count": INTEGER,
        "taints_json": TEXT,
        "is_present": FLAG,
    },
    required="observed_at cluster node source",
)

DEVICE: Final = schema(
    {
        "observed_at": INSTANT,
        "cluster": TEXT,
        "node": TEXT,
        "device_uuid": TEXT,
        "instance_id": INTEGER,
        "vendor": TEXT,
        "model": TEXT,
        "device_index": INTEGER,
        "memory_total_bytes": BIG,
        "mig_profile": TEXT,
        "sm_share_ratio": RATIO,
        "memory_share_ratio": RATIO,
        "is_present": FLAG,
        "driver_version": TEXT,
        "labels_json": TEXT,
        "source": TEXT,
    },
    required="observed_at cluster node device_uuid is_present source",
)

DEVICE_SAMPLE: Final = schema(
    {
        "sampled_at": INSTANT,
        "cluster": TEXT,
        "node": TEXT,
        "device_uuid": TEXT,
        "instance_id": INTEGER,
        "source": TEXT,
        "busy_ratio": RATIO,
        "memory_busy_ratio": RATIO,
        "graphics_active_ratio": RATIO,
        "sm_active_ratio": RATIO,
        "sm_occupancy_ratio": RATIO,
        "tensor_active_ratio": RATIO,
        "dram_active_ratio": RATIO,
        "fp64_active_ratio": RATIO,
        "fp32_active_ratio": RATIO,
        "fp16_active_ratio": RATIO,
        "encoder_ratio": RATIO,
        "decoder_ratio": RATIO,
        "memory_used_bytes": BIG,
        "memory_free_bytes": BIG,
        "memory_reserved_bytes": BIG,
        "memory_total_bytes": BIG,
        "power_w": REAL,
        "energy_j": REAL,
        "temperature_celsius": REAL,
        "memory_temperature_celsius": REAL,
        "sm_clock_hz": BIG,
        "memory_clock_hz": BIG,
        "pcie_transmit_bytes_per_s": REAL,
        "pcie_receive_bytes_per_s": REAL,
        "pcie_replay_count": BIG,
        "nvlink_bytes_per_s": REAL,
        "integer_active_ratio": RATIO,
        "power_limit_w": REAL,
        "fan_ratio": RATIO,
        "clock_event_reason_bits": BIG,
        "power_throttled_s": REAL,
        "thermal_throttled_s": REAL,
        "ecc_corrected_count": BIG,
        "ecc_uncorrected_count": BIG,
        "row_remap_corrected_count": BIG,
        "row_remap_uncorrected_count": BIG,
        "row_remap_failed_count": BIG,
        "process_count": BIG,
        "namespace": TEXT,
        "pod": TEXT,
        "container": TEXT,
        "absences": TEXT,
    },
    required="sampled_at cluster node device_uuid source",
)

DEVICE_EVENT: Final = schema(
    {
        "occurred_at": INSTANT,
        "cluster": TEXT,
        "node": TEXT,
        "device_uuid": TEXT,
        "instance_id": INTEGER,
        "kind": TEXT,
        "code": INTEGER,
        "detail": TEXT,
        "source": TEXT,
    },
    required="occurred_at cluster node device_uuid kind source",
)

SCRAPE: Final = schema(
    {
        "scraped_at": INSTANT,
        "cluster": TEXT,
        "target": TEXT,
        "is_ok": FLAG,
        "reason": TEXT,
        "duration_s": REAL,
        "body_bytes": BIG,
        "sample_count": INTEGER,
        "dropped_line_count": INTEGER,
        "duplicate_count": INTEGER,
        "unknown_metric_count": INTEGER,
    },
    required=(
        "scraped_at cluster target is_ok duration_s body_bytes sample_count dropped_line_count "
        "duplicate_count unknown_metric_count"
    ),
)

DEVICE_PROCESS: Final = schema(
    {
        "sampled_at": INSTANT,
        "cluster": TEXT,
        "node": TEXT,
        "device_uuid": TEXT,
        "instance_id": INTEGER,
        "pid": INTEGER,
        "process": TEXT,
        "pod_uid": TEXT,
        "container_id": TEXT,
        "memory_used_bytes": BIG,
        "sm_ratio": RATIO,
        "source": TEXT,
    },
    required=("sampled_at cluster node device_uuid pid source"),
)
