-- purpose    readings from which verdicts are made: how hard a device may have worked, and when
-- grain      one row per device or MIG instance, source and stretch of $cell_s with readings, with
--            the peaks of these; stretches are counted from 1970 on, so that they lie alike for
--            every period that begins and ends with one; device_key as in device_history
-- parameters $from_at timestamptz inclusive, $until_at timestamptz exclusive, $cell_s integer
with reading as (
    select
        cluster,
        device_uuid,
        instance_id,
        source,
        sampled_at,
        greatest(
            graphics_active_ratio, sm_active_ratio, tensor_active_ratio, dram_active_ratio
        ) as profiling_ratio,
        busy_ratio,
        power_w,
        power_limit_w,
        memory_used_bytes,
        memory_total_bytes,
        case
            when
                coalesce(
                    pcie_transmit_bytes_per_s, pcie_receive_bytes_per_s, nvlink_bytes_per_s
                ) is not null
                then
                    coalesce(pcie_transmit_bytes_per_s, 0)
                    + coalesce(pcie_receive_bytes_per_s, 0)
                    + coalesce(nvlink_bytes_per_s, 0)
        end as traffic_bytes_per_s,
        process_count,
        energy_j,
        temperature_celsius
    from device_sample
    where sampled_at >= $from_at and sampled_at < $until_at
)

select
    hash(cluster, device_uuid) as device_key,
    instance_id,
    source,
    min(sampled_at) as first_at,
    max(sampled_at) as sampled_at,
    count(*) as reading_count,
    count(profiling_ratio) as profiling_count,
    count(busy_ratio) as busy_count,
    max(profiling_ratio) as profiling_ratio,
    max(busy_ratio) as busy_ratio,
    max(busy_ratio - profiling_ratio) as disagreement_ratio,
    try_cast(min(power_w) as float) as power_low_w,
    try_cast(max(power_w) as float) as power_w,
    try_cast(max(power_limit_w) as float) as power_limit_w,
    min(memory_used_bytes) as memory_low_bytes,
    max(memory_used_bytes) as memory_used_bytes,
    max(memory_total_bytes) as memory_total_bytes,
    try_cast(max(traffic_bytes_per_s) as float) as traffic_bytes_per_s,
    max(process_count) as process_count,
    max(energy_j) as energy_j,
    try_cast(max(temperature_celsius) as float) as temperature_celsius
from reading
group by
    cluster, device_uuid, instance_id, source, floor(epoch_us(sampled_at) / 1e6 / $cell_s)
order by device_key, instance_id, source, sampled_at
