-- purpose    the energy counter of a device does not decrease, short of a restart to near zero
-- grain      one row; each step down to more than half of the previous reading counts
-- parameters none
with stepped as (
    select
        energy_j,
        lag(energy_j) over (
            partition by cluster, device_uuid, source order by sampled_at
        ) as previous_energy_j
    from device_sample
    where instance_id is null and energy_j is not null
)

select count(*) as violation_count
from stepped
where energy_j < previous_energy_j and energy_j > previous_energy_j / 2
