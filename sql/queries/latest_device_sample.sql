-- purpose    the latest reading of each device and MIG instance in the period
-- grain      one row per device (board values, instance null) and one per MIG instance
-- parameters $from_at timestamptz inclusive, $until_at timestamptz exclusive
with latest as (
    select
        hash(cluster, device_uuid, instance_id) as instance_key,
        max(sampled_at) as sampled_at
    from device_sample
    where sampled_at >= $from_at and sampled_at < $until_at
    group by hash(cluster, device_uuid, instance_id)
)

select
    device_sample.sampled_at,
    device_sample.cluster,
    device_sample.node,
    device_sample.device_uuid,
    device_sample.instance_id,
    device_sample.busy_ratio,
    device_sample.graphics_active_ratio,
    device_sample.sm_active_ratio,
    device_sample.tensor_active_ratio,
    device_sample.dram_active_ratio,
    device_sample.fp64_active_ratio,
    device_sample.fp32_active_ratio,
    device_sample.fp16_active_ratio,
    device_sample.memory_used_bytes,
    device_sample.memory_total_bytes,
    device_sample.power_w,
    device_sample.energy_j,
    device_sample.temperature_celsius
from device_sample
inner join latest
    on
        device_sample.sampled_at = latest.sampled_at
        and hash(
            device_sample.cluster, device_sample.device_uuid, device_sample.instance_id
        ) = latest.instance_key
where
    device_sample.sampled_at >= (select min(oldest.sampled_at) from latest as oldest)
    and device_sample.sampled_at < $until_at
qualify
    row_number() over (
        partition by
            device_sample.cluster, device_sample.device_uuid, device_sample.instance_id
        order by device_sample.source
    ) = 1
order by
    device_sample.cluster, device_sample.node, device_sample.device_uuid,
    device_sample.instance_id nulls first
