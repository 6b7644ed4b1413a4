-- purpose    whether a batch is stored, and how large it was
-- grain      one row, or none where it is not stored
-- parameters $batch_id varchar
select row_count
from append_batch
where batch_id = $batch_id
order by row_count
