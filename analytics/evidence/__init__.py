"""What readings tell of each workload: signals of its devices, and how long it was seen idle.

Pure Polars. No verdict is spoken here: evidence is numbers, with what they leave unknown.
"""
