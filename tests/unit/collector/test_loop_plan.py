"""What the settings mean for one run of the collector."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from collector.collect import allow_open_files, plan_of
from collector.loop import LoopPlan
from collector.scrape import FetchLimits
from steward.ids import ClusterName
from steward.settings import CollectSettings, Settings

URLS = ("http://n1:9400/metrics",)


@pytest.mark.parametrize(
    ("timeout_s", "is_once", "deadline_s"),
    [
        pytest.param(9, False, 9, id="shorter than the interval"),
        pytest.param(10, False, 10, id="as long as the interval"),
        pytest.param(11, False, 10, id="longer: the interval counts"),
        pytest.param(11, True, 11, id="longer, but scraped once only"),
    ],
)
def test_no_deadline_is_longer_than_the_interval(
    timeout_s: float, *, is_once: bool, deadline_s: float
) -> None:
    chosen = CollectSettings(interval_s=10, timeout_s=timeout_s, body_limit_bytes=5_000)
    settings = Settings(data_dir=Path("unused"), cluster="c1", collect=chosen)
    assert plan_of(URLS, settings=settings, is_once=is_once) == LoopPlan(
        urls=URLS,
        cluster=ClusterName("c1"),
        interval_s=10,
        limits=FetchLimits(timeout_s=deadline_s, body_limit_bytes=5_000),
    )


@pytest.mark.parametrize(("wanted", "soft_after"), [(1_999, 2_000), (2_000, 2_000), (2_001, 2_001)])
def test_the_limit_on_open_files_is_raised_never_lowered(wanted: int, soft_after: int) -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert before[1] == resource.RLIM_INFINITY or before[1] > 2_001
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (2_000, before[1]))
        allow_open_files(wanted)
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (soft_after, before[1])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
