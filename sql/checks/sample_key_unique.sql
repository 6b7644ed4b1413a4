-- purpose    a device or instance has one sample per instant and source
-- grain      one row; each sample beyond the first of its key counts
-- parameters none
with keyed as (
    select count(*) as row_count
    from device_sample
    group by cluster, device_uuid, instance_id, sampled_at, source
    having count(*) > 1
)

select coalesce(sum(row_count - 1), 0)::bigint as violation_count
from keyed
