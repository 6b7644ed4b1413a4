"""Arrow schemas of the rows that collectors hand to the warehouse: one per table, same columns.

The warehouse's migrations are the contract; this is its shape on the collector's side, so that
every source builds whole columns with the right types and a forgotten column is null, not wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa

from collector.tables.fitting import fitted
from collector.tables.telemetry import (
    DEVICE,
    DEVICE_EVENT,
    DEVICE_PROCESS,
    DEVICE_SAMPLE,
    NODE,
    SCRAPE,
)
from collector.tables.workloads import (
    ALLOCATION,
    CONDITION_CHANGE,
    DEVICE_CLAIM,
    KUBERNETES_EVENT,
    POD,
    PRIORITY_CLASS,
    QUOTA_SNAPSHOT,
    WORKLOAD,
    WORKLOAD_TRANSITION,
)

__all__ = [
    "ALLOCATION",
    "CONDITION_CHANGE",
    "DEVICE",
    "DEVICE_CLAIM",
    "DEVICE_EVENT",
    "DEVICE_PROCESS",
    "DEVICE_SAMPLE",
    "KUBERNETES_EVENT",
    "NODE",
    "POD",
    "PRIORITY_CLASS",
    "QUOTA_SNAPSHOT",
    "SCHEMAS",
    "SCRAPE",
    "WORKLOAD",
    "WORKLOAD_TRANSITION",
    "rows_table",
]

SCHEMAS: Final[Mapping[str, pa.Schema]] = MappingProxyType(
    {
        "node": NODE,
        "device": DEVICE,
        "device_sample": DEVICE_SAMPLE,
        "device_event": DEVICE_EVENT,
        "scrape": SCRAPE,
        "allocation": ALLOCATION,
        "workload": WORKLOAD,
        "workload_transition": WORKLOAD_TRANSITION,
        "kubernetes_event": KUBERNETES_EVENT,
        "quota_snapshot": QUOTA_SNAPSHOT,
        "pod": POD,
        "condition_change": CONDITION_CHANGE,
        "priority_class": PRIORITY_CLASS,
        "device_claim": DEVICE_CLAIM,
        "device_process": DEVICE_PROCESS,
    }
)
"""Every table a collector may append to, by name."""


def rows_table(name: str, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Return rows given as mappings as a table of this name's schema; absent keys are null.

    What a strange source wrote costs the value, or the row where it must not be null; it is logged.
    """
    return fitted(list(rows), schema=SCHEMAS[name], name=name)
