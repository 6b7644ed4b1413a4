-- purpose    who held which device or MIG instance during the period
-- grain      one row per allocation that touches the period, or per part of it where a known owner
--            changed, as last told; where nobody is known to hold what works or is not shown,
--            unheld_reason says which
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

keyed as (
    -- one narrow row for each that was told: holders are many, and their names are long
    select
        rowid as row_id,
        observed_at,
        started_at,
        ended_at,
        hash(
            cluster, device_uuid, instance_id, replica, namespace, pod, container,
            case when pod is null then workload_uid end
        ) as allocation_key
    from allocation
    where started_at < $until_at
),

numbered_rows as (
    select
        row_id,
        -- rows of one allocation share the number of the newest of them, and the end that it tells
        first_value(row_id) over newest_first as allocation_id,
        first_value(ended_at) over newest_first as last_ended_at,
        row_number() over newest_first as recency,
        count(*) over (partition by allocation_key, started_at) as row_count
    from keyed
    window
        newest_first as (
            partition by allocation_key, started_at
            order by observed_at desc, ended_at asc nulls last
        )
    qualify last_ended_at is null or last_ended_at > $from_at
),

told as (
    select
        numbered_rows.allocation_id,
        numbered_rows.recency,
        allocation.observed_at,
        allocation.workload_uid,
        allocation.tenant_id,
        allocation.workload_class,
        allocation.queue,
        allocation.priority_class,
        allocation.ownership_level
    from allocation
    inner join numbered_rows on allocation.rowid = numbered_rows.row_id
    where numbered_rows.row_count > 1
),

relabelled as (
    select allocation_id
    from told
    group by allocation_id
    having
        min(tenant_id) != max(tenant_id)
        or min(workload_class) != max(workload_class)
        or min(queue) != max(queue)
        or min(priority_class) != max(priority_class)
        or (count(tenant_id) > 0 and bool_or(ownership_level = 'unattributed'))
),

compared as (
    select
        told.allocation_id,
        told.recency,
        -- what becomes known for the first time is no change: it holds from the start
        last_value(told.tenant_id ignore nulls) over earlier is not null
        and coalesce(
            told.tenant_id != last_value(told.tenant_id ignore nulls) over earlier
            or told.workload_class != last_value(told.workload_class ignore nulls) over earlier
            or told.queue != last_value(told.queue ignore nulls) over earlier
            or told.priority_class != last_value(told.priority_class ignore nulls) over earlier
            or (told.ownership_level = 'unattributed') != (
                coalesce(last_value(told.ownership_level ignore nulls) over earlier, '')
                = 'unattributed'
            ),
            false
        ) as is_change
    from told
    semi join relabelled on told.allocation_id = relabelled.allocation_id
    window earlier as (
        partition by told.allocation_id
        order by told.recency desc
        rows between unbounded preceding and 1 preceding
    )
),

numbered as (
    select
        allocation_id,
        recency,
        count(*) filter (where is_change) over (
            partition by allocation_id order by recency desc rows unbounded preceding
        ) as part
    from compared
),

owned as (
    select
        told.allocation_id,
        coalesce(numbered.part, 0) as part,
        min(told.observed_at) as told_at,
        arg_min(told.workload_uid, told.recency) as workload_uid,
        arg_min(told.tenant_id, told.recency) as tenant_id,
        arg_min(told.workload_class, told.recency) as workload_class,
        arg_min(told.queue, told.recency) as queue,
        arg_min(told.priority_class, told.recency) as priority_class,
        arg_min(told.ownership_level, told.recency) as ownership_level
    from told
    left join numbered
        on told.allocation_id = numbered.allocation_id and told.recency = numbered.recency
    group by told.allocation_id, coalesce(numbered.part, 0)
),

told_once as (
    select row_id
    from numbered_rows
    where row_count = 1
),

held as (
    select
        newest.cluster,
        newest.node,
        newest.device_uuid,
        newest.instance_id,
        newest.replica,
        newest.gpu_share_ratio,
        newest.sharing_mode,
        newest.namespace,
        newest.pod,
        newest.container,
        newest.workload_uid,
        newest.tenant_id,
        newest.workload_class,
        newest.queue,
        newest.priority_class,
        newest.ownership_level,
        newest.started_at,
        newest.ended_at,
        false as is_part,
        case
            when newest.attribution_source = 'none' and newest.pod is null
                then split_part(newest.conflict, ';', 1)
        end as unheld_reason
    from allocation as newest
    semi join told_once on newest.rowid = told_once.row_id
    union all by name
    select
        newest.cluster,
        newest.node,
        newest.device_uuid,
        newest.instance_id,
        newest.replica,
        newest.gpu_share_ratio,
        newest.sharing_mode,
        newest.namespace,
        newest.pod,
        newest.container,
        owned.workload_uid,
        owned.tenant_id,
        owned.workload_class,
        owned.queue,
        owned.priority_class,
        owned.ownership_level,
        case
            when owned.part = 0 then newest.started_at
            else greatest(newest.started_at, owned.told_at)
        end as started_at,
        least(
            lead(greatest(newest.started_at, owned.told_at)) over parts, newest.ended_at
        ) as ended_at,
        owned.part > 0 or lead(owned.part) over parts is not null as is_part,
        case
            when newest.attribution_source = 'none' and newest.pod is null
                then split_part(newest.conflict, ';', 1)
        end as unheld_reason
    from owned
    inner join allocation as newest on owned.allocation_id = newest.rowid
    window parts as (partition by owned.allocation_id order by owned.part)
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
where
    held.started_at < $until_at
    and (held.ended_at is null or held.ended_at > $from_at)
    and (not held.is_part or held.ended_at is null or held.started_at < held.ended_at)
order by
    held.device_uuid,
    held.instance_id,
    held.started_at,
    held.workload_uid,
    held.pod,
    held.container,
    held.replica
