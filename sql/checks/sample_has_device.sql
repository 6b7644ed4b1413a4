-- purpose    every sampled device has a row in device
-- grain      one row; each device without one counts
-- parameters none
with sampled as (
    select distinct
        cluster,
        device_uuid
    from device_sample
)

select count(*) as violation_count
from sampled
anti join device
    on sampled.cluster = device.cluster and sampled.device_uuid = device.device_uuid
