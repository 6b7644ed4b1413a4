"""EDGE OUT: measures and policy become reasoned decisions, and decisions recorded actions.

``policies`` sees a frozen snapshot and a ``now``, nothing else; dry run is a gateway, not a flag.
UNKNOWN never acts. Imports ``sql``, ``analytics`` and the floor; never ``collector`` or
``dashboard``.
"""
