-- purpose  whether a node is still part of its cluster, so that its GPUs leave capacity with it
-- law      false: the node was removed; null: told before this column, or by a source that never
--          removes nodes

alter table node add column is_present boolean;
