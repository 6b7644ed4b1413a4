"""``steward agent`` as people run it: on NVIDIA's library, beside a kubelet, over HTTP."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
import pytest

from collector.normalize import NormalizedScrape, NormalizeState, normalize
from collector.sources.exposition import ExpositionParser
from tests.conftest import skip_aloud
from tests.support.agent_process import (
    RunningAgent,
    agent_environment,
    failed_agent,
    running_agent,
    samples,
)
from tests.support.collector_process import PATIENCE_S
from tests.support.kubelet_server import Kubelet, claim, container, pod, running_kubelet
from tests.support.nvml_stub import UUIDS, build, set_scene

pytestmark = pytest.mark.slow
FAST = ("--interval-s", "0.6", "--deadline-s", "0.5")
NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
OWN = 'node="n1",instance_id=""'


@pytest.fixture(scope="module")
def kubelet() -> Iterator[Kubelet]:
    with TemporaryDirectory() as folder, running_kubelet(Path(folder) / "kubelet.sock") as running:
        running.pods = [
            pod("train-0", container("main", devices={"nvidia.com/gpu": [UUIDS[0]]})),
            pod("share-a", container("c", devices={"nvidia.com/gpu.shared": [f"{UUIDS[1]}::0"]})),
            pod("share-b", container("c", devices={"nvidia.com/gpu.shared": [f"{UUIDS[1]}::1"]})),
            pod("claims", container("c", claims=[claim("mine", "gpu-1")])),
            pod("lost", container("c", devices={"nvidia.com/gpu": ["GPU-unknown"]})),
        ]
        running.allocatable = {"nvidia.com/gpu": UUIDS[:1], "nvidia.com/gpu.shared": ["a", "b"]}
        yield running


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("agent") / "scene"
    set_scene(place, "ok")
    return place


@pytest.fixture(scope="module")
def served(
    library: Path, kubelet: Kubelet, scene: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningAgent]:
    """Return an agent beside the kubelet, on a node where this very process uses a GPU."""
    env = agent_environment(library, scene, NVMLSTUB_PID=str(os.getpid()))
    flags = (*FAST, "--pod-resources", str(kubelet.socket))
    with running_agent(*flags, cwd=tmp_path_factory.mktemp("run"), env=env) as running:
        yield running


@pytest.fixture
def agent(served: RunningAgent, scene: Path) -> RunningAgent:
    """Return the agent on two GPUs that nothing is wrong with."""
    set_scene(scene, "ok")
    return served


def is_complete(page: str, *, of: int = 2) -> bool:
    """Tell whether so many devices show what takes two readings in a row."""
    return len(samples(page, "steward_gpu_sm_active_ratio")) == of


def stored(page: str) -> NormalizedScrape:
    """Return the page as the collector stores it."""
    return normalize(
        ExpositionParser().parse(page.encode()),
        target="http://127.0.0.1:9410/metrics",
        cluster="c",
        scraped_at=NOON,
        state=NormalizeState(),
    )


def test_rows_equal_what_the_driver_said(agent: RunningAgent) -> None:
    row = stored(agent.page_where(is_complete)).samples.to_pylist()[0]
    moving = {name: row.pop(name) for name in ("energy_j", "nvlink_bytes_per_s")}
    assert moving["energy_j"] > 600
    assert moving["nvlink_bytes_per_s"] == pytest.approx(4_096_000, rel=0.1)
    assert row == {
        "sampled_at": NOON,
        "cluster": "c",
        "node": "n1",
        "device_uuid": UUIDS[0],
        "instance_id": None,
        "source": "exposition",
        "busy_ratio": 0.73,
        "memory_busy_ratio": 0.41,
        "graphics_active_ratio": 0.71,
        "sm_active_ratio": 0.64,
        "sm_occupancy_ratio": 0.38,
        "tensor_active_ratio": 0.29,
        "dram_active_ratio": 0.44,
        "fp64_active_ratio": 0.0,
        "fp32_active_ratio": 0.0,
        "fp16_active_ratio": 0.0,
        "encoder_ratio": 0.03,
        "decoder_ratio": 0.07,
        "memory_used_bytes": 5_368_709_120,
        "memory_free_bytes": 79_456_894_976,
        "memory_reserved_bytes": 1_073_741_824,
        "memory_total_bytes": 85_899_345_920,
        "power_w": 412.345,
        "temperature_celsius": 54.0,
        "memory_temperature_celsius": 61.0,
        "sm_clock_hz": 1_980_000_000,
        "memory_clock_hz": 2_619_000_000,
        "pcie_transmit_bytes_per_s": 1_073_741_824.0,
        "pcie_receive_bytes_per_s": 536_870_912.0,
        "pcie_replay_count": 12,
        "integer_active_ratio": 0.11,
        "power_limit_w": 700.0,
        "fan_ratio": None,
        "clock_event_reason_bits": 36,
        "power_throttled_s": 2.5,
        "thermal_throttled_s": 1.5,
        "ecc_corrected_count": 40,
        "ecc_uncorrected_count": 1,
        "row_remap_corrected_count": 2,
        "row_remap_uncorrected_count": 1,
        "row_remap_failed_count": 0,
        "process_count": 2,
        "namespace": None,
        "pod": None,
        "container": None,
        "absences": "fan_ratio=not_supported",
    }


def test_holders_are_stored(agent: RunningAgent) -> None:
    page = agent.page_where(lambda page: len(samples(page, "steward_gpu_allocation_info")) == 4)
    held = {
        (each.device_uuid, each.replica, each.pod, each.resource, each.claim)
        for each in stored(page).holdings
    }
    assert held == {
        (UUIDS[0], None, "train-0", "nvidia.com/gpu", None),
        (UUIDS[0], None, "claims", None, "team-a/mine"),
        (UUIDS[1], 0, "share-a", "nvidia.com/gpu.shared", None),
        (UUIDS[1], 1, "share-b", "nvidia.com/gpu.shared", None),
    }
    assert samples(page, "steward_agent_unresolved_devices") == {'node="n1"': 1}
    assert samples(page, "steward_agent_allocatable_devices") == {
        'node="n1",resource="nvidia.com/gpu"': 1,
        'node="n1",resource="nvidia.com/gpu.shared"': 2,
    }


def test_instances_are_stored_with_their_shares(agent: RunningAgent, scene: Path) -> None:
    set_scene(scene, "mig")
    scrape = stored(agent.page_where(lambda page: is_complete(page, of=2 * 4)))
    shares = {
        row["instance_id"]: (row["mig_profile"], row["sm_share_ratio"], row["memory_share_ratio"])
        for row in scrape.devices.to_pylist()
        if row["device_uuid"] == UUIDS[0]
    }
    assert shares == {
        None: (None, None, None),
        7: ("3g.40gb", 0.454545, 0.5),
        8: ("1g.10gb", 0.121212, 0.125),
        9: ("1g.10gb", 0.121212, 0.125),
    }
    rows = {row["instance_id"]: row for row in scrape.samples.to_pylist()[:4]}
    assert rows[8]["dram_active_ratio"] == 0.648
    assert (rows[None]["power_w"], rows[8]["power_w"]) == (412.345, None)


def test_processes_are_stored(agent: RunningAgent) -> None:
    page = agent.page_where(lambda page: len(samples(page, "steward_gpu_process_sm_ratio")) == 2)
    rows = [row for row in stored(page).processes.to_pylist() if row["device_uuid"] == UUIDS[0]]
    found = {row["pid"]: (row["memory_used_bytes"], row["sm_ratio"]) for row in rows}
    assert found == {1234: (2_147_483_648, None), os.getpid(): (None, 0.37)}
    comm = Path("/proc/self/comm").read_text(encoding="utf-8").strip()
    assert {row["process"] for row in rows if row["pid"] == os.getpid()} == {comm}


def test_xid_is_an_event_once(agent: RunningAgent, scene: Path) -> None:
    set_scene(scene, "xid=0:31:1")
    board = f'uuid="{UUIDS[0]}",gpu="0",{OWN}'
    page = agent.page_where(lambda page: samples(page, "steward_gpu_last_xid").get(board) == 31)
    events = stored(page).events.to_pylist()
    assert [(row["kind"], row["code"]) for row in events] == [("xid", 31)]


def test_a_lost_gpu_is_stored_as_gone(agent: RunningAgent, scene: Path) -> None:
    set_scene(scene, "lost@1")
    page = agent.page_where(lambda page: 0 in samples(page, "steward_gpu_up").values())
    rows = {row["device_uuid"]: row for row in stored(page).samples.to_pylist()}
    assert rows[UUIDS[0]]["power_w"] == 412.345
    assert rows[UUIDS[1]]["power_w"] is None
    assert "power_w=lost" in rows[UUIDS[1]]["absences"]


def test_a_kubelet_that_falls_silent_is_told(agent: RunningAgent, kubelet: Kubelet) -> None:
    kubelet.refusal = "not now"
    try:
        agent.steward.wait_for(
            lambda: 'node="n1",reason="refused"' in agent.samples("steward_agent_pod_resources_up")
        )
        assert agent.samples("steward_gpu_allocation_info") == {}
    finally:
        kubelet.refusal = None
    agent.steward.wait_for(lambda: len(agent.samples("steward_gpu_allocation_info")) == 4)
    silent = [line for line in agent.steward.log.splitlines() if "(refused)" in line]
    assert len(silent) == 1


def test_promtool_finds_nothing(library: Path, kubelet: Kubelet, tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        skip_aloud("promtool is not installed: it comes with the distribution's prometheus")
    scene = set_scene(tmp_path / "scene", "ok")
    flags = (*FAST, "--pod-resources", str(kubelet.socket))
    with running_agent(*flags, cwd=tmp_path, env=agent_environment(library, scene)) as agent:
        for words in ("ok", "mig xid=0:13:1", "lost@0", "vgpu"):
            set_scene(scene, words)
            agent.wait_for_cycles(2)
            done = subprocess.run(
                [str(promtool), "check", "metrics"],
                input=agent.page(),
                capture_output=True,
                text=True,
                check=False,
            )
            assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_agent_stays_small(agent: RunningAgent) -> None:
    assert agent.samples("process_resident_memory_bytes")[""] < 50e6


def test_pages_and_faulty_requests(agent: RunningAgent) -> None:
    def get(path: str, method: str = "GET") -> httpx.Response:
        return httpx.request(method, agent.url + path, trust_env=False)

    assert get("/healthz").text == "ok\n"
    assert get("/").status_code == httpx.codes.OK
    assert get("/nothing").status_code == httpx.codes.NOT_FOUND
    assert get("/metrics", "POST").status_code == httpx.codes.METHOD_NOT_ALLOWED
    head = get("/metrics", "HEAD")
    assert (head.status_code, head.content) == (httpx.codes.OK, b"")
    assert int(head.headers["content-length"]) > 1_000
    assert get("/metrics").headers["content-type"].startswith("text/plain; version=0.0.4")
    plain = httpx.get(
        f"{agent.url}/metrics?x=1", headers={"accept-encoding": "identity"}, trust_env=False
    )
    assert "content-encoding" not in plain.headers
    assert plain.text.startswith("# HELP ")


@pytest.mark.parametrize(
    "request_bytes",
    [
        pytest.param(b"GARBAGE\r\n\r\n", id="no request"),
        pytest.param(b"GET /metrics HTTP/1.1\r\n" + b"x: y\r\n" * 2_000, id="endless head"),
    ],
)
def test_what_is_no_request_is_refused(agent: RunningAgent, request_bytes: bytes) -> None:
    port = int(agent.url.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as connection:
        connection.sendall(request_bytes)
        assert connection.recv(100).startswith(b"HTTP/1.1 400 ")
    assert agent.page()


def test_more_than_sixteen_requests_at_once_are_refused(agent: RunningAgent) -> None:
    """Sixteen clients that say nothing cost their own places, and only for five seconds."""
    port = int(agent.url.rpartition(":")[2])
    with ExitStack() as silent:
        for _ in range(16):
            silent.enter_context(socket.create_connection(("127.0.0.1", port)))
        with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as connection:
            assert connection.recv(100).startswith(b"HTTP/1.1 503 ")
    agent.steward.wait_for(
        lambda: httpx.get(f"{agent.url}/", trust_env=False).status_code == httpx.codes.OK
    )


def test_a_missing_part_is_named(tmp_path: Path) -> None:
    program = (
        "import sys; sys.modules['pynvml'] = None\n"
        "from steward.main import main\n"
        "sys.exit(main(['agent']))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=agent_environment(None),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 13
    assert "pip install 'gpu-steward[nvml]'" in done.stderr


def test_fault_29_sixty_seconds_in_one_call_cost_one_gpu(library: Path, tmp_path: Path) -> None:
    """The default deadline and a true hang: no cycle is delayed by 2 s, and the loop goes on."""
    scene = tmp_path / "scene"
    set_scene(scene, "gpus=8")
    env = agent_environment(library, scene)
    flags = ("--interval-s", "2", "--pod-resources", str(tmp_path / "none"))
    with running_agent(*flags, cwd=tmp_path, env=env) as agent:
        set_scene(scene, "gpus=8 hang@3 hang_s=60")
        agent.steward.wait_for(lambda: up(agent)[3] == 0)
        assert [up(agent)[gpu] for gpu in range(8)] == [1, 1, 1, 0, 1, 1, 1, 1]
        took_s = agent.samples("steward_agent_cycle_duration_seconds")[""]
        assert took_s < 2.0
        agent.wait_for_cycles(2)
        assert agent.samples("steward_agent_cycle_duration_seconds")[""] < 1.0
        assert agent.samples("steward_gpu_power_watts").keys() == {
            f'uuid="{UUIDS[gpu]}",gpu="{gpu}",{OWN}' for gpu in range(8) if gpu != 3
        }
        began_s = time.monotonic()
        assert agent.steward.stop() == 0
        assert time.monotonic() - began_s < 10


def up(agent: RunningAgent) -> dict[int, float]:
    values = agent.samples("steward_gpu_up")
    return {gpu: next(v for k, v in values.items() if f'gpu="{gpu}"' in k) for gpu in range(8)}


def test_an_old_driver_lacks_functions(tmp_path: Path) -> None:
    """What came after R470 is not there: its signals are absent, all others are read."""
    library = build(tmp_path, "-DOLD_DRIVER")
    flags = (*FAST, "--pod-resources", str(tmp_path / "none"))
    with running_agent(*flags, cwd=tmp_path, env=agent_environment(library)) as agent:
        row = stored(agent.page()).samples.to_pylist()[0]
    told = {name: row[name] for name in ("memory_total_bytes", "memory_free_bytes", "power_w")}
    assert told == {
        "memory_total_bytes": 85_899_345_920,
        "memory_free_bytes": 79_456_894_976,
        "power_w": 412.345,
    }
    assert (row["temperature_celsius"], row["clock_event_reason_bits"]) == (54.0, 4)
    assert row["process_count"] == 2
    silent = dict(each.split("=") for each in row["absences"].split(","))
    assert silent["memory_used_bytes"] == silent["sm_active_ratio"] == "not_supported"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        pytest.param(
            None, "NVIDIA's management library (libnvidia-ml.so.1) is not found", id="no library"
        ),
        pytest.param("unloaded", "the NVIDIA driver is not loaded", id="no driver"),
    ],
)
def test_no_driver_is_one_clear_error(
    library: Path, tmp_path: Path, words: str | None, message: str
) -> None:
    found = None if words is None else library
    if found is None and shutil.which("nvidia-smi"):
        pytest.skip("this machine has the library")
    done = failed_agent(cwd=tmp_path, env=agent_environment(found, NVMLSTUB=words or ""))
    assert done.returncode == 5
    assert message in done.stderr
    assert "hint" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_deadline_that_does_not_fit(library: Path, tmp_path: Path) -> None:
    done = failed_agent("--interval-s", "1", cwd=tmp_path, env=agent_environment(library))
    assert done.returncode == 3
    assert "agent.deadline_s (1.5) is not below agent.interval_s (1)" in done.stderr


def test_a_port_that_is_taken(library: Path, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = failed_agent("--port", port, cwd=tmp_path, env=agent_environment(library))
    assert done.returncode == 12
    assert f"127.0.0.1:{port} is in use" in done.stderr


def test_ctrl_c(library: Path, tmp_path: Path) -> None:
    flags = (*FAST, "--pod-resources", str(tmp_path / "none"))
    with running_agent(*flags, cwd=tmp_path, env=agent_environment(library)) as agent:
        assert agent.steward.stop(signal.SIGINT) == 130


def smoke(library: Path | None, cwd: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run what ``make gpu`` runs."""
    return subprocess.run(
        [sys.executable, "-m", "deploy.gpu_smoke"],
        cwd=Path(__file__).parents[3],
        env=agent_environment(library, set_scene(cwd / "scene", " ".join(words))),
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )


def test_smoke_without_a_gpu_says_so(tmp_path: Path) -> None:
    if shutil.which("nvidia-smi"):
        pytest.skip("this machine has a GPU")
    done = smoke(None, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("no GPU here: NVIDIA's management library")


def test_smoke_prints_signals_and_absences(library: Path, tmp_path: Path) -> None:
    done = smoke(library, tmp_path, "mig", "gpus=1")
    assert done.returncode == 0
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["power_w", "412.345"] in lines
    assert ["busy_ratio", "(not_supported)"] in lines
    assert ["dram_active_ratio", "0.648"] in lines
    assert done.stdout.splitlines()[-1].startswith("1 GPUs read in ")


def test_smoke_of_a_lost_gpu_fails(library: Path, tmp_path: Path) -> None:
    done = smoke(library, tmp_path, "lost@1")
    assert done.returncode == 1
    assert "GPU 1: lost" in done.stdout
