"""Evidence as facts: from the frames of ``analytics.evidence`` to values."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Final

from analytics.evidence.found import Found, Readings, evidence
from analytics.evidence.stored import asks
from enforcer.facts import DeviceEvidence, Evidence
from enforcer.policies.model import IdleLimits
from steward.period import Period

_DEVICE: Final = (
    "device_uuid",
    "instance_id",
    "node",
    "is_shared",
    "coverage_ratio",
    "newest_at",
    "profiling_peak_ratio",
    "busy_peak_ratio",
    "disagreement_ratio",
    "own_busy_peak_ratio",
    "power_peak_w",
    "power_idle_w",
    "memory_used_peak_bytes",
    "memory_total_bytes",
    "memory_change_bytes",
    "traffic_peak_bytes_per_s",
    "process_count_peak",
)
NO_INTERVAL_S: Final = 0.0
"""Of a workload none of whose devices was read twice: every age of a reading is too old for it."""


def evidence_of(
    readings: Readings, limits: Mapping[str, IdleLimits], *, cluster: str, at: datetime
) -> dict[str, Evidence]:
    """Return evidence by workload; a workload that holds nothing has none.

    Args:
        readings: what was stored.
        limits: by workload, those of the rule that speaks of it.
        cluster: of the workloads.
        at: the end of their windows.
    """
    wanted = asks(
        [
            {
                "cluster": cluster,
                "workload_uid": uid,
                "window_s": each.window.total_seconds(),
                "below_ratio": each.below_ratio,
                "power_margin_ratio": each.power_margin_ratio,
            }
            for uid, each in sorted(limits.items())
        ]
    )
    found = evidence(readings, wanted, until_at=at)
    return dict(_values(found, limits, at=at))


def _values(
    found: Found, limits: Mapping[str, IdleLimits], *, at: datetime
) -> Iterator[tuple[str, Evidence]]:
    devices = _devices(found)
    for row in found.workloads.iter_rows(named=True):
        uid: str = row["workload_uid"]
        interval_s = row["scrape_interval_s"]
        yield (
            uid,
            Evidence(
                window=Period.before(at, limits[uid].window),
                scrape_interval_s=NO_INTERVAL_S if interval_s is None else interval_s,
                devices=tuple(devices.get(uid, ())),
                held_device_count=row["held_device_count"],
                observed_idle_s=row["observed_idle_s"],
                idle_since_at=row["idle_since_at"],
                was_ever_active=row["was_ever_active"],
                request_rate_per_s=None,  # no collector tells requests
                level_activity_s=row["level_activity_s"],
            ),
        )


def _devices(found: Found) -> Mapping[str, list[DeviceEvidence]]:
    by_workload: defaultdict[str, list[DeviceEvidence]] = defaultdict(list)
    uids = found.devices["workload_uid"].to_list()
    rows = found.devices.select(_DEVICE).iter_rows(named=True)
    for uid, row in zip(uids, rows, strict=True):
        by_workload[uid].append(DeviceEvidence(**row))
    return by_workload
