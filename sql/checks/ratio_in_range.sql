-- purpose    every ratio of a device sample lies in 0..1
-- grain      one row
-- parameters none
select count(*) as violation_count
from device_sample
where
    least(
        busy_ratio, memory_busy_ratio, graphics_active_ratio, sm_active_ratio, sm_occupancy_ratio,
        tensor_active_ratio, dram_active_ratio, fp64_active_ratio, fp32_active_ratio,
        fp16_active_ratio, encoder_ratio, decoder_ratio
    ) < 0
    or greatest(
        busy_ratio, memory_busy_ratio, graphics_active_ratio, sm_active_ratio, sm_occupancy_ratio,
        tensor_active_ratio, dram_active_ratio, fp64_active_ratio, fp32_active_ratio,
        fp16_active_ratio, encoder_ratio, decoder_ratio
    ) > 1
