"""Two large made-up pasts for the benchmark of reports, written with the engine's own SQL.

``by_minute``: every reading of a fleet, one a minute, with who held what, who waited and quotas.
``by_hour``: the ledger of a larger fleet as it is after it was built, one row per GPU and hour.
Both are regular: ten teams, runs of one length with pauses, on single GPUs and whole nodes.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import duckdb

from analytics.schemas.usage import LEAVES, OVERLAYS
from sql.engine import WAREHOUSE_FILE
from sql.warehouse import open_embedded
from steward.units import TICKS_PER_GPU_HOUR

START_AT: Final = datetime(2026, 5, 1, tzinfo=UTC)
DAYS_AT_ONCE: Final = 5

_DAY_BUILD: Final = (
    "strftime({day}, '%Y%m%d') || '.' || left(sha256(left("
    "repeat({hour_build} || chr(10), 24), length({hour_build}) * 24 + 23)), 16)"
)
"""The id of a day's build: a digest of the builds of its 24 hours, here all the same."""
_DEVICES: Final = """
create or replace temp table fleet as
select
    d as number,
    'bench' as cluster,
    printf('node-%04d', d // 8) as node,
    printf('GPU-%08x', d) as device_uuid,
    ['H100-SXM-80GB', 'A100-SXM4-80GB', 'L40S'][1 + (d // 8) % 3] as model,
    (d // 8) % 2 = 0 as is_gang
from range($gpu_count) as t (d)
"""
_RUNS: Final = """
create or replace temp table run as
select
    fleet.*,
    r as round,
    $start_at::timestamptz + to_hours(r * $round_hours) as started_at,
    $start_at::timestamptz + to_hours(r * $round_hours + $run_hours) as ended_at,
    case when is_gang then 'w-' || node || '-' || r else 'w-' || device_uuid || '-' || r end
        as workload_uid,
    'team-' || (hash(node, r) % 10) as tenant_id,
    ['training', 'inference', 'development'][1 + (hash(node, r) % 3)::bigint] as workload_class
from fleet, range($round_count) as t (r)
"""
_STEPS: Final = (
    """
insert into node (observed_at, cluster, node, gpu_model, gpu_count, cpu_milli, memory_bytes,
    is_schedulable, rack, source)
select distinct on (node) $start_at::timestamptz, cluster, node, model, 8, 128000,
    1099511627776, true, 'rack-' || (number // 64), 'bench' from fleet
""",
    """
insert into device (observed_at, cluster, node, device_uuid, vendor, model, device_index,
    memory_total_bytes, is_present, source)
select $start_at::timestamptz, cluster, node, device_uuid, 'nvidia', model, number % 8,
    85899345920, true, 'bench' from fleet
""",
    """
insert into workload (observed_at, cluster, workload_uid, kind, namespace, name, tenant_id, owner,
    workload_class, queue, priority_class, priority, cpu_milli, memory_bytes, gpu_count, gpu_milli,
    gpu_models, source)
select distinct on (workload_uid) started_at - interval 10 minute, cluster, workload_uid, 'Job',
    tenant_id, workload_uid, tenant_id, tenant_id || '-user-' || (number % 7), workload_class,
    tenant_id || '-queue', 'standard', 0, case when is_gang then 64000 else 8000 end, 68719476736,
    case when is_gang then 8 else 1 end, 1000, model, 'bench'
from run
""",
    """
insert into allocation (observed_at, cluster, node, device_uuid, started_at, ended_at,
    gpu_share_ratio, sharing_mode, namespace, pod, workload_uid, tenant_id, attribution_source,
    workload_class, queue, priority_class)
select ended_at, cluster, node, device_uuid, started_at, ended_at, 1.0, 'exclusive', tenant_id,
    workload_uid || '-0', workload_uid, tenant_id, 'bench', workload_class,
    tenant_id || '-queue', 'standard'
from run
""",
    """
insert into workload_transition (occurred_at, observed_at, cluster, workload_uid, attempt,
    transition, source)
select moment, moment, cluster, workload_uid, 1, transition, 'bench'
from (
    select distinct on (workload_uid) cluster, workload_uid, started_at, ended_at,
        to_seconds((hash(workload_uid) % 3600)::bigint) as waited
    from run
), lateral (
    select unnest([
        {'moment': started_at - waited, 'transition': 'created'},
        {'moment': started_at - waited / 2, 'transition': 'admitted'},
        {'moment': started_at, 'transition': 'scheduled'},
        {'moment': started_at, 'transition': 'started'},
        {'moment': ended_at, 'transition': 'finished'}
    ], recursive := true)
)
""",
    """
insert into quota_snapshot (observed_at, cluster, queue, tenant_id, cohort, gpu_model,
    guaranteed_gpu_count, limit_gpu_count, used_gpu_count, borrowed_gpu_count, source)
select $start_at::timestamptz + to_hours(h), 'bench', 'team-' || q || '-queue', 'team-' || q,
    'company', m, guaranteed, guaranteed * 2, used, greatest(used - guaranteed, 0), 'bench'
from (
    select h, q, m, $gpu_count / 30 as guaranteed, ($gpu_count / 30) * (hash(h, q, m) % 13) / 10
        as used
    from range(0, $hour_count, 6) as a (h), range(10) as b (q),
        unnest(['H100-SXM-80GB', 'A100-SXM4-80GB', 'L40S']) as c (m)
)
""",
)
_SAMPLES: Final = """
insert into device_sample (sampled_at, cluster, node, device_uuid, source, busy_ratio,
    graphics_active_ratio, sm_active_ratio, tensor_active_ratio, dram_active_ratio,
    fp64_active_ratio, fp32_active_ratio, fp16_active_ratio, memory_used_bytes,
    memory_total_bytes, power_w, energy_j)
select
    $start_at::timestamptz + to_minutes(m), cluster, node, device_uuid, 'bench',
    case when is_idle then 0 else 0.9 + n / 1000 end,
    case when is_idle then 0 else 0.8 + n / 1000 end,
    case when is_idle then 0 else 0.6 + n / 500 end,
    case when is_idle then 0 else 0.3 + n / 500 end,
    case when is_idle then 0 else 0.4 + n / 500 end,
    0, case when is_idle then 0 else 0.05 end, 0,
    case when is_idle then 1073741824 else 64424509440 end, 85899345920,
    case when is_idle then 70 else 400 + n end, 60.0 * 300 * m
from (
    select m, fleet.*, hash(number, m // 60) % 10 < 3 as is_idle, hash(number, m) % 100 as n
    from range($from_minute, $until_minute) as t (m), fleet
)
order by m, number
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """How large, and for how long."""

    gpu_count: int
    day_count: int
    run_hours: int
    """How long each holder runs, on one GPU or a whole node."""
    pause_hours: int
    """How long the GPU is free after it."""

    @property
    def until_at(self) -> datetime:
        """Return the end."""
        return START_AT + timedelta(days=self.day_count)

    @property
    def round_hours(self) -> int:
        """Return the hours from one holder's start to the next one's."""
        return self.run_hours + self.pause_hours

    def parameters(self) -> dict[str, object]:
        """Return what the statements may name."""
        hour_count = self.day_count * 24
        return {
            "start_at": START_AT,
            "gpu_count": self.gpu_count,
            "hour_count": hour_count,
            "run_hours": self.run_hours,
            "round_hours": self.round_hours,
            "round_count": hour_count // self.round_hours,
        }


def by_minute(folder: Path, fleet: Fleet) -> int:
    """Write every reading of the fleet into a new warehouse; return how many there are."""
    open_embedded(folder).close()
    with duckdb.connect(str(folder / WAREHOUSE_FILE)) as connection:
        connection.execute("set timezone = 'UTC'")
        _write_lives(connection, fleet)
        for day in range(fleet.day_count):
            ends = {"from_minute": day * 1440, "until_minute": (day + 1) * 1440}
            connection.execute(_SAMPLES, {"start_at": START_AT, **ends})
        row = connection.execute("select count(*) from device_sample").fetchone()
    return int(row[0]) if row else 0


def by_hour(folder: Path, fleet: Fleet) -> int:
    """Write the built ledger of the fleet, and of its days; return the rows by hour."""
    with closing(open_embedded(folder)):
        pass
    with duckdb.connect(str(folder / WAREHOUSE_FILE)) as connection:
        connection.execute("set timezone = 'UTC'")
        _write_lives(connection, fleet)
        for day in range(0, fleet.day_count, DAYS_AT_ONCE):
            until_hour = min(day + DAYS_AT_ONCE, fleet.day_count) * 24
            connection.execute(
                _ledger_statement(fleet),
                {"start_at": START_AT, "from_hour": day * 24, "until_hour": until_hour},
            )
        connection.execute(_day_statement())
        connection.execute(_BUILDS, {"start_at": START_AT, "hour_count": fleet.day_count * 24})
        row = connection.execute("select count(*) from ledger_hour").fetchone()
    return int(row[0]) if row else 0


def _write_lives(connection: duckdb.DuckDBPyConnection, fleet: Fleet) -> None:
    """Write the inventory, who held what, who waited, and the quotas."""
    known = fleet.parameters()
    for statement in (_DEVICES, _RUNS, *_STEPS):
        used = {name: value for name, value in known.items() if f"${name}" in statement}
        connection.execute(statement, used)


def _ledger_statement(fleet: Fleet) -> str:
    """Return one statement that writes the ledger of some hours."""
    round_hours, run_hours = fleet.round_hours, fleet.run_hours
    ticks = {
        "used_measured_ticks": f"case when is_held then {TICKS_PER_GPU_HOUR // 2} else 0 end",
        "ineffective_ticks": f"case when is_held then {TICKS_PER_GPU_HOUR // 4} else 0 end",
        "idle_ticks": f"case when is_held then {TICKS_PER_GPU_HOUR // 4} else 0 end",
        "free_idle_ticks": f"case when is_held then 0 else {TICKS_PER_GPU_HOUR} end",
    }
    sums = {
        "observed_s": "3600.0",
        "apparent_s": "1800.0",
        "apparent_known_s": "3600.0",
        "effective_s": "1200.0",
        "effective_known_s": "3600.0",
        "gap_s": "600.0",
        "gap_known_s": "3600.0",
    }
    columns = [
        *[f"{ticks.get(name, '0')} as {name}" for name in LEAVES],
        *[f"{sums.get(name, '0.0')} as {name}" for name in OVERLAYS],
    ]
    names = ", ".join((*LEAVES, *OVERLAYS))
    return f"""
