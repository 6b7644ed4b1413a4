"""EDGE IN: reads the world and writes rows.

Vendor names, units and sentinels end in ``collector.normalize``; beyond it there are base units and
nulls only. Imports ``sql`` and ``steward``; never ``enforcer``, ``dashboard`` or ``analytics``.
"""
