-- purpose    energy between two readings of one day, of the days whose energy is built
-- grain      one row per cluster and hour of a UTC day that lies in the period, in which two
--            readings of a board lie or begin; of several builds the newest
-- parameters $from_at timestamptz inclusive, $until_at timestamptz exclusive
with newest as (
    select arg_max(build_id, (built_at, build_id)) as build_id
    from energy_build
    where starts_at >= $from_at and starts_at + interval '24 hours' <= $until_at
    group by starts_at
)

select
    energy_hour.cluster,
    energy_hour.hour_at,
    energy_hour.used_j,
    energy_hour.known_s,
    energy_hour.told_s
from energy_hour
semi join newest on energy_hour.build_id = newest.build_id
where energy_hour.hour_at >= $from_at and energy_hour.hour_at < $until_at
order by energy_hour.cluster, energy_hour.hour_at
