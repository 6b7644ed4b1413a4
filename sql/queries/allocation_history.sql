-- purpose    who held which device or MIG instance during the period
-- grain      one row per allocation that touches the period, as last observed; where nobody is
--            known to hold what works or is not shown, unheld_reason says which
-- parameters $from_at timestamptz inclusive, $until_at timestamptz exclusive
with owners as (
    select
        cluster,
        workload_uid,
        arg_max(tenant_id, observed_at) as tenant_id,
        arg_max(workload_class, observed_at) as workload_class,
        arg_max(queue, observed_at) as queue,
        arg_max(priority_class, observed_at) as priority_class,
        arg_max(owner, observed_at) as owner
    from workload
    group by cluster, workload_uid
),

held as (
    select
        cluster,
        node,
        device_uuid,
        instance_id,
        replica,
        started_at,
        ended_at,
        gpu_share_ratio,
        sharing_mode,
        namespace,
        pod,
        container,
        workload_uid,
        tenant_id,
        workload_class,
        queue,
        priority_class,
        ownership_level,
        case
            when attribution_source = 'none' and pod is null
                then split_part(conflict, ';', 1)
        end as unheld_reason
    from allocation
    where started_at < $until_at
    qualify
        row_number() over (
            partition by
                cluster, device_uuid, instance_id, replica, namespace, pod, container, started_at,
                case when pod is null then workload_uid end
            order by observed_at desc, ended_at asc nulls last
        ) = 1
)

select
    held.cluster,
    held.node,
    held.device_uuid,
    held.instance_id,
    held.replica,
    held.started_at,
    held.ended_at,
    held.gpu_share_ratio,
    held.sharing_mode,
    held.namespace,
    held.pod,
    held.container,
    held.workload_uid,
    case
        when coalesce(held.ownership_level, '') != 'unattributed'
            then coalesce(held.tenant_id, owners.tenant_id, held.namespace)
    end as tenant_id,
    coalesce(held.workload_class, owners.workload_class) as workload_class,
    coalesce(held.queue, owners.queue) as queue,
    coalesce(held.priority_class, owners.priority_class) as priority_class,
    owners.owner,
    held.unheld_reason
from held
left join owners on held.cluster = owners.cluster and held.workload_uid = owners.workload_uid
where held.ended_at is null or held.ended_at > $from_at
order by
    held.device_uuid,
    held.instance_id,
    held.started_at,
    held.workload_uid,
    held.pod,
    held.container,
    held.replica
