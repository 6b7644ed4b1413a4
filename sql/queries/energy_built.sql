-- purpose    of which days the energy is built: of several builds the newest counts
-- grain      one row per UTC day that begins in the period
-- parameters $from_at timestamptz inclusive, $until_at timestamptz exclusive
select
    starts_at,
    arg_max(build_id, (built_at, build_id)) as build_id,
    max(built_at) as built_at
from energy_build
where starts_at >= $from_at and starts_at < $until_at
group by starts_at
order by starts_at
