-- purpose    how much of each hour is stored, so that a build of the ledger notices late rows
-- grain      one row per hour of the period; holdings are counted in each hour that they reach into
-- parameters $from_at timestamptz inclusive, $until_at timestamptz exclusive; whole hours
with clock as (
    select unnest(generate_series(
        $from_at::timestamptz,
        $until_at::timestamptz - interval 1 hour,
        interval 1 hour
    )) as hour_at
),

reading as (
    select
        time_bucket(interval 1 hour, sampled_at) as hour_at,
        count(*) as reading_count
    from device_sample
    where sampled_at >= $from_at and sampled_at < $until_at
    group by time_bucket(interval 1 hour, sampled_at)
),

holding as (
    select
        started_at,
        max(ended_at) as ended_at
    from allocation
    where started_at < $until_at
    group by
        cluster,
        device_uuid,
        instance_id,
        replica,
        pod_uid,
        workload_uid,
        started_at
    having coalesce(max(ended_at), $until_at::timestamptz) > $from_at
),

held as (
    select
        clock.hour_at,
        count(*) as holding_count
    from clock
    inner join holding
        on
            clock.hour_at + interval 1 hour > holding.started_at
            and clock.hour_at < coalesce(holding.ended_at, $until_at::timestamptz)
    group by clock.hour_at
)

select
    clock.hour_at,
    coalesce(reading.reading_count, 0) as reading_count,
    coalesce(held.holding_count, 0) as holding_count
from clock
left join reading on clock.hour_at = reading.hour_at
left join held on clock.hour_at = held.hour_at
order by clock.hour_at
