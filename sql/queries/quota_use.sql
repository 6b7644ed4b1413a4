-- purpose    quota of each queue, what is used and borrowed of it, and how much work waits for it
-- grain      one row per reading of a queue and GPU model: those in the period and the last one
--            before it
-- parameters $from_at timestamptz inclusive, $until_at timestamptz exclusive
select
    observed_at,
    cluster,
    queue,
    tenant_id,
    cohort,
    gpu_model,
    guaranteed_gpu_count,
    limit_gpu_count,
    used_gpu_count,
    borrowed_gpu_count,
    pending_workload_count
from quota_snapshot
where observed_at < $until_at
qualify
    observed_at >= $from_at
    or row_number() over (
        partition by cluster, queue, gpu_model, observed_at < $from_at
        order by observed_at desc
    ) = 1
order by cluster, queue, gpu_model, observed_at, tenant_id
