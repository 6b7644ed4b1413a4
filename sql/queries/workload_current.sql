-- purpose    what each workload asked for, for queues, target shapes and processors in use
-- grain      one row per workload that was not yet over when the period began, as last observed
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

select
    cluster,
    workload_uid,
    kind,
    namespace,
    name,
    tenant_id,
    owner,
    workload_class,
    queue,
    priority_class,
    priority,
    qos_class,
    cpu_milli,
    memory_bytes,
    gpu_count,
    gpu_milli,
    gpu_models
from workload
where
    observed_at < $until_at
    and not exists (
        select 1
        from over_before
        where
            over_before.cluster = workload.cluster
            and over_before.workload_uid = workload.workload_uid
    )
qualify row_number() over (partition by cluster, workload_uid order by observed_at desc) = 1
order by cluster, workload_uid
