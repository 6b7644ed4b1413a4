-- purpose    energy counters for analytics.reports.energy, of the time whose energy is not built
-- grain      one row per board and hour with a reading: the first and the last of the hour; none of
--            the UTC days that energy_days tells
-- parameters $from_at timestamptz inclusive, $until_at timestamptz exclusive
with built as (
    select distinct
        starts_at,
        starts_at + interval '24 hours' as ends_at
    from energy_build
    where starts_at >= $from_at and starts_at + interval '24 hours' <= $until_at
),

hole as (
    select
        ends_at as starts_at,
        lead(starts_at) over (order by starts_at) as ends_at
    from built
    qualify lead(starts_at) over (order by starts_at) > ends_at
),

reading as (
    -- before what is built, after it, and between: each for itself, so that the rest is not read
    select
        cluster,
        node,
        device_uuid,
        sampled_at,
        energy_j
    from device_sample
    where
        sampled_at >= $from_at
        and sampled_at < $until_at
        and sampled_at < (
            select coalesce(min(built.starts_at), $until_at::timestamptz) from built
        )
        and instance_id is null
        and energy_j is not null
    union all
    select
        cluster,
        node,
        device_uuid,
        sampled_at,
        energy_j
    from device_sample
    where
        sampled_at >= (select max(built.ends_at) from built)
        and sampled_at < $until_at
        and instance_id is null
        and energy_j is not null
    union all
    select
        cluster,
        node,
        device_uuid,
        sampled_at,
        energy_j
    from device_sample
    where
        sampled_at >= (select min(hole.starts_at) from hole)
        and sampled_at < (select max(hole.ends_at) from hole)
        and not exists (
            select 1
            from built
            where
                epoch_us(built.starts_at) // 86400000000
                = epoch_us(device_sample.sampled_at) // 86400000000
        )
        and instance_id is null
        and energy_j is not null
)

select
    cluster,
    node,
    device_uuid,
    to_timestamp(epoch_us(sampled_at) // 3600000000 * 3600) as hour_at,
    min(sampled_at) as first_at,
    arg_min(energy_j, sampled_at) as first_j,
    max(sampled_at) as last_at,
    arg_max(energy_j, sampled_at) as last_j
from reading
group by cluster, node, device_uuid, epoch_us(sampled_at) // 3600000000
order by hour_at, cluster, node, device_uuid
