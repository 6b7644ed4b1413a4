-- purpose    which workloads of a source are stored already
-- grain      one row per workload and observation
-- parameters $source varchar, $cluster varchar,
--            $from_at timestamptz inclusive, $until_at timestamptz inclusive
select
    workload_uid,
    observed_at
from workload
where
    source = $source and cluster = $cluster
    and observed_at between $from_at and $until_at
order by observed_at, workload_uid
