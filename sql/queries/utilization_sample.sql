-- purpose    readings behind utilisation, idle spells and the GPU-hour ledger
-- grain      one row per device or MIG instance and reading; an hour on both sides of the period
--            closes the intervals that cross its ends; device_key is a hash of cluster and device,
--            8 bytes in each of millions of rows (device_history names it)
-- parameters $from_at timestamptz inclusive, $until_at timestamptz exclusive
select
    sampled_at,
    hash(cluster, device_uuid) as device_key,
    instance_id,
    busy_ratio::float as busy_ratio,
    graphics_active_ratio::float as graphics_active_ratio,
    sm_active_ratio::float as sm_active_ratio,
    tensor_active_ratio::float as tensor_active_ratio,
    dram_active_ratio::float as dram_active_ratio,
    fp64_active_ratio::float as fp64_active_ratio,
    fp32_active_ratio::float as fp32_active_ratio,
    fp16_active_ratio::float as fp16_active_ratio,
    integer_active_ratio::float as integer_active_ratio,
    power_w::float as power_w,
    power_limit_w::float as power_limit_w,
    memory_used_bytes
from device_sample
where
    sampled_at >= $from_at::timestamptz - interval 1 hour
    and sampled_at < $until_at::timestamptz + interval 1 hour
order by device_key, instance_id, sampled_at
