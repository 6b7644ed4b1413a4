-- purpose    the clusters of which anything is known
-- grain      one row per cluster
-- parameters none
select cluster from node
union
select cluster from device
union
select cluster from allocation
union
select cluster from workload
order by cluster
