"""The classes of waiting, and which of them the words of schedulers stand for.

Reasons of ``QuotaReserved`` = False: Kueue, ``apis/kueue/v1beta2`` and KEP-10852; older versions
say only Pending (nothing fits) and Inadmissible (the queue cannot be used).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import polars as pl

QUOTA: Final = "quota"
ADMISSION: Final = "admission"
PLACEMENT: Final = "placement"
CAPACITY: Final = "capacity"
START_UP: Final = "start-up"
OTHER: Final = "other"
UNKNOWN: Final = "unknown"
CLASSES: Final = (QUOTA, ADMISSION, PLACEMENT, CAPACITY, START_UP, OTHER, UNKNOWN)
"""Each second between creation and start is in exactly one, in the order they are passed."""
SCHEDULING: Final = "scheduling"
"""Waits for GPUs: divided into placement and capacity by what was free meanwhile."""
CAUSE: Final = pl.Enum((*CLASSES, SCHEDULING))
"""The type of a cause: a year has millions."""

QUOTA_REASONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "WaitingForQuota": QUOTA,
        "ExceedsMaxQuota": QUOTA,
        "WaitingForPreemptedWorkloads": QUOTA,
        "Pending": QUOTA,
        "TopologyPlacementFailed": PLACEMENT,
        "NoMatchingFlavor": OTHER,
        "Misconfigured": OTHER,
        "Inadmissible": OTHER,
        "Suspended": OTHER,
        "PendingEvaluation": OTHER,
        "WaitingForPodsReady": OTHER,
        "OnHold": OTHER,
    }
)
"""What a queue says; any other word is told as it is, in the class other."""
POD_REASONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "Unschedulable": SCHEDULING,
        "FailedScheduling": SCHEDULING,
        "NotEnoughResources": SCHEDULING,
        "PodGroupNotReady": SCHEDULING,
        "SchedulingGated": OTHER,
        "FailedCreate": OTHER,
        "FailedPrepareDynamicResources": OTHER,
    }
)
"""What schedulers and controllers say of pods and gangs."""
_TOPOLOGY: Final = "topology"
_SHORT_OF_QUOTA: Final = "insufficient"
_OVER_RESOURCE_QUOTA: Final = "exceeded quota"


def queue_cause() -> pl.Expr:
    """Return the class of what a queue says, from ``reason`` and ``message``.

    Older versions of Kueue say Pending whatever is missing: there the message decides.
    """
    message = pl.col("message").fill_null("").str.to_lowercase()
    is_pending = pl.col("reason") == "Pending"
    names_flavors = message.str.contains("flavor", literal=True)
    is_short = message.str.contains(_SHORT_OF_QUOTA, literal=True)
    return (
        pl.when(is_pending & message.str.contains(_TOPOLOGY, literal=True))
        .then(pl.lit(PLACEMENT))
        .when(is_pending & names_flavors & ~is_short)
        .then(pl.lit(OTHER))
        .otherwise(pl.col("reason").replace_strict(QUOTA_REASONS, default=OTHER))
    )


def pod_cause() -> pl.Expr:
    """Return the class of what is said of pods: those refused for a ResourceQuota lack quota."""
    message = pl.col("message").fill_null("").str.to_lowercase()
    is_refused = pl.col("reason") == "FailedCreate"
    return (
        pl.when(is_refused & message.str.contains(_OVER_RESOURCE_QUOTA, literal=True))
        .then(pl.lit(QUOTA))
        .otherwise(pl.col("reason").replace_strict(POD_REASONS, default=OTHER))
    )
