-- purpose    from when on holders are recorded: before, nobody knows who held a device
-- grain      one row per cluster that ever recorded a holder, whenever that was
-- parameters $from_at timestamptz inclusive, $until_at timestamptz exclusive
select
    cluster,
    min(started_at) as started_at
from allocation
where
    started_at < greatest($from_at::timestamptz, $until_at::timestamptz)
    and (attribution_source != 'none' or pod is not null)
group by cluster
order by cluster
