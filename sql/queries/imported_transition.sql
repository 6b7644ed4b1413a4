-- purpose    which transitions of a source are stored already
-- grain      one row per transition
-- parameters $source varchar, $cluster varchar,
--            $from_at timestamptz inclusive, $until_at timestamptz inclusive
select
    workload_uid,
    attempt,
    transition,
    occurred_at
from workload_transition
where
    source = $source and cluster = $cluster
    and occurred_at between $from_at and $until_at
order by occurred_at, workload_uid, attempt, transition
