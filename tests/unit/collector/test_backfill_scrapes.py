"""Samples of a span become the scrapes that brought them."""

from __future__ import annotations

import random

import pytest

from collector.backfill.answers import ActiveTarget, RawSeries
from collector.backfill.scrapes import WAITING_LIMIT_MS, Assembler, PastScrape
from collector.backfill.series_labels import TargetKey, likely_url, scrape_urls
from collector.backfill.telemetry import TWIN_FOR_MS, PastTelemetry

TARGET = {"job": "dcgm", "instance": "n1:9400"}
KEY = TargetKey("dcgm", "n1:9400")
GPU = {"gpu": "0", "UUID": "GPU-a"}


def series(name: str, *at: float, value: object = 1, **labels: object) -> RawSeries:
    """Return a series of one target with a sample at each of these seconds."""
    metric = {"__name__": name, **TARGET, **{key: str(text) for key, text in labels.items()}}
    return RawSeries(metric=metric, values=[(second, str(value)) for second in at])


def take(
    assembler: Assembler, gpu: list[RawSeries], health: list[RawSeries], *, until_s: float
) -> list[PastScrape]:
    """Return the scrapes of a span that ends there."""
    return assembler.take(gpu, health, until_ms=round(until_s * 1_000))


def seen(scrapes: list[PastScrape]) -> list[tuple[int, list[tuple[str, float, int | None]]]]:
    """Return each scrape's time and what it said."""
    return [
        (scrape.at_ms, [(name, value, own) for name, _, value, own in scrape.samples])
        for scrape in scrapes
    ]


def test_samples_of_one_time_are_one_scrape() -> None:
    gpu = [series("power", 10, 25, value=100, **GPU), series("busy", 10, 25, value=7, **GPU)]
    scrapes = take(Assembler(), gpu, [series("up", 10, 25)], until_s=30)
    said = [("busy", 7.0, None), ("power", 100.0, None)]
    assert seen(scrapes) == [(10_000, said), (25_000, said)]
    assert scrapes[0].samples[0][1] is scrapes[1].samples[1][1]
    assert scrapes[0].samples[0][1].pairs == {**TARGET, **GPU}


def test_the_order_of_series_does_not_matter() -> None:
    gpu = [series(name, 10, 25, **GPU, pod=pod) for name in "abc" for pod in ("x", "y")]
    expected = seen(take(Assembler(), gpu, [series("up", 10, 25)], until_s=30))
    for seed in range(5):
        shuffled = gpu.copy()
        random.Random(seed).shuffle(shuffled)  # noqa: S311 - an order, no secret
        assert seen(take(Assembler(), shuffled, [series("up", 10, 25)], until_s=30)) == expected


def test_a_failed_scrape_is_known_by_its_up() -> None:
    health = [series("up", 10, value=0), series("scrape_duration_seconds", 10, value=2.5)]
    (scrape,) = take(Assembler(), [], health, until_s=30)
    assert not scrape.is_ok
    assert scrape.health == {"up": 0.0, "scrape_duration_seconds": 2.5}


def test_without_up_each_time_is_a_scrape() -> None:
    (first, second) = take(Assembler(), [series("busy", 10, 25, **GPU)], [], until_s=30)
    assert (first.at_ms, second.at_ms) == (10_000, 25_000)
    assert first.is_ok
    assert first.health == {}


@pytest.mark.parametrize(
    ("own_s", "brought_at_s"),
    [
        pytest.param(24.999, 25, id="just before a scrape"),
        pytest.param(25, 25, id="at a scrape it is the scrape's own"),
        pytest.param(25.001, 40, id="just after: the next one"),
    ],
)
def test_a_sample_with_its_own_time_came_with_the_next_scrape(
    own_s: float, brought_at_s: float
) -> None:
    scrapes = take(
        Assembler(), [series("busy", own_s, **GPU)], [series("up", 10, 25, 40)], until_s=60
    )
    own_ms = None if own_s == brought_at_s else round(own_s * 1_000)
    assert [each for each in seen(scrapes) if each[1]] == [
        (brought_at_s * 1_000, [("busy", 1.0, own_ms)])
    ]


