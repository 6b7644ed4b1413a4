"""Which kinds of objects are jobs, services, schedules: for all parts that tell them apart."""

from __future__ import annotations

from typing import Final

from collector.sources.kubernetes.resources import CUSTOM_MAKERS, JOBS, OWNERS, RESOURCES

NO_WORKLOADS: Final = frozenset({"Node"})
"""Kinds that own static pods and are no workloads."""
SCHEDULES: Final = frozenset(
    {"CronJob", "CronWorkflow", "ScheduledWorkflow", "ScheduledSparkApplication"}
)
"""Kinds that start a new run each time; what they make next is one run."""
SERVICE_KINDS: Final = frozenset(
    {"Notebook", "RayCluster", "RayService", "InferenceService", "LeaderWorkerSet"}
)
"""Kinds of other projects that go on until somebody ends them."""
POD_GROUPS: Final = "pod groups"
"""Stands for a kind: plain pods that Kueue admits together have no object before all exist."""
JOB_NAMES: Final = frozenset(
    each.name for each in (JOBS, *CUSTOM_MAKERS) if each.kind not in SERVICE_KINDS
)
"""Names of the followed kinds that end by themselves, and say so."""
OWNER_NAMES: Final = frozenset(each.name for each in OWNERS)
FOLLOWED_NAMES: Final = frozenset(each.name for each in RESOURCES)
