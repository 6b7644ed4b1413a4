"""One target owns a device: the first that shows it, until it goes away or another tells more."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.normalize import DeviceClaims, NormalizeState
from collector.normalize.dialects import AGENT, DCGM, HAMI, NVIDIA_SMI
from tests.support.exposition_texts import NOON, Exporter, cells, events, line

FRESH = timedelta(minutes=2)


def foreign(
    claims: DeviceClaims, target: str, *, after: timedelta = timedelta(0), precedence: int = 3
) -> bool:
    """Tell whether the device belongs to another target now."""
    return "GPU-a" in claims.foreign(
        ["GPU-a"], target=target, precedence=precedence, at=NOON + after
    )


@pytest.mark.parametrize(
    ("silent_for", "is_foreign"),
    [
        pytest.param(FRESH - timedelta(seconds=1), True, id="just within"),
        pytest.param(FRESH, True, id="exactly at"),
        pytest.param(FRESH + timedelta(seconds=1), False, id="just past"),
    ],
)
def test_claim_of_a_silent_target_ends(silent_for: timedelta, is_foreign: bool) -> None:
    claims = DeviceClaims()
    assert not foreign(claims, "a")
    assert foreign(claims, "b", after=silent_for) is is_foreign
    assert foreign(claims, "a", after=silent_for) is not is_foreign


@pytest.mark.parametrize(
    ("first", "second", "owner"),
    [
        (DCGM.precedence, DCGM.precedence, "a"),
        (DCGM.precedence, AGENT.precedence, "b"),
        (HAMI.precedence, DCGM.precedence, "b"),
        (DCGM.precedence, NVIDIA_SMI.precedence, "a"),
    ],
)
def test_exporter_that_tells_more_takes_over_at_once(first: int, second: int, owner: str) -> None:
    claims, told = DeviceClaims(), dict[str, bool]()
    for number in range(3):
        after = timedelta(seconds=15 * number)
        told = {
            "a": foreign(claims, "a", after=after, precedence=first),
            "b": foreign(claims, "b", after=after, precedence=second),
        }
    assert told == {"a": owner != "a", "b": owner != "b"}


def test_claims_of_a_target_that_is_not_scraped_any_more_are_released() -> None:
    claims = DeviceClaims()
    foreign(claims, "a")
    assert foreign(claims, "b")
    assert claims.rivals() == {("a", "b"): 1}
    claims.release("a")
    assert claims.rivals() == {}
    assert not foreign(claims, "b")


@given(shown=st.lists(st.sampled_from("abc"), min_size=1, max_size=40))
def test_one_target_at_a_time_keeps_a_device(shown: list[str]) -> None:
    claims, owners = DeviceClaims(), []
    for number, target in enumerate(shown):
        if not foreign(claims, target, after=timedelta(seconds=number)):
            owners.append(target)
    assert set(owners) == {shown[0]}


def test_holders_and_processes_of_a_foreign_device_are_kept() -> None:
    claims = DeviceClaims()
    dcgm = Exporter("http://n1:9400/metrics", state=NormalizeState(claims=claims))
    hami = Exporter("http://n1:9394/metrics", state=NormalizeState(claims=claims))
    names = {"device_uuid": "GPU-a", "namespace": "team", "pod": "p", "container": "main"}
    dcgm.scrape(line("DCGM_FI_DEV_GPU_UTIL", 5))
    scrape = hami.scrape(
        line("hami_vgpu_memory_used_bytes", 5, names),
        line("HostCoreUtilization", 9, {"deviceuuid": "GPU-a"}),
    )
    assert scrape.samples.num_rows == 0
    assert [one.pod for one in scrape.holdings] == ["p"]


def test_better_exporter_takes_the_device_without_a_loss() -> None:
    claims = DeviceClaims()
    hami = Exporter("http://n1:9394/metrics", state=NormalizeState(claims=claims))
    dcgm = Exporter("http://n1:9400/metrics", state=NormalizeState(claims=claims))
    host = line("HostCoreUtilization", 9, {"deviceuuid": "GPU-a"})
    assert cells(hami.scrape(host), "busy_ratio") == [(0.09,)]
    assert cells(dcgm.scrape(line("DCGM_FI_DEV_GPU_UTIL", 5)), "busy_ratio") == [(0.05,)]
    for _ in range(3):
        scrape = hami.scrape(host)
        assert (scrape.samples.num_rows, events(scrape)) == (0, [])
