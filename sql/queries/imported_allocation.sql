-- purpose    which allocations of a source are stored already
-- grain      one row per allocation
-- parameters $source varchar, $cluster varchar,
--            $from_at timestamptz inclusive, $until_at timestamptz inclusive
select
    workload_uid,
    device_uuid,
    started_at,
    ended_at
from allocation
where
    attribution_source = $source and cluster = $cluster
    and started_at between $from_at and $until_at
order by started_at, workload_uid, device_uuid, ended_at
