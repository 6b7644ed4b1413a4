-- purpose    where each node stands and how much memory it has, for gangs and for what would fit
-- grain      one row per node, as last observed before the period's end
-- parameters $from_at timestamptz inclusive, $until_at timestamptz exclusive
select
    cluster,
    node,
    rack,
    nvlink_domain,
    memory_bytes
from node
where
    observed_at < $until_at
    and $from_at <= $until_at
qualify row_number() over (partition by cluster, node order by observed_at desc) = 1
order by cluster, node
