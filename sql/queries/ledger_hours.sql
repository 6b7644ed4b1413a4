-- purpose    the built hours of the ledger, summed: ticks exactly, beyond 64 bits where need be
-- grain      one row per span and combination of the ledger's keys; of several builds of one hour
--            the newest counts
-- parameters $from_at timestamptz inclusive, $until_at timestamptz exclusive, $cluster varchar
--            (null is all), $pieces varchar: which hours, and the span each belongs to, as
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
    where starts_at >= $from_at and starts_at < $until_at and grain = 'hour'
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
    ledger_hour.cluster,
    ledger_hour.node,
    ledger_hour.model,
    ledger_hour.is_held,
    ledger_hour.tenant_id,
    ledger_hour.workload_class,
    ledger_hour.workload_uid,
    ledger_hour.queue,
    ledger_hour.priority_class,
    ledger_hour.owner,
    ledger_hour.reason,
    ledger_hour.tier,
    sum(ledger_hour.wall_ticks)::decimal(38, 0) as wall_ticks,
    sum(ledger_hour.used_measured_ticks)::decimal(38, 0) as used_measured_ticks,
    sum(ledger_hour.used_estimated_ticks)::decimal(38, 0) as used_estimated_ticks,
    sum(ledger_hour.ineffective_ticks)::decimal(38, 0) as ineffective_ticks,
    sum(ledger_hour.idle_ticks)::decimal(38, 0) as idle_ticks,
    sum(ledger_hour.unknown_ticks)::decimal(38, 0) as unknown_ticks,
    sum(ledger_hour.down_ticks)::decimal(38, 0) as down_ticks,
    sum(ledger_hour.stranded_ticks)::decimal(38, 0) as stranded_ticks,
    sum(ledger_hour.reserved_unused_ticks)::decimal(38, 0) as reserved_unused_ticks,
    sum(ledger_hour.free_idle_ticks)::decimal(38, 0) as free_idle_ticks,
    sum(ledger_hour.observed_s) as observed_s,
    sum(ledger_hour.apparent_s) as apparent_s,
    sum(ledger_hour.apparent_known_s) as apparent_known_s,
    sum(ledger_hour.effective_s) as effective_s,
    sum(ledger_hour.effective_known_s) as effective_known_s,
    sum(ledger_hour.gap_s) as gap_s,
    sum(ledger_hour.gap_known_s) as gap_known_s,
    sum(ledger_hour.sm_active_s) as sm_active_s,
    sum(ledger_hour.sm_active_known_s) as sm_active_known_s,
    sum(ledger_hour.dram_active_s) as dram_active_s,
    sum(ledger_hour.dram_active_known_s) as dram_active_known_s,
    sum(ledger_hour.busy_source_s) as busy_source_s,
    sum(ledger_hour.graphics_source_s) as graphics_source_s,
    sum(ledger_hour.stuck_s) as stuck_s,
    sum(ledger_hour.idle_memory_byte_s) as idle_memory_byte_s,
    max(ledger_hour.memory_peak_bytes) as memory_peak_bytes
from ledger_hour
inner join counted
    on
        ledger_hour.hour_at = counted.starts_at
        and ledger_hour.build_id = counted.build_id
where
    ledger_hour.hour_at >= $from_at
    and ledger_hour.hour_at < $until_at
    and ($cluster is null or ledger_hour.cluster = $cluster)
group by
    counted.started_at,
    counted.ended_at,
    ledger_hour.cluster,
    ledger_hour.node,
    ledger_hour.model,
    ledger_hour.is_held,
    ledger_hour.tenant_id,
    ledger_hour.workload_class,
    ledger_hour.workload_uid,
    ledger_hour.queue,
    ledger_hour.priority_class,
    ledger_hour.owner,
    ledger_hour.reason,
    ledger_hour.tier
order by
    counted.started_at,
    ledger_hour.cluster,
    ledger_hour.node,
    ledger_hour.model,
    ledger_hour.is_held,
    ledger_hour.tenant_id,
    ledger_hour.workload_class,
    ledger_hour.workload_uid,
    ledger_hour.queue,
    ledger_hour.priority_class,
    ledger_hour.owner,
    ledger_hour.reason,
    ledger_hour.tier
