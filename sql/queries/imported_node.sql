-- purpose    the labels of a source's nodes, which say what was imported
-- grain      one row per distinct set of labels
-- parameters $source varchar, $cluster varchar
select distinct labels_json
from node
where source = $source and cluster = $cluster and labels_json is not null
order by labels_json
