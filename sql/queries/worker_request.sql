-- purpose    how many GPUs one worker of a workload needs together on a node
-- grain      one row per workload with pods that ask for GPUs, of its pods observed so far
-- parameters $from_at timestamptz inclusive, $until_at timestamptz exclusive
select
    cluster,
    workload_uid,
    max(gpu_count) as worker_gpu_count
from pod
where
    observed_at < $until_at
    and $from_at <= $until_at
    and workload_uid is not null
    and gpu_count > 0
group by cluster, workload_uid
order by cluster, workload_uid
