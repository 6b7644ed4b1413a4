"""What the collector's own metrics say of a watched cluster."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from collector.cluster_metrics import cluster_metrics
from collector.sources.kubernetes.api_error import ApiFault
from collector.sources.kubernetes.health import ResourceHealth

AT = datetime(1970, 1, 2, tzinfo=UTC)
DOCUMENT = Path(__file__).parents[3] / "docs" / "kubernetes.md"


def samples(*health: ResourceHealth) -> dict[str, float]:
    """Return the values by name and labels, without the common beginning."""
    return {
        " ".join((sample.name.removeprefix("steward_collect_kind_"), *sample.labels.values())): (
            sample.value
        )
        for family in cluster_metrics(health)
        for sample in family.samples
    }


def test_kind_that_is_read_tells_how_far_it_is() -> None:
    pods = ResourceHealth(
        name="pods",
        is_optional=False,
        is_served=True,
        is_synced=True,
        object_count=7,
        list_count=1,
        watch_count=3,
        undecodable_count=2,
        error_count=4,
        last_list_at=AT,
        last_event_at=AT,
    )
    assert samples(pods) == {
        "synced pods": 1,
        "objects pods": 7,
        "lists_total pods": 1,
        "watches_total pods": 3,
        "undecodable_total pods": 2,
        "errors_total pods": 4,
        "last_list_timestamp_seconds pods": 86_400,
        "last_event_timestamp_seconds pods": 86_400,
    }


def test_kind_that_was_never_heard_of_has_no_times() -> None:
    found = samples(ResourceHealth(name="pods", is_optional=False))
    assert found == {
        "synced pods": 0,
        "objects pods": 0,
        "lists_total pods": 0,
        "watches_total pods": 0,
        "undecodable_total pods": 0,
        "errors_total pods": 0,
    }


@pytest.mark.parametrize("is_served", [None, True])
def test_what_is_wrong_now_is_told_by_its_word(*, is_served: bool | None) -> None:
    nodes = ResourceHealth(
        name="nodes", is_optional=False, is_served=is_served, fault=ApiFault.FORBIDDEN
    )
    assert samples(nodes)["fault nodes forbidden"] == 1


def test_kind_that_the_server_does_not_have_is_left_out() -> None:
    absent = ResourceHealth(name="jobsets.jobset.x-k8s.io", is_optional=True, is_served=False)
    assert samples(absent) == {}


def test_every_metric_is_documented() -> None:
    document = DOCUMENT.read_text(encoding="utf-8")
    names = [family.name for family in cluster_metrics(())]
    assert [name for name in names if f"`{name}" not in document] == []
