-- purpose  each device or instance as last observed
-- grain    one row per cluster, device_uuid and instance_id
create or replace view current_device as
select
    observed_at,
    cluster,
    node,
    device_uuid,
    instance_id,
    vendor,
    model,
    device_index,
    memory_total_bytes,
    mig_profile,
    sm_share_ratio,
    memory_share_ratio,
    is_present,
    driver_version,
    labels_json,
    source
from device
qualify
    row_number() over (
        partition by cluster, device_uuid, instance_id order by observed_at desc
    ) = 1;
