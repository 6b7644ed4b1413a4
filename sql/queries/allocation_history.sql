-- purpose    who held which device or MIG instance during the period
-- grain      one row per allocation that touches the period, as last observed
-- parameters $from_at timestamptz inclusive, $until_at timestamptz exclusive
with owners as (
    select
        cluster,
        workload_uid,
        arg_max(tenant_id, observed_at) as tenant_id,
        arg_max(workload_class, observed_at) as workload_class
    from workload
    group by cluster, workload_uid
),

held as (
    select
        cluster,
        node,
        device_uuid,
        instance_id,
        started_at,
        ended_at,
        gpu_share_ratio,
        sharing_mode,
        namespace,
        pod,
        workload_uid,
        tenant_id
    from allocation
    where started_at < $until_at
    qualify
        row_number() over (
            partition by
                cluster, device_uuid, instance_id, replica, namespace, pod, pod_uid, container,
                workload_uid, started_at
            order by observed_at desc, ended_at asc nulls last
        ) = 1
)

select
    held.cluster,
    held.node,
    held.device_uuid,
    held.instance_id,
    held.started_at,
    held.ended_at,
    held.gpu_share_ratio,
    held.sharing_mode,
    held.namespace,
    held.pod,
    held.workload_uid,
    coalesce(held.tenant_id, owners.tenant_id, held.namespace) as tenant_id,
    owners.workload_class
from held
left join owners on held.cluster = owners.cluster and held.workload_uid = owners.workload_uid
where held.ended_at is null or held.ended_at > $from_at
order by held.device_uuid, held.instance_id, held.started_at, held.workload_uid, held.pod
