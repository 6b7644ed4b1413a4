-- purpose    no sample was taken after the last batch was stored
-- grain      one row
-- parameters none
select count(*) as violation_count
from device_sample
where device_sample.sampled_at > (select max(append_batch.stored_at) from append_batch)
