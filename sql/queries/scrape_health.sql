-- purpose    how well each target could be read in the period
-- grain      one row per cluster and target
-- parameters $from_at timestamptz inclusive, $until_at timestamptz exclusive
select
    cluster,
    target,
    count(*) as scrape_count,
    count(*) filter (where not is_ok) as failed_count,
    sum(sample_count)::bigint as sample_count,
    sum(dropped_line_count)::bigint as dropped_line_count,
    sum(duplicate_count)::bigint as duplicate_count,
    sum(unknown_metric_count)::bigint as unknown_metric_count,
    max(scraped_at) as last_scraped_at
from scrape
where scraped_at >= $from_at and scraped_at < $until_at
group by cluster, target
order by cluster, target
