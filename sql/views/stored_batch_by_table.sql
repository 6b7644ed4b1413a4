-- purpose  what was appended to each table
-- grain    one row per table that was ever appended to
create or replace view stored_batch_by_table as
select
    table_name,
    count(*) as batch_count,
    sum(row_count)::bigint as row_count,
    min(stored_at) as first_stored_at,
    max(stored_at) as last_stored_at
from append_batch
group by table_name;
