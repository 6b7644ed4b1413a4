-- purpose    why pods, jobs, queued workloads and gangs could not go on, as events said it
-- grain      one row per event and time it was said: those in the period, and the last of each
--            object and reason before it, since the oldest wait began that was then not over
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
        pod_uid as object_uid,
        arg_max(workload_uid, observed_at) as workload_uid
    from pod
    where observed_at < $until_at
    group by cluster, pod_uid
),

known as (
    select distinct
        cluster,
        workload_uid
    from workload
    where observed_at < $until_at
),

said as (
    select
        occurred_at,
        cluster,
        namespace,
        kind,
        name,
        object_uid,
        reason,
        message
    from kubernetes_event
    where
        occurred_at < $until_at
        and (
            occurred_at >= $from_at
            or occurred_at >= (select waiting_then.since_at from waiting_then)
        )
        and reason in (
            'FailedScheduling',
            'Pending',
            'Unschedulable',
            'NotEnoughResources',
            'PodGroupNotReady',
            'FailedCreate',
            'FailedPrepareDynamicResources'
        )
    qualify
        occurred_at >= $from_at
        or row_number() over (
            partition by cluster, object_uid, reason, occurred_at < $from_at
            order by occurred_at desc
        ) = 1
)

select distinct
    said.occurred_at,
    said.cluster,
    said.kind,
    said.namespace,
    said.name,
    said.object_uid,
    coalesce(owners.workload_uid, known.workload_uid) as workload_uid,
    said.reason,
    said.message
from said
left join owners on said.cluster = owners.cluster and said.object_uid = owners.object_uid
left join known on said.cluster = known.cluster and said.object_uid = known.workload_uid
order by said.cluster, said.object_uid, said.occurred_at, said.reason, said.message
