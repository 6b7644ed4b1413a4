-- purpose    why pods, queued workloads and gangs could not go on, as their conditions said it
-- grain      one row per change of a condition that says no: those in the period, and the last one
--            of each object before it, since the oldest wait began that was then not over
-- parameters $from_at timestamptz inclusive, $until_at timestamptz exclusive
with waits as (
    select
        cluster,
        workload_uid,
        max(occurred_at) filter (where transition in ('created', 'requeued')) as since_at,
        max(occurred_at) filter (
            where transition not in ('created', 'requeued', 'quota_reserved', 'admitted', 'resumed')
        ) as passed_at
    from workload_transition
    where occurred_at < $from_at
    group by cluster, workload_uid
),

waiting_then as (
    select min(since_at) as since_at
    from waits
    where passed_at is null or since_at >= passed_at
),

owners as (
    select
        cluster,
        pod_uid,
        arg_max(workload_uid, observed_at) as workload_uid
    from pod
    where observed_at < $until_at
    group by cluster, pod_uid
),

changes as (
    select
        occurred_at,
        cluster,
        kind,
        namespace,
        name,
        object_uid,
        condition,
        status,
        reason,
        message
    from condition_change
    where
        occurred_at < $until_at
        and (
            occurred_at >= $from_at
            or occurred_at >= (select waiting_then.since_at from waiting_then)
        )
        and condition in ('QuotaReserved', 'Admitted', 'PodScheduled', 'Unschedulable')
    qualify
        occurred_at >= $from_at
        or row_number() over (
            partition by cluster, object_uid, condition, occurred_at < $from_at
            order by occurred_at desc, observed_at desc
        ) = 1
)

select distinct
    changes.occurred_at,
    changes.cluster,
    changes.kind,
    changes.namespace,
    changes.name,
    changes.object_uid,
    owners.workload_uid,
    changes.condition,
    changes.status,
    changes.reason,
    changes.message
from changes
left join owners on changes.cluster = owners.cluster and changes.object_uid = owners.pod_uid
where (changes.condition = 'Unschedulable') = (changes.status = 'True')
order by
    changes.cluster,
    changes.object_uid,
    changes.occurred_at,
    changes.condition,
    changes.reason,
    changes.message
