-- purpose    what the built hours of the ledger could not place
-- grain      one row per built hour that begins in the period; of several builds the newest counts
-- parameters $from_at timestamptz inclusive, $until_at timestamptz exclusive
select
    starts_at,
    stray_device_count,
    indistinct_device_count,
    unplaced_allocation_count,
    unplaced_gpu_hours,
    has_holders
from ledger_build
where starts_at >= $from_at and starts_at < $until_at and grain = 'hour'
qualify row_number() over (partition by starts_at order by built_at desc, build_id desc) = 1
order by starts_at
