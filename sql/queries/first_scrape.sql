-- purpose    from when on a cluster was scraped in a period
-- grain      one row; null where it was not
-- parameters $cluster varchar, $from_at timestamptz inclusive, $until_at timestamptz exclusive
select min(scraped_at) as first_at
from scrape
where cluster = $cluster and scraped_at >= $from_at and scraped_at < $until_at
order by first_at
