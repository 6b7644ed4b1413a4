"""A cluster's past from kube-state-metrics: series become objects again, and objects become rows.

What kube-state-metrics says of an object is put back into the shape the API server has it in, so
that pods, owners and nodes of the past are told by the same code as those of the present.
"""
