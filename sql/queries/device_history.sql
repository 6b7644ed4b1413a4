-- purpose    devices and MIG instances and their changes, for inventory and lifetimes
-- grain      one row per observed state of a device or instance: those in the period, the last one
--            before it, and the last one before it that was present
-- parameters $from_at timestamptz inclusive, $until_at timestamptz exclusive
select
    observed_at,
    cluster,
    node,
    device_uuid,
    hash(cluster, device_uuid) as device_key,
    instance_id,
    model,
    device_index,
    memory_total_bytes,
    mig_profile,
    sm_share_ratio,
    memory_share_ratio,
    is_present
from device
where observed_at < $until_at
qualify
    observed_at >= $from_at
    or row_number() over (
        partition by cluster, device_uuid, instance_id, observed_at < $from_at
        order by observed_at desc
    ) = 1
    or is_present and row_number() over (
        partition by cluster, device_uuid, instance_id, observed_at < $from_at, is_present
        order by observed_at desc
    ) = 1
order by cluster, node, device_uuid, instance_id nulls first, observed_at
