-- purpose    who lost its place, and for whom
-- grain      one row per eviction or preemption in the period, repeats removed
-- parameters $from_at timestamptz inclusive, $until_at timestamptz exclusive
select distinct
    occurred_at,
    cluster,
    workload_uid,
    attempt,
    transition,
    reason,
    message
from workload_transition
where
    occurred_at >= $from_at
    and occurred_at < $until_at
    and transition in ('evicted', 'preempted')
order by cluster, workload_uid, attempt, occurred_at, transition, reason, message
