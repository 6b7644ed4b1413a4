"""Where a workload tells its newest checkpoint."""

from __future__ import annotations

from datetime import datetime

import pytest

from enforcer.enrich import enriched
from enforcer.gateway.memory import MemoryGateway
from enforcer.planning.stakes import CHECKPOINT_ANNOTATION, checkpoint_at
from tests.support.enforcer_plan import HOUR, NOON, due, holder, snapshot


@pytest.mark.parametrize(
    ("text", "at"),
    [
        pytest.param("2026-06-10T12:00:00Z", NOON, id="UTC"),
        pytest.param("2026-06-10T20:00:00+08:00", NOON, id="another zone"),
        pytest.param("2026-06-10T12:00:00", None, id="no zone"),
        pytest.param("yesterday", None, id="no instant"),
        pytest.param("", None, id="empty"),
        pytest.param(None, None, id="not told"),
    ],
)
def test_instant(text: str | None, at: datetime | None) -> None:
    annotations = {} if text is None else {CHECKPOINT_ANNOTATION: text}
    assert checkpoint_at(annotations) == at


def test_it_is_read_from_the_live_object() -> None:
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": "a",
            "namespace": "team",
            "uid": "a",
            "annotations": {CHECKPOINT_ANNOTATION: (NOON - HOUR).isoformat()},
        },
        "spec": {},
    }
    one = holder("a")
    (read,) = enriched(snapshot(one), (due(one),), MemoryGateway([job])).workloads
    assert read.checkpoint_at == NOON - HOUR
