"""Which container was given which device, as the kubelet says: its PodResources socket, v1.

The only place that speaks gRPC. It is spoken by ``unary`` and read by ``wire`` and ``messages``
after ``api.proto``: the usual libraries would double a node agent's memory for two questions.
"""
