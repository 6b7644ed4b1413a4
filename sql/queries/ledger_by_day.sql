-- purpose    where device-time went, day by day, for charts
-- grain      one row per built day, cluster and model; of several builds of one day the newest
--            counts
-- parameters $from_at timestamptz inclusive, $until_at timestamptz exclusive
with newest as (
    select
        starts_at,
        arg_max(build_id, (built_at, build_id)) as build_id
    from ledger_build
    where starts_at >= $from_at and starts_at < $until_at and grain = 'day'
    group by starts_at
)

select
    ledger_day.day_at,
    ledger_day.cluster,
    ledger_day.model,
    sum(ledger_day.wall_ticks)::decimal(38, 0) as wall_ticks,
    sum(ledger_day.used_measured_ticks)::decimal(38, 0) as used_measured_ticks,
    sum(ledger_day.used_estimated_ticks)::decimal(38, 0) as used_estimated_ticks,
    sum(ledger_day.ineffective_ticks)::decimal(38, 0) as ineffective_ticks,
    sum(ledger_day.idle_ticks)::decimal(38, 0) as idle_ticks,
    sum(ledger_day.unknown_ticks)::decimal(38, 0) as unknown_ticks,
    sum(ledger_day.down_ticks)::decimal(38, 0) as down_ticks,
    sum(ledger_day.stranded_ticks)::decimal(38, 0) as stranded_ticks,
    sum(ledger_day.reserved_unused_ticks)::decimal(38, 0) as reserved_unused_ticks,
    sum(ledger_day.free_idle_ticks)::decimal(38, 0) as free_idle_ticks
from ledger_day
inner join newest
    on
        ledger_day.day_at = newest.starts_at
        and ledger_day.build_id = newest.build_id
where
    ledger_day.day_at >= $from_at
    and ledger_day.day_at < $until_at
group by
    ledger_day.day_at,
    ledger_day.cluster,
    ledger_day.model
order by
    ledger_day.day_at,
    ledger_day.cluster,
    ledger_day.model
