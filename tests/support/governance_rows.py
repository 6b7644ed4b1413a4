"""Builders of quota, verdicts, actions, value and standing with harmless defaults."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from tests.support.analytics_frames import HOUR, NOON, framed

Row = Mapping[str, object]

_DEFAULTS: Mapping[str, Row] = {
    "quota_use": {
        "observed_at": NOON,
        "cluster": "c",
        "queue": "a-queue",
        "tenant_id": "a",
        "cohort": "company",
        "gpu_model": "H100",
        "guaranteed_gpu_count": 8.0,
        "limit_gpu_count": 16.0,
        "used_gpu_count": 0.0,
        "pending_workload_count": 0,
    },
    "verdict_history": {
        "judged_at": NOON,
        "cluster": "c",
        "workload_uid": "w1",
        "verdict": "IDLE",
        "reason_codes": "idle_too_long",
        "window_s": 3_600.0,
        "coverage_ratio": 1.0,
    },
    "node_place": {
        "cluster": "c",
        "node": "n1",
        "rack": "r1",
        "nvlink_domain": "d1",
        "memory_bytes": 1_000,
    },
    "workload_standing": {
        "cluster": "c",
        "workload_uid": "w1",
        "namespace": "team-a",
        "name": "w1",
        "tenant_id": "team-a",
        "owner": "ann",
        "workload_class": "training",
        "queue": "team-a",
        "priority_class": "standard",
        "cpu_milli": 8_000,
        "memory_bytes": 100,
        "gpu_count": 1,
        "gpu_milli": 1_000,
    },
    "state.action": {
        "action_id": 1,
        "plan_id": "p1",
        "step_number": 0,
        "kind": "suspend",
        "subject_kind": "workload",
        "subject_uid": "w1",
        "actor": "steward",
        "is_dry_run": 0,
        "reason_codes": "idle_too_long",
        "outcome": "done",
        "recorded_at": NOON,
    },
    "state.exemption": {
        "exemption_id": 1,
        "scope_kind": "workload",
        "scope_key": "w1",
        "policy": "idle",
        "reason": "debugging",
        "approver": "bob",
        "valid_from_at": NOON,
        "valid_until_at": NOON + HOUR,
        "recorded_at": NOON,
    },
    "state.business_value": {
        "business_value_id": 1,
        "scope_kind": "tenant",
        "scope_key": "team-a",
        "value_level": "high",
        "reason": "revenue",
        "approver": "bob",
        "valid_from_at": NOON - HOUR,
        "recorded_at": NOON - HOUR,
    },
    "state.target_workload": {
        "target_workload_id": 1,
        "version": "v1",
        "learnt_from_at": NOON - HOUR,
        "learnt_until_at": NOON,
        "popular_share_micros": 950_000,
        "author": "bob",
        "recorded_at": NOON,
    },
}


def told(name: str, *given: Row) -> pl.DataFrame:
    """Return rows of a governance input: the defaults, with what each row says instead."""
    return framed(name, [{**_DEFAULTS[name], **row} for row in given])
