"""Identifiers that must not be mixed up: each is a string with a name of its own."""

from __future__ import annotations

from typing import NewType
from uuid import uuid4

ClusterName = NewType("ClusterName", str)
NodeName = NewType("NodeName", str)
DeviceUuid = NewType("DeviceUuid", str)
"""The physical GPU: its UUID, or ``node/index`` where the exporter offers none."""
WorkloadUid = NewType("WorkloadUid", str)
TenantId = NewType("TenantId", str)
BatchId = NewType("BatchId", str)
"""Names one append; the same id twice is the same batch, stored once."""


def new_batch_id() -> BatchId:
    """Return an id that no other batch has."""
    return BatchId(uuid4().hex)