insert into ledger_hour (build_id, hour_at, cluster, node, model, device_uuid, is_held, tenant_id,
    workload_class, workload_uid, queue, priority_class, owner, tier, wall_ticks, {names},
    memory_peak_bytes)
select 'b' || (h // 24), $start_at::timestamptz + to_hours(h), cluster, node, model, device_uuid,
    is_held, case when is_held then tenant end, case when is_held then class end,
    case when is_held then 'w-' || part || '-' || round end,
    case when is_held then tenant || '-queue' end, case when is_held then 'standard' end,
    case when is_held then tenant || '-user-' || (number % 7) end,
    1, {TICKS_PER_GPU_HOUR}, {", ".join(columns)}, 64424509440
from (
    select fleet.*, h, h // {round_hours} as round, h % {round_hours} < {run_hours} as is_held,
        case when is_gang then node else device_uuid end as part,
        'team-' || (hash(node, h // {round_hours}) % 10) as tenant,
        ['training', 'inference', 'development']
            [1 + (hash(node, h // {round_hours}) % 3)::bigint] as class
    from range($from_hour, $until_hour) as t (h), fleet
)
order by h, number
"""  # noqa: S608  # constants of this file


def _day_statement() -> str:
    sums = ", ".join(f"sum({name})" for name in ("wall_ticks", *LEAVES, *OVERLAYS))
    names = ", ".join(("wall_ticks", *LEAVES, *OVERLAYS))
    keys = (
        "cluster, node, model, is_held, tenant_id, workload_class, workload_uid, queue, "
        "priority_class, owner, reason, tier"
    )
    return f"""
insert into ledger_day (build_id, day_at, {keys}, {names}, memory_peak_bytes)
select {_DAY_BUILD.format(day="date_trunc('day', hour_at)", hour_build="build_id")},
    date_trunc('day', hour_at), {keys}, {sums}, max(memory_peak_bytes)
from ledger_hour
group by all
order by 2
"""  # noqa: S608  # constants of this file


_BUILDS: Final = f"""
insert into ledger_build
select $start_at::timestamptz + to_hours($hour_count) + interval 1 hour,
    case grain when 'hour' then 'b' || (h // 24) else {
    _DAY_BUILD.format(day="($start_at::timestamptz + to_hours(h))", hour_build="('b' || (h // 24))")
} end, grain, $start_at::timestamptz + to_hours(h), 0, 0, 0, 0, 0.0, true, null, 'bench'
from range($hour_count) as t (h), unnest(['hour', 'day']) as g (grain)
where grain = 'hour' or h % 24 = 0
order by h, grain
"""  # noqa: S608  # constants of this file
