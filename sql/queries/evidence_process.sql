-- purpose    what each pod's own processes did on a device, for devices with several holders
-- grain      one row per device or MIG instance, pod and stretch of $cell_s in which processes of
--            the device were told; namespace and pod are null for processes of no known pod;
--            own_busy_ratio is null where a process did not tell its activity
-- parameters $from_at timestamptz inclusive, $until_at timestamptz exclusive, $cell_s integer
with holder as (
    select
        cluster,
        pod_uid,
        arg_max(namespace, observed_at) as namespace,
        arg_max(pod, observed_at) as pod
    from allocation
    where pod_uid is not null and started_at < $until_at
    group by cluster, pod_uid
),

reading as (
    select
        cluster,
        device_uuid,
        instance_id,
        sampled_at,
        pod_uid,
        floor(epoch_us(sampled_at) / 1e6 / $cell_s) as cell,
        case when bool_and(sm_ratio is not null) then sum(sm_ratio) end as own_busy_ratio
    from device_process
    where sampled_at >= $from_at and sampled_at < $until_at
    group by cluster, device_uuid, instance_id, sampled_at, pod_uid
)

select
    hash(reading.cluster, reading.device_uuid) as device_key,
    reading.instance_id,
    holder.namespace,
    holder.pod,
    max(reading.sampled_at) as sampled_at,
    case
        when bool_and(reading.own_busy_ratio is not null) then max(reading.own_busy_ratio)
    end as own_busy_ratio
from reading
left join holder on reading.cluster = holder.cluster and reading.pod_uid = holder.pod_uid
group by
    reading.cluster,
    reading.device_uuid,
    reading.instance_id,
    holder.namespace,
    holder.pod,
    reading.cell
order by device_key, reading.instance_id, holder.namespace, holder.pod, max(reading.sampled_at)
