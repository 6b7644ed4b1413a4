"""From decisions to a plan: who is acted on in one round, for whom, and why the others are not.

Pure: sees decisions, a snapshot, policies and a ``now``, nothing else.
"""

from enforcer.planning.plan import plan_from

__all__ = ["plan_from"]
