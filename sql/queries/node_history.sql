-- purpose    nodes and their changes, for capacity, removals, cordons and free processors
-- grain      one row per observed state of a node: those in the period and the last one before it
-- parameters $from_at timestamptz inclusive, $until_at timestamptz exclusive
select
    observed_at,
    cluster,
    node,
    gpu_model,
    gpu_count,
    cpu_milli,
    memory_bytes,
    is_schedulable,
    -- before is_present was told, a node that left was one without processors and memory
    coalesce(is_present, gpu_count > 0 or cpu_milli > 0 or memory_bytes > 0, true) as is_present
from node
where observed_at < $until_at
qualify
    observed_at >= $from_at
    or row_number() over (
        partition by cluster, node, observed_at < $from_at
        order by observed_at desc
    ) = 1
order by cluster, node, observed_at
