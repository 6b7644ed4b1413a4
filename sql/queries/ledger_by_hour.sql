-- purpose    where device-time went, hour by hour, for charts
-- grain      one row per built hour, cluster and model; of several builds of one hour the newest
--            counts
-- parameters $from_at timestamptz inclusive, $until_at timestamptz exclusive
with newest as (
    select
        starts_at,
        arg_max(build_id, (built_at, build_id)) as build_id
    from ledger_build
    where starts_at >= $from_at and starts_at < $until_at and grain = 'hour'
    group by starts_at
)

select
    ledger_hour.hour_at,
    ledger_hour.cluster,
    ledger_hour.model,
    sum(ledger_hour.wall_ticks)::decimal(38, 0) as wall_ticks,
    sum(ledger_hour.used_measured_ticks)::decimal(38, 0) as used_measured_ticks,
    sum(ledger_hour.used_estimated_ticks)::decimal(38, 0) as used_estimated_ticks,
    sum(ledger_hour.ineffective_ticks)::decimal(38, 0) as ineffective_ticks,
    sum(ledger_hour.idle_ticks)::decimal(38, 0) as idle_ticks,
    sum(ledger_hour.unknown_ticks)::decimal(38, 0) as unknown_ticks,
    sum(ledger_hour.down_ticks)::decimal(38, 0) as down_ticks,
    sum(ledger_hour.stranded_ticks)::decimal(38, 0) as stranded_ticks,
    sum(ledger_hour.reserved_unused_ticks)::decimal(38, 0) as reserved_unused_ticks,
    sum(ledger_hour.free_idle_ticks)::decimal(38, 0) as free_idle_ticks
from ledger_hour
inner join newest
    on
        ledger_hour.hour_at = newest.starts_at
        and ledger_hour.build_id = newest.build_id
where
    ledger_hour.hour_at >= $from_at
    and ledger_hour.hour_at < $until_at
group by
    ledger_hour.hour_at,
    ledger_hour.cluster,
    ledger_hour.model
order by
    ledger_hour.hour_at,
    ledger_hour.cluster,
    ledger_hour.model
