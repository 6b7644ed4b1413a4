"""NVIDIA's management library, read through ``pynvml``: the only place that imports it.

``node`` reads all GPUs of a machine, each in its own thread and with a deadline; ``records`` holds
what comes out. Vendor units, sentinels and error codes end here.
"""
