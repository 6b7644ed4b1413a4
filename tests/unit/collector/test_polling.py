"""What a scrape says of who holds what, as polls."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from collector.allocation.polls import Poll
from collector.holdings import HoldingSource
from collector.normalize import NormalizeState
from collector.polling import Polling
from collector.reading import Reading, Target, reading_of
from collector.scrape import Page, Reason, Refusal
from steward.ids import ClusterName

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
STEP = timedelta(seconds=15)
HEAD = ("# HELP DCGM_FI_DEV_GPU_UTIL busy", "# TYPE DCGM_FI_DEV_GPU_UTIL gauge")
URL = "http://n1:9400/metrics"


def line(gpu: int, busy_percent: float, pod: str = "") -> str:
    held = f'namespace="a",pod="{pod}",container="{"main" if pod else ""}"'
    return (
        f'DCGM_FI_DEV_GPU_UTIL{{gpu="{gpu}",UUID="GPU-a{gpu}",Hostname="n1",{held}}} {busy_percent}'
    )


class Scraped:
    """One target, scraped again and again."""

    def __init__(self) -> None:
        """Nothing was scraped yet."""
        self.target = Target(url=URL, cluster=ClusterName("c"), state=NormalizeState())
        self.polling = Polling()
        self.at = NOON

    def polls(self, *lines: str) -> list[Poll]:
        text = "\n".join((*HEAD, *lines, ""))
        return self.polling.polls(self.reading(Page(body=text.encode())))

    def reading(self, answer: Page | Refusal) -> Reading:
        self.at += STEP
        return reading_of(self.target, answer, scraped_at=self.at, duration_s=0.1)


def test_one_poll_of_the_node_with_holders_and_busy_devices() -> None:
    (poll,) = Scraped().polls(line(0, 97, "x"), line(1, 0))
    assert (poll.node, poll.at, poll.source) == ("n1", NOON + STEP, HoldingSource.EXPORTER_LABEL)
    assert [(one.device_uuid, one.pod) for one in poll.holdings] == [("GPU-a0", "x")]
    assert poll.devices == {("GPU-a0", None), ("GPU-a1", None)}
    assert poll.busy == {("GPU-a0", None)}
    assert poll.uses is None


@pytest.mark.parametrize(
    ("busy_percent", "is_busy"), [(0, False), (0.9, False), (1, True), (1.1, True)]
)
def test_busy_from_one_hundredth_of_the_time(busy_percent: float, is_busy: bool) -> None:
    (poll,) = Scraped().polls(line(0, busy_percent))
    assert poll.busy == ({("GPU-a0", None)} if is_busy else frozenset())


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(("node_load1 1",), id="nothing of GPUs"),
        pytest.param(('DCGM_FI_DEV_GPU_UTIL{pod="x"} 5',), id="a GPU without a name"),
        pytest.param(('DCGM_FI_DEV_GPU_UTIL{UUID="GPU-a0",Hostname="n1"} -5',), id="bad numbers"),
    ],
)
def test_an_exporter_without_devices_leaves_the_others_alone(lines: tuple[str, ...]) -> None:
    scraped = Scraped()
    for _ in range(6):
        assert all(poll.busy in {None, frozenset()} for poll in scraped.polls(*lines))
    assert len(scraped.polls(line(0, 97, "x"))) == 1


def test_a_device_whose_activity_is_not_told_is_not_called_busy() -> None:
    (poll,) = Scraped().polls(
        'DCGM_FI_DEV_POWER_USAGE{gpu="0",UUID="GPU-a0",Hostname="n1"} 300',
        line(1, 50),
    )
    assert poll.busy == {("GPU-a1", None)}


def test_texts_that_differ_in_numbers_only_hand_on_the_same_objects() -> None:
    scraped = Scraped()
    lines = [[line(0, busy, "x"), line(1, 100 - busy)] for busy in (10, 20, 30, 0)]
    scraped.polls(*lines[0])
    (second,), (third,), (last,) = (scraped.polls(*one) for one in lines[1:])
    assert third.devices is second.devices
    assert third.holdings is second.holdings
    assert third.busy == {("GPU-a0", None), ("GPU-a1", None)}
    assert last.busy == {("GPU-a1", None)}


def test_a_source_that_spoke_once_is_asked_when_it_says_nothing() -> None:
    scraped = Scraped()
    scraped.polls(line(0, 1, "x"))
    (poll,) = scraped.polls(line(0, 1))
    assert (poll.source, poll.holdings) == (HoldingSource.EXPORTER_LABEL, ())


def test_a_scrape_that_failed_says_nothing() -> None:
    scraped = Scraped()
    refusal = Refusal(reason=Reason.TIMEOUT, message="m", hint="h")
    assert scraped.polling.polls(scraped.reading(refusal)) == []


def test_a_target_that_is_gone_is_forgotten() -> None:
    scraped = Scraped()
    scraped.polls(line(0, 1, "x"))
    scraped.polling.keep_only([])
    (poll,) = scraped.polls(line(0, 1))
    assert poll.holdings == ()


AGENT = ("# TYPE steward_gpu_busy_ratio gauge", "# TYPE steward_agent_pod_resources_up gauge")
AGENT_LABELS = 'uuid="GPU-a0",gpu="0",node="n1",instance_id=""'


def agent_lines(*, up: int, pod: str = "") -> list[str]:
    lines = [*AGENT, f"steward_gpu_busy_ratio{{{AGENT_LABELS}}} 0.5"]
    lines.append(f'steward_agent_pod_resources_up{{node="n1"}} {up}')
    if pod:
        held = f'{AGENT_LABELS},replica="",namespace="a",pod="{pod}",container="main"'
        lines.append(f'steward_gpu_allocation_info{{{held},source="podresources"}} 1')
    return lines


def test_an_agent_whose_kubelet_answers_is_believed_when_nobody_holds_anything() -> None:
    (poll,) = Scraped().polls(*agent_lines(up=1))
    assert (poll.source, poll.holdings) == (HoldingSource.PODRESOURCES, ())


def test_an_agent_whose_kubelet_is_silent_releases_nobody() -> None:
    scraped = Scraped()
    (before,) = scraped.polls(*agent_lines(up=1, pod="x"))
    assert [one.pod for one in before.holdings] == ["x"]
    assert scraped.polls(*agent_lines(up=0)) == []
    (after,) = scraped.polls(*agent_lines(up=1))
    assert after.holdings == ()


def test_what_processes_use_is_counted_once_where_two_sources_speak() -> None:
    labels = f'{AGENT_LABELS},pid="7",process="python",pod_uid="u",container_id="c"'
    lines = [*agent_lines(up=1), f"steward_gpu_process_sm_ratio{{{labels}}} 0.25", line(1, 50, "y")]
    polls = Scraped().polls(*lines)
    assert len({poll.source for poll in polls}) == 2
    assert [poll.uses is None for poll in polls] == [False, True]
