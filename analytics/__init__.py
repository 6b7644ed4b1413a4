"""CORE: pure functions from frames to frames (Polars).

No input or output, no clock, no environment: imports no room but the floor, and no library that
reaches outside. Every frame's grain, units and nulls are declared in a docstring.
"""