def test_a_sample_waits_for_a_scrape_of_the_next_span() -> None:
    assembler = Assembler()
    early = take(assembler, [series("busy", 28, **GPU)], [series("up", 25)], until_s=30)
    assert seen(early) == [(25_000, [])]
    late = take(assembler, [], [series("up", 40)], until_s=60)
    assert seen(late) == [(40_000, [("busy", 1.0, 28_000)])]


@pytest.mark.parametrize(("past_ms", "is_given_up"), [(-1, False), (0, False), (1, True)])
def test_a_sample_that_waited_too_long_is_taken_by_itself(
    past_ms: int, *, is_given_up: bool
) -> None:
    assembler = Assembler()
    take(assembler, [series("busy", 28, **GPU)], [series("up", 25)], until_s=30)
    until_s = (28_000 + WAITING_LIMIT_MS + past_ms) / 1_000
    scrapes = take(assembler, [], [], until_s=until_s)
    assert seen(scrapes) == ([(28_000, [("busy", 1.0, 28_000)])] if is_given_up else [])


def test_names_that_a_server_moved_win() -> None:
    moved = {"exported_job": "dcgm", "exported_instance": "n7:9400"}
    metric = {"__name__": "busy", "job": "federate", "instance": "prom:9090", **moved, **GPU}
    (scrape,) = take(Assembler(), [RawSeries(metric=metric, values=[(10, "1")])], [], until_s=30)
    assert scrape.target == TargetKey("dcgm", "n7:9400")
    assert scrape.samples[0][1].pairs["instance"] == "n7:9400"


def test_the_exporters_own_pod_is_no_holder() -> None:
    own = {"pod": "exp-1", "namespace": "gpu", "container": "exp"}
    held = {"exported_pod": "train", "exported_namespace": "lab"}
    gpu = [
        series("busy", 10, **GPU, **own),
        series("busy", 10, gpu="1", UUID="GPU-b", **own, **held),
        series("busy", 10, gpu="2", UUID="GPU-c", pod="other", namespace="gpu", container="exp"),
    ]
    (scrape,) = take(Assembler(), gpu, [series("up", 10, **own)], until_s=30)
    pods = {labels.pairs["UUID"]: labels.pairs.get("pod") for _, labels, _, _ in scrape.samples}
    assert pods == {"GPU-a": None, "GPU-b": None, "GPU-c": "other"}
    (moved,) = (labels for _, labels, _, _ in scrape.samples if labels.pairs["UUID"] == "GPU-b")
    assert moved.pairs["exported_pod"] == "train"


@pytest.mark.parametrize(
    ("target", "url"),
    [
        (TargetKey("dcgm", "n1:9400"), "http://n1:9400/metrics"),
        (TargetKey("dcgm", "https://n1/x"), "https://n1/x"),
        (TargetKey("dcgm", "not an address"), "not an address"),
        (TargetKey("dcgm", ""), "dcgm"),
        (TargetKey("", ""), "prometheus"),
    ],
)
def test_a_target_of_the_past_has_a_likely_address(target: TargetKey, url: str) -> None:
    assert likely_url(target) == url


def test_a_target_that_is_still_scraped_tells_its_address() -> None:
    known = scrape_urls(
        [
            ActiveTarget(labels=TARGET, scrape_url="http://n1:9400/gpu/metrics"),
            ActiveTarget(labels={"job": "x", "instance": "y"}, scrape_url="http://a:b@c/metrics"),
        ]
    )
    assert known == {KEY: "http://n1:9400/gpu/metrics"}


@pytest.mark.parametrize(("later_ms", "is_twin"), [(TWIN_FOR_MS, True), (TWIN_FOR_MS + 1, False)])
def test_an_address_scraped_by_two_jobs_counts_once(later_ms: int, *, is_twin: bool) -> None:
    other = TargetKey("copy", "n1:9400")
    url = "http://n1:9400/metrics"
    past = PastTelemetry(cluster="c", urls={KEY: url, other: url})

    def counts(target: TargetKey, at_ms: int) -> bool:
        scrape = PastScrape(target=target, at_ms=at_ms, health={"up": 0.0})
        return past.read(scrape, target_labels={}).outcome is not None

    assert counts(KEY, 1_000)
    assert counts(other, 1_000 + later_ms) != is_twin
