"""FLOOR: the words every room uses. Standard library only; imports no other room.

Units, ids, periods, the clock, ports between rooms, the error tree, settings, logs and the
front door ``steward``. Nothing here reads a GPU, a database or a cluster.
"""
