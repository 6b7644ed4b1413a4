-- purpose    device events of the period, and losses still open when it began
-- grain      one row per event; before the period only the last loss or return of each device
-- parameters $from_at timestamptz inclusive, $until_at timestamptz exclusive
select
    occurred_at,
    cluster,
    node,
    device_uuid,
    kind,
    code
from device_event
where occurred_at < $until_at and (occurred_at >= $from_at or kind in ('lost', 'returned'))
qualify
    occurred_at >= $from_at
    or row_number() over (
        partition by cluster, device_uuid, occurred_at < $from_at
        order by occurred_at desc
    ) = 1
order by occurred_at, device_uuid, kind, code
