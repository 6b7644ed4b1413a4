-- purpose    an allocation does not end before it starts
-- grain      one row
-- parameters none
select count(*) as violation_count
from allocation
where ended_at < started_at
