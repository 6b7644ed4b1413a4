-- purpose    unbroken rest of held devices in the built hours of the ledger
-- grain      one row per stretch, cut at the borders of hours; of several builds of one hour the
--            newest counts
-- parameters $from_at timestamptz inclusive, $until_at timestamptz exclusive, $cluster varchar
--            (null is all)
with newest as (
    select
        starts_at,
        arg_max(build_id, (built_at, build_id)) as build_id
    from ledger_build
    where starts_at >= $from_at and starts_at < $until_at and grain = 'hour'
    group by starts_at
)

select
    rest_stretch.cluster,
    rest_stretch.node,
    rest_stretch.device_uuid,
    rest_stretch.instance_id,
    rest_stretch.tenant_id,
    rest_stretch.workload_class,
    rest_stretch.workload_uid,
    rest_stretch.namespace,
    rest_stretch.pod,
    rest_stretch.is_idle,
    rest_stretch.is_stuck,
    rest_stretch.started_at,
    rest_stretch.ended_at,
    rest_stretch.gpu_share_ratio,
    rest_stretch.memory_first_bytes,
    rest_stretch.memory_last_bytes
from rest_stretch
inner join newest
    on
        rest_stretch.hour_at = newest.starts_at
        and rest_stretch.build_id = newest.build_id
where
    rest_stretch.hour_at >= $from_at
    and rest_stretch.hour_at < $until_at
    and ($cluster is null or rest_stretch.cluster = $cluster)
order by
    rest_stretch.cluster,
    rest_stretch.device_uuid,
    rest_stretch.instance_id,
    rest_stretch.started_at
