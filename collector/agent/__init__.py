"""The node agent: reads this machine's GPUs and who holds them, and serves it as Prometheus text.

It stays small: standard library, ``pynvml`` and, where there is a kubelet, ``h2``. No Arrow, no
frames, no HTTP client or server library.
"""
