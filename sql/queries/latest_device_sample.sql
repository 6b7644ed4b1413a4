-- purpose    the latest reading of each device and MIG instance in the period
-- grain      one row per device (board values, instance null) and one per MIG instance
-- parameters $from_at timestamptz inclusive, $until_at timestamptz exclusive
select
    sampled_at,
    cluster,
    node,
    device_uuid,
    instance_id,
    busy_ratio,
    graphics_active_ratio,
    sm_active_ratio,
    tensor_active_ratio,
    dram_active_ratio,
    fp64_active_ratio,
    fp32_active_ratio,
    fp16_active_ratio,
    memory_used_bytes,
    memory_total_bytes,
    power_w,
    energy_j,
    temperature_celsius
from device_sample
where sampled_at >= $from_at and sampled_at < $until_at
qualify
    row_number() over (
        partition by cluster, device_uuid, instance_id
        order by sampled_at desc, source asc
    ) = 1
order by cluster, node, device_uuid, instance_id nulls first
