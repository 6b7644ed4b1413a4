-- purpose    what the counters told first and last on each day whose energy is built
-- grain      one row per board and UTC day that lies in the period; of several builds the newest
-- parameters $from_at timestamptz inclusive, $until_at timestamptz exclusive
with newest as (
    select arg_max(build_id, (built_at, build_id)) as build_id
    from energy_build
    where starts_at >= $from_at and starts_at + interval '24 hours' <= $until_at
    group by starts_at
)

select
    energy_day.cluster,
    energy_day.node,
    energy_day.device_uuid,
    energy_day.first_at,
    energy_day.first_j,
    energy_day.last_at,
    energy_day.last_j
from energy_day
semi join newest on energy_day.build_id = newest.build_id
where energy_day.day_at >= $from_at and energy_day.day_at < $until_at
order by energy_day.first_at
