-- purpose  each node as last observed
-- grain    one row per cluster and node
create or replace view current_node as
select
    observed_at,
    cluster,
    node,
    gpu_model,
    gpu_count,
    cpu_milli,
    memory_bytes,
    is_schedulable,
    rack,
    nvlink_domain,
    labels_json,
    source,
    is_present
from node
qualify row_number() over (partition by cluster, node order by observed_at desc) = 1;
