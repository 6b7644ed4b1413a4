"""Rows of quota, verdicts, actions and declared value."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import polars as pl

from analytics.schemas.columns import INSTANT, rows

SCHEMAS: Final[Mapping[str, pl.Schema]] = MappingProxyType(
    {
        "quota_use": rows(
            observed_at=INSTANT,
            cluster=pl.String,
            queue=pl.String,
            tenant_id=pl.String,
            cohort=pl.String,
            gpu_model=pl.String,
            guaranteed_gpu_count=pl.Float64,
            limit_gpu_count=pl.Float64,
            used_gpu_count=pl.Float64,
            borrowed_gpu_count=pl.Float64,
            pending_workload_count=pl.Int64,
        ),
        "verdict_history": rows(
            judged_at=INSTANT,
            cluster=pl.String,
            workload_uid=pl.String,
            verdict=pl.String,
            reason_codes=pl.String,
            window_s=pl.Float64,
            coverage_ratio=pl.Float64,
            policy_version=pl.String,
        ),
        "node_place": rows(
            cluster=pl.String,
            node=pl.String,
            rack=pl.String,
            nvlink_domain=pl.String,
            memory_bytes=pl.Int64,
        ),
        "workload_standing": rows(
            cluster=pl.String,
            workload_uid=pl.String,
            namespace=pl.String,
            name=pl.String,
            tenant_id=pl.String,
            owner=pl.String,
            workload_class=pl.String,
            queue=pl.String,
            priority_class=pl.String,
            cpu_milli=pl.Int64,
            memory_bytes=pl.Int64,
            gpu_count=pl.Int64,
            gpu_milli=pl.Int64,
            gpu_models=pl.String,
        ),
        "state.action": rows(
            action_id=pl.Int64,
            plan_id=pl.String,
            step_number=pl.Int64,
            kind=pl.String,
            subject_kind=pl.String,
            subject_uid=pl.String,
            actor=pl.String,
            is_dry_run=pl.Int64,
            reason_codes=pl.String,
            outcome=pl.String,
            undoes_action_id=pl.Int64,
            recorded_at=INSTANT,
        ),
        "state.exemption": rows(
            exemption_id=pl.Int64,
            scope_kind=pl.String,
            scope_key=pl.String,
            policy=pl.String,
            reason=pl.String,
            approver=pl.String,
            valid_from_at=INSTANT,
            valid_until_at=INSTANT,
            recorded_at=INSTANT,
        ),
        "state.business_value": rows(
            business_value_id=pl.Int64,
            scope_kind=pl.String,
            scope_key=pl.String,
            value_level=pl.String,
            start_objective_s=pl.Int64,
            reason=pl.String,
            approver=pl.String,
            valid_from_at=INSTANT,
            valid_until_at=INSTANT,
            recorded_at=INSTANT,
        ),
        "state.target_workload": rows(
            target_workload_id=pl.Int64,
            version=pl.String,
            learnt_from_at=INSTANT,
            learnt_until_at=INSTANT,
            popular_share_micros=pl.Int64,
            shapes_json=pl.String,
            author=pl.String,
            recorded_at=INSTANT,
        ),
    }
)
"""``quota_use``, ``verdict_history``: what was told in the period and the last before it.
``node_place``, ``workload_standing``: one row per node, or workload not over before the period, as
last observed. Money and capacity unknown to the source are null, never 0."""
