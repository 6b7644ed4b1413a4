-- purpose    lifecycle of the workloads that were not yet over when the period began
-- grain      one row per observed transition before the period's end, repeats removed
-- parameters $from_at timestamptz inclusive, $until_at timestamptz exclusive
with finished_before as (
    select
        cluster,
        workload_uid
    from workload_transition
    where occurred_at < $from_at
    group by cluster, workload_uid
    having arg_max(transition, occurred_at) = 'finished'
),

over_before as (
    select
        finished_before.cluster,
        finished_before.workload_uid
    from finished_before
    where
        not exists (
            select 1
            from workload_transition as later
            where
                later.occurred_at >= $from_at
                and later.occurred_at < $until_at
                and later.cluster = finished_before.cluster
                and later.workload_uid = finished_before.workload_uid
        )
)

select distinct
    occurred_at,
    cluster,
    workload_uid,
    attempt,
    transition,
    reason
from workload_transition
where
    occurred_at < $until_at
    and not exists (
        select 1
        from over_before
        where
            over_before.cluster = workload_transition.cluster
            and over_before.workload_uid = workload_transition.workload_uid
    )
order by occurred_at, hash(cluster, workload_uid, attempt, transition, reason)
