-- purpose    readings behind utilisation, idle spells and the GPU-hour ledger
-- grain      one row per device or MIG instance and reading; an hour on both sides of the period
--            closes the intervals that cross its ends; device_key is a hash of cluster and device,
--            8 bytes in each of millions of rows (device_history names it); what no reading of a
--            device can be is null
-- parameters $from_at timestamptz inclusive, $until_at timestamptz exclusive
select
    sampled_at,
    hash(cluster, device_uuid) as device_key,
    instance_id,
    try_cast(busy_ratio as float) as busy_ratio,
    try_cast(graphics_active_ratio as float) as graphics_active_ratio,
    try_cast(sm_active_ratio as float) as sm_active_ratio,
    try_cast(tensor_active_ratio as float) as tensor_active_ratio,
    try_cast(dram_active_ratio as float) as dram_active_ratio,
    try_cast(fp64_active_ratio as float) as fp64_active_ratio,
    try_cast(fp32_active_ratio as float) as fp32_active_ratio,
    try_cast(fp16_active_ratio as float) as fp16_active_ratio,
    try_cast(integer_active_ratio as float) as integer_active_ratio,
    try_cast(power_w as float) as power_w,
    try_cast(power_limit_w as float) as power_limit_w,
    memory_used_bytes
from device_sample
where
    sampled_at >= $from_at::timestamptz - interval 1 hour
    and sampled_at < $until_at::timestamptz + interval 1 hour
order by device_key, instance_id, sampled_at
