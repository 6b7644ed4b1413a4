-- purpose    what a team, or one workload, held and did with it, for whoever approves a request
-- grain      one row; its sums are null where nothing was held or no hour is built
-- parameters $from_at timestamptz inclusive, $until_at timestamptz exclusive, both whole hours,
--            $cluster varchar, $tenant_id varchar (null is any), $workload_uid varchar (same)
with newest as (
    select
        starts_at,
        arg_max(build_id, (built_at, build_id)) as build_id
    from ledger_build
    where starts_at >= $from_at and starts_at < $until_at and grain = 'hour'
    group by starts_at
)

select
    count(distinct newest.starts_at) as built_hour_count,
    sum(ledger_hour.wall_ticks)::decimal(38, 0) as held_ticks,
    sum(ledger_hour.idle_ticks)::decimal(38, 0) as idle_ticks,
    sum(ledger_hour.unknown_ticks)::decimal(38, 0) as unknown_ticks,
    sum(ledger_hour.effective_s) as effective_s,
    sum(ledger_hour.effective_known_s) as effective_known_s
from newest
left join ledger_hour
    on
        newest.starts_at = ledger_hour.hour_at
        and newest.build_id = ledger_hour.build_id
        and ledger_hour.is_held
        and ledger_hour.cluster = $cluster
        and ($tenant_id is null or ledger_hour.tenant_id = $tenant_id)
        and ($workload_uid is null or ledger_hour.workload_uid = $workload_uid)
order by built_hour_count
