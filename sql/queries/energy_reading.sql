-- purpose    energy counters as they were read, for building energy by day and hour
-- grain      one row per board and hour with a reading: the first and the last of the hour
-- parameters $from_at timestamptz inclusive, $until_at timestamptz exclusive
select
    cluster,
    node,
    device_uuid,
    to_timestamp(epoch_us(sampled_at) // 3600000000 * 3600) as hour_at,
    min(sampled_at) as first_at,
    arg_min(energy_j, sampled_at) as first_j,
    max(sampled_at) as last_at,
    arg_max(energy_j, sampled_at) as last_j
from device_sample
where
    sampled_at >= $from_at
    and sampled_at < $until_at
    and instance_id is null
    and energy_j is not null
group by cluster, node, device_uuid, epoch_us(sampled_at) // 3600000000
order by hour_at, cluster, node, device_uuid
