-- purpose    the built days of the ledger, summed: ticks exactly, beyond 64 bits where need be
-- grain      one row per span and combination of the ledger's keys; of several builds of one day
--            the newest counts
-- parameters $from_at timestamptz inclusive, $until_at timestamptz exclusive, $cluster varchar
--            (null is all), $pieces varchar: which days, and the span each belongs to, as
--            from/until/started/ended in ISO 8601, many of them parted by commas
with piece_text as (
    select unnest(string_split($pieces, ',')) as piece
),

piece as (
    select
        split_part(piece, '/', 1)::timestamptz as from_at,
        split_part(piece, '/', 2)::timestamptz as until_at,
        split_part(piece, '/', 3)::timestamptz as started_at,
        split_part(piece, '/', 4)::timestamptz as ended_at
    from piece_text
),

newest as (
    select
        starts_at,
        arg_max(build_id, (built_at, build_id)) as build_id
    from ledger_build
    where starts_at >= $from_at and starts_at < $until_at and grain = 'day'
    group by starts_at
),

counted as (
    select
        newest.starts_at,
        newest.build_id,
        piece.started_at,
        piece.ended_at
    from newest
    inner join piece on newest.starts_at >= piece.from_at and newest.starts_at < piece.until_at
)

select
    counted.started_at,
    counted.ended_at,
    ledger_day.cluster,
    ledger_day.node,
    ledger_day.model,
    ledger_day.is_held,
    ledger_day.tenant_id,
    ledger_day.workload_class,
    ledger_day.workload_uid,
    ledger_day.queue,
    ledger_day.priority_class,
    ledger_day.owner,
    ledger_day.reason,
    ledger_day.tier,
    sum(ledger_day.wall_ticks)::decimal(38, 0) as wall_ticks,
    sum(ledger_day.used_measured_ticks)::decimal(38, 0) as used_measured_ticks,
    sum(ledger_day.used_estimated_ticks)::decimal(38, 0) as used_estimated_ticks,
    sum(ledger_day.ineffective_ticks)::decimal(38, 0) as ineffective_ticks,
    sum(ledger_day.idle_ticks)::decimal(38, 0) as idle_ticks,
    sum(ledger_day.unknown_ticks)::decimal(38, 0) as unknown_ticks,
    sum(ledger_day.down_ticks)::decimal(38, 0) as down_ticks,
    sum(ledger_day.stranded_ticks)::decimal(38, 0) as stranded_ticks,
    sum(ledger_day.reserved_unused_ticks)::decimal(38, 0) as reserved_unused_ticks,
    sum(ledger_day.free_idle_ticks)::decimal(38, 0) as free_idle_ticks,
    sum(ledger_day.observed_s) as observed_s,
    sum(ledger_day.apparent_s) as apparent_s,
    sum(ledger_day.apparent_known_s) as apparent_known_s,
    sum(ledger_day.effective_s) as effective_s,
    sum(ledger_day.effective_known_s) as effective_known_s,
    sum(ledger_day.gap_s) as gap_s,
    sum(ledger_day.gap_known_s) as gap_known_s,
    sum(ledger_day.sm_active_s) as sm_active_s,
    sum(ledger_day.sm_active_known_s) as sm_active_known_s,
    sum(ledger_day.dram_active_s) as dram_active_s,
    sum(ledger_day.dram_active_known_s) as dram_active_known_s,
    sum(ledger_day.busy_source_s) as busy_source_s,
    sum(ledger_day.graphics_source_s) as graphics_source_s,
    sum(ledger_day.stuck_s) as stuck_s,
    sum(ledger_day.idle_memory_byte_s) as idle_memory_byte_s,
    max(ledger_day.memory_peak_bytes) as memory_peak_bytes
from ledger_day
inner join counted
    on
        ledger_day.day_at = counted.starts_at
        and ledger_day.build_id = counted.build_id
where
    ledger_day.day_at >= $from_at
    and ledger_day.day_at < $until_at
    and ($cluster is null or ledger_day.cluster = $cluster)
group by
    counted.started_at,
    counted.ended_at,
    ledger_day.cluster,
    ledger_day.node,
    ledger_day.model,
    ledger_day.is_held,
    ledger_day.tenant_id,
    ledger_day.workload_class,
    ledger_day.workload_uid,
    ledger_day.queue,
    ledger_day.priority_class,
    ledger_day.owner,
    ledger_day.reason,
    ledger_day.tier
order by
    counted.started_at,
    ledger_day.cluster,
    ledger_day.node,
    ledger_day.model,
    ledger_day.is_held,
    ledger_day.tenant_id,
    ledger_day.workload_class,
    ledger_day.workload_uid,
    ledger_day.queue,
    ledger_day.priority_class,
    ledger_day.owner,
    ledger_day.reason,
    ledger_day.tier
