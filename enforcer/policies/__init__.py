"""Pure decisions: from a frozen snapshot and a ``now`` to a verdict for every workload."""
