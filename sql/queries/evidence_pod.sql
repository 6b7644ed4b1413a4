-- purpose    pods of workloads that hold or want GPUs, for verdicts and decisions
-- grain      one row per observed state of a pod: those in the period and the last one before it,
--            without pods that were gone before it
-- parameters $from_at timestamptz inclusive, $until_at timestamptz exclusive
with told as (
    select
        observed_at,
        cluster,
        workload_uid,
        pod_uid,
        namespace,
        pod,
        node,
        phase,
        created_at,
        started_at,
        coalesce(deleted_at, finished_at) as over_at,
        gpu_count,
        gpu_resource,
        labels_json
    from pod
    where observed_at < $until_at and workload_uid is not null
    qualify
        observed_at >= $from_at
        or row_number() over (
            partition by cluster, pod_uid, observed_at < $from_at
            order by observed_at desc
        ) = 1
)

select
    observed_at,
    cluster,
    workload_uid,
    pod_uid,
    namespace,
    pod,
    node,
    phase,
    created_at,
    started_at,
    over_at,
    gpu_count,
    gpu_resource,
    labels_json
from told
where over_at is null or over_at > $from_at
order by cluster, workload_uid, pod_uid, observed_at
