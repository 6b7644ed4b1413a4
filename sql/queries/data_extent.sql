-- purpose    the first and the last instant of which anything is known
-- grain      one row
-- parameters none
with extent as (
    select
        min(sampled_at) as first_at,
        max(sampled_at) as last_at
    from device_sample
    union all
    select
        min(occurred_at) as first_at,
        max(occurred_at) as last_at
    from workload_transition
    union all
    select
        min(observed_at) as first_at,
        max(observed_at) as last_at
    from node
    union all
    select
        min(observed_at) as first_at,
        max(observed_at) as last_at
    from device
)

select
    min(first_at) as first_at,
    max(last_at) as last_at
from extent
order by first_at
