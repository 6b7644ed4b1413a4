"""The agent in this process: its cycles beside a kubelet, its rhythm, its end."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
import pytest

from collector.agent import serve
from collector.agent.cycle import Cycles
from collector.sources.podresources.client import PodResourcesClient
from steward.clock import FixedClock
from steward.command import Context
from steward.errors import SettingsError
from steward.settings import AgentSettings, Settings
from tests.support.agent_process import samples
from tests.support.collector_process import free_port
from tests.support.kubelet_server import Kubelet, container, pod, running_kubelet
from tests.support.nvml_stub import UUIDS, Stub

NOON = FixedClock(datetime(2026, 5, 1, 12, tzinfo=UTC))
PATIENCE_S = 30.0


@pytest.fixture
def kubelet() -> Iterator[Kubelet]:
    with TemporaryDirectory() as folder, running_kubelet(Path(folder) / "kubelet.sock") as running:
        yield running


@pytest.fixture
def cycles(stub: Stub, kubelet: Kubelet) -> Iterator[Cycles]:
    """Return the cycles of a node with two GPUs, not yet run."""
    client = PodResourcesClient(kubelet.socket, timeout_s=5.0)
    client.load()
    with stub.node("ok", deadline_s=2.0) as gpus:
        made = Cycles("n1", gpus=gpus, kubelet=client, proc_root=Path("/proc"), clock=NOON)
        yield made
        made.close()


def test_a_cycle(cycles: Cycles, kubelet: Kubelet) -> None:
    kubelet.pods = [
        pod("train-0", container("main", devices={"nvidia.com/gpu": [UUIDS[0], "GPU-x"]}))
    ]
    kubelet.allocatable = {"nvidia.com/gpu": [*UUIDS[:2], UUIDS[0]]}
    cycles.run()
    assert samples(cycles.text, "steward_agent_cycles_total") == {"": 1}
    assert samples(cycles.text, "steward_agent_last_cycle_timestamp_seconds") == {
        "": NOON.at.timestamp()
    }
    assert len(samples(cycles.text, "steward_gpu_allocation_info")) == 1
    assert samples(cycles.text, "steward_agent_unresolved_devices") == {'node="n1"': 1}
    assert samples(cycles.text, "steward_agent_allocatable_devices") == {
        'node="n1",resource="nvidia.com/gpu"': 2
    }


def test_a_kubelet_that_hangs_delays_once_and_is_told(cycles: Cycles, kubelet: Kubelet) -> None:
    kubelet.delay_s = 4.0
    began_s = time.monotonic()
    cycles.run()
    middle_s = time.monotonic()
    cycles.run()
    assert 1.9 <= middle_s - began_s < 3.5
    assert time.monotonic() - middle_s < 1.5
    assert samples(cycles.text, "steward_agent_pod_resources_up") == {
        'node="n1",reason="timeout"': 0
    }
    assert samples(cycles.text, "steward_gpu_allocation_info") == {}


def context(kubelet: Kubelet, **chosen: object) -> Context:
    agent = replace(
        AgentSettings(interval_s=0.2, deadline_s=0.15, node="n1", pod_resources=kubelet.socket),
        **chosen,  # type: ignore[arg-type] # each test names fields with values that fit
    )
    return Context(settings=Settings(agent=agent), clock=NOON)


@pytest.mark.parametrize(
    ("which", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)], ids=["TERM", "INT"]
)
def test_serving_until_told(stub: Stub, kubelet: Kubelet, which: signal.Signals, code: int) -> None:
    stub.play("ok")
    port = free_port()
    pages: list[tuple[int, str]] = []

    def watch() -> None:
        """Read the page until the node was read three times, then end the agent."""
        until_s = time.monotonic() + PATIENCE_S
        url = f"http://127.0.0.1:{port}"
        with httpx.Client(trust_env=False, timeout=PATIENCE_S) as client:
            while time.monotonic() < until_s:
                try:
                    text = client.get(f"{url}/metrics").text
                except httpx.TransportError:
                    continue
                if samples(text, "steward_agent_cycles_total")[""] >= 3:
                    health = client.get(f"{url}/healthz")
                    pages.append((health.status_code, text))
                    break
        os.kill(os.getpid(), which)

    watcher = threading.Thread(target=watch)
    watcher.start()
    assert serve.serve(context(kubelet, port=port)) == code
    watcher.join()
    ((status, text),) = pages
    assert status == httpx.codes.OK
    assert len(samples(text, "steward_gpu_up")) == 2


@pytest.mark.parametrize("deadline_s", [0.2, 0.3])
def test_a_deadline_must_be_below_the_interval(kubelet: Kubelet, deadline_s: float) -> None:
    with pytest.raises(SettingsError, match=r"is not below agent\.interval_s"):
        serve.serve(context(kubelet, deadline_s=deadline_s))


def test_the_nodes_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NODE_NAME", raising=False)
    own = serve.node_name(AgentSettings())
    monkeypatch.setenv("NODE_NAME", "n2")
    told = serve.node_name(AgentSettings())
    chosen = serve.node_name(AgentSettings(node="n1"))
    assert (own, told, chosen) == (os.uname().nodename, "n2", "n1")
