-- purpose    a device does not use more memory than it has
-- grain      one row
-- parameters none
select count(*) as violation_count
from device_sample
where memory_used_bytes > memory_total_bytes or memory_used_bytes < 0
