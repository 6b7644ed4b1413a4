-- purpose    the built hours of the ledger, summed: ticks exactly, beyond 64 bits where need be
-- grain      one row per span and combination of the keys asked for; of several builds of one hour
--            the newest counts; what is not asked for is null, and neither read nor divided by
-- parameters $from_at timestamptz inclusive, $until_at timestamptz exclusive, $cluster varchar
--            (null is all), $pieces varchar: which hours, and the span each belongs to, as
--            from/until/started/ended in ISO 8601, many of them parted by commas,
--            $columns varchar: the keys and overlays asked for, parted by commas
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
),

asked as (
    select
        build_id,
        hour_at,
        case when list_contains(string_split($columns, ','), 'cluster') then cluster end as cluster,
        case when list_contains(string_split($columns, ','), 'node') then node end as node,
        case when list_contains(string_split($columns, ','), 'model') then model end as model,
        case when list_contains(string_split($columns, ','), 'is_held') then is_held end as is_held,
        case
            when list_contains(string_split($columns, ','), 'tenant_id')
                then tenant_id
        end as tenant_id,
        case
            when list_contains(string_split($columns, ','), 'workload_class')
                then workload_class
        end as workload_class,
        case
            when list_contains(string_split($columns, ','), 'workload_uid')
                then workload_uid
        end as workload_uid,
        case when list_contains(string_split($columns, ','), 'queue') then queue end as queue,
        case
            when list_contains(string_split($columns, ','), 'priority_class')
                then priority_class
        end as priority_class,
        case when list_contains(string_split($columns, ','), 'owner') then owner end as owner,
        case when list_contains(string_split($columns, ','), 'reason') then reason end as reason,
        case when list_contains(string_split($columns, ','), 'tier') then tier end as tier,
        wall_ticks,
        used_measured_ticks,
        used_estimated_ticks,
        ineffective_ticks,
        idle_ticks,
        unknown_ticks,
        down_ticks,
        stranded_ticks,
        reserved_unused_ticks,
        free_idle_ticks,
        case
            when list_contains(string_split($columns, ','), 'observed_s')
                then observed_s
        end as observed_s,
        case
            when list_contains(string_split($columns, ','), 'apparent_s')
                then apparent_s
        end as apparent_s,
        case
            when list_contains(string_split($columns, ','), 'apparent_known_s')
                then apparent_known_s
        end as apparent_known_s,
        case
            when list_contains(string_split($columns, ','), 'effective_s')
                then effective_s
        end as effective_s,
        case
            when list_contains(string_split($columns, ','), 'effective_known_s')
                then effective_known_s
        end as effective_known_s,
        case when list_contains(string_split($columns, ','), 'gap_s') then gap_s end as gap_s,
        case
            when list_contains(string_split($columns, ','), 'gap_known_s')
                then gap_known_s
        end as gap_known_s,
        case
            when list_contains(string_split($columns, ','), 'sm_active_s')
                then sm_active_s
        end as sm_active_s,
        case
            when list_contains(string_split($columns, ','), 'sm_active_known_s')
                then sm_active_known_s
        end as sm_active_known_s,
        case
            when list_contains(string_split($columns, ','), 'dram_active_s')
                then dram_active_s
        end as dram_active_s,
        case
            when list_contains(string_split($columns, ','), 'dram_active_known_s')
                then dram_active_known_s
        end as dram_active_known_s,
        case
            when list_contains(string_split($columns, ','), 'busy_source_s')
                then busy_source_s
        end as busy_source_s,
        case
            when list_contains(string_split($columns, ','), 'graphics_source_s')
                then graphics_source_s
        end as graphics_source_s,
        case when list_contains(string_split($columns, ','), 'stuck_s') then stuck_s end as stuck_s,
        case
            when list_contains(string_split($columns, ','), 'idle_memory_byte_s')
                then idle_memory_byte_s
        end as idle_memory_byte_s,
        case
            when list_contains(string_split($columns, ','), 'memory_peak_bytes')
                then memory_peak_bytes
        end as memory_peak_bytes
    from ledger_hour
    where hour_at >= $from_at and hour_at < $until_at and ($cluster is null or cluster = $cluster)
)

select
    counted.started_at,
    counted.ended_at,
    asked.cluster,
    asked.node,
    asked.model,
    asked.is_held,
    asked.tenant_id,
    asked.workload_class,
    asked.workload_uid,
    asked.queue,
    asked.priority_class,
    asked.owner,
    asked.reason,
    asked.tier,
    sum(asked.wall_ticks)::decimal(38, 0) as wall_ticks,
    sum(asked.used_measured_ticks)::decimal(38, 0) as used_measured_ticks,
    sum(asked.used_estimated_ticks)::decimal(38, 0) as used_estimated_ticks,
    sum(asked.ineffective_ticks)::decimal(38, 0) as ineffective_ticks,
    sum(asked.idle_ticks)::decimal(38, 0) as idle_ticks,
    sum(asked.unknown_ticks)::decimal(38, 0) as unknown_ticks,
    sum(asked.down_ticks)::decimal(38, 0) as down_ticks,
    sum(asked.stranded_ticks)::decimal(38, 0) as stranded_ticks,
    sum(asked.reserved_unused_ticks)::decimal(38, 0) as reserved_unused_ticks,
    sum(asked.free_idle_ticks)::decimal(38, 0) as free_idle_ticks,
    sum(asked.observed_s) as observed_s,
    sum(asked.apparent_s) as apparent_s,
    sum(asked.apparent_known_s) as apparent_known_s,
    sum(asked.effective_s) as effective_s,
    sum(asked.effective_known_s) as effective_known_s,
    sum(asked.gap_s) as gap_s,
    sum(asked.gap_known_s) as gap_known_s,
    sum(asked.sm_active_s) as sm_active_s,
    sum(asked.sm_active_known_s) as sm_active_known_s,
    sum(asked.dram_active_s) as dram_active_s,
    sum(asked.dram_active_known_s) as dram_active_known_s,
    sum(asked.busy_source_s) as busy_source_s,
    sum(asked.graphics_source_s) as graphics_source_s,
    sum(asked.stuck_s) as stuck_s,
    sum(asked.idle_memory_byte_s) as idle_memory_byte_s,
    max(asked.memory_peak_bytes) as memory_peak_bytes
from asked
inner join counted on asked.hour_at = counted.starts_at and asked.build_id = counted.build_id
group by
    counted.started_at,
    counted.ended_at,
    asked.cluster,
    asked.node,
    asked.model,
    asked.is_held,
    asked.tenant_id,
    asked.workload_class,
    asked.workload_uid,
    asked.queue,
    asked.priority_class,
    asked.owner,
    asked.reason,
    asked.tier
order by
    counted.started_at,
    asked.cluster,
    asked.node,
    asked.model,
    asked.is_held,
    asked.tenant_id,
    asked.workload_class,
    asked.workload_uid,
    asked.queue,
    asked.priority_class,
    asked.owner,
    asked.reason,
    asked.tier
