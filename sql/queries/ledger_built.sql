-- purpose    which hours or days of the ledger are built: of several builds the newest counts
-- grain      one row per hour or day that begins in the period
-- parameters $from_at timestamptz inclusive, $until_at timestamptz exclusive, $grain varchar (hour
--            or day)
select
    starts_at,
    arg_max(build_id, (built_at, build_id)) as build_id,
    max(built_at) as built_at,
    count(*) as build_count
from ledger_build
where starts_at >= $from_at and starts_at < $until_at and grain = $grain
group by starts_at
order by starts_at
