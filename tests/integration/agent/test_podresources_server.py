"""The kubelet's PodResources API, asked of a real gRPC server on a unix socket."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from collector.sources.podresources.client import (
    Failure,
    Fault,
    PodResources,
    PodResourcesClient,
)
from collector.sources.podresources.messages import (
    ClaimedDevice,
    ClaimGrant,
    ContainerGrants,
    DeviceGrant,
)
from tests.support.kubelet_server import Kubelet, claim, container, pod, running_kubelet

GPU = "GPU-5e700000-0000-0000-0000-000000000000"


@pytest.fixture
def kubelet() -> Iterator[Kubelet]:
    """Return a running kubelet; the path of a unix socket must be short."""
    with TemporaryDirectory() as folder, running_kubelet(Path(folder) / "kubelet.sock") as running:
        yield running


def ask(kubelet: Kubelet, *, timeout_s: float = 5.0) -> PodResources | Failure:
    return PodResourcesClient(kubelet.socket, timeout_s=timeout_s).read()


def test_devices_and_claims_of_containers(kubelet: Kubelet) -> None:
    kubelet.pods = [
        pod("empty"),
        pod(
            "train-0",
            container("main", devices={"nvidia.com/gpu": [GPU], "rdma/hca": ["mlx5_0"]}),
            container("log"),
        ),
        pod("drä", container("main", claims=[claim("one", "gpu-0", "gpu-1")]), namespace="b"),
    ]
    kubelet.allocatable = {"nvidia.com/gpu": [GPU, "GPU-2"]}
    assert ask(kubelet) == PodResources(
        containers=(
            ContainerGrants(
                namespace="team-a",
                pod="train-0",
                container="main",
                devices=(
                    DeviceGrant(resource="nvidia.com/gpu", device_ids=(GPU,)),
                    DeviceGrant(resource="rdma/hca", device_ids=("mlx5_0",)),
                ),
                claims=(),
            ),
            ContainerGrants(
                namespace="team-a", pod="train-0", container="log", devices=(), claims=()
            ),
            ContainerGrants(
                namespace="b",
                pod="drä",
                container="main",
                devices=(),
                claims=(
                    ClaimGrant(
                        namespace="team-a",
                        claim="one",
                        devices=(
                            ClaimedDevice(driver="gpu.nvidia.com", pool="node-1", device="gpu-0"),
                            ClaimedDevice(driver="gpu.nvidia.com", pool="node-1", device="gpu-1"),
                        ),
                    ),
                ),
            ),
        ),
        allocatable=(DeviceGrant(resource="nvidia.com/gpu", device_ids=(GPU, "GPU-2")),),
    )


def test_nothing_is_held(kubelet: Kubelet) -> None:
    assert ask(kubelet) == PodResources(containers=(), allocatable=())


def test_an_old_kubelet_does_not_tell_what_it_can_give(kubelet: Kubelet) -> None:
    kubelet.allocatable = None
    assert ask(kubelet) == PodResources(containers=(), allocatable=None)


def test_an_answer_larger_than_any_window(kubelet: Kubelet) -> None:
    """1 MB is far above HTTP/2's window of 64 KB: the server waits for more room."""
    names = [f"{'n' * 200}-{number}" for number in range(5_000)]
    kubelet.pods = [pod(name, container("c")) for name in names]
    answer = ask(kubelet)
    assert isinstance(answer, PodResources)
    assert [each.pod for each in answer.containers] == names


def test_the_client_survives_the_kubelet() -> None:
    with TemporaryDirectory() as folder:
        place = Path(folder) / "kubelet.sock"
        client = PodResourcesClient(place, timeout_s=5.0)
        for _ in range(2):
            with running_kubelet(place):
                assert isinstance(client.read(), PodResources)
            failure = client.read()
            assert isinstance(failure, Failure)
            assert failure.fault in {Fault.ABSENT, Fault.UNAVAILABLE}


def fault_of(answer: PodResources | Failure) -> Fault:
    assert isinstance(answer, Failure)
    return answer.fault


def test_no_answer_in_time(kubelet: Kubelet) -> None:
    kubelet.delay_s = 0.5
    assert fault_of(ask(kubelet, timeout_s=0.2)) is Fault.TIMEOUT


def test_a_refusal_is_told_in_the_servers_words(kubelet: Kubelet) -> None:
    kubelet.refusal = "zu viele Anfragen: 100 % ausgelastet"
    answer = ask(kubelet)
    assert isinstance(answer, Failure)
    assert answer.fault is Fault.REFUSED
    assert answer.message.endswith("RESOURCE_EXHAUSTED: zu viele Anfragen: 100 % ausgelastet")


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(b"\x0a\xff", id="cut off"),
        pytest.param(b"\x0b\x0c", id="groups are no part of proto3"),
        pytest.param(b"\x0a\x03\x0a\x01\xff", id="no UTF-8"),
        pytest.param(b"\x08\x01", id="a number for a message"),
        pytest.param(b"\xff" * 12, id="endless number"),
    ],
)
def test_a_broken_message(kubelet: Kubelet, raw: bytes) -> None:
    kubelet.raw = raw
    assert fault_of(ask(kubelet)) is Fault.BROKEN


def test_no_socket(tmp_path: Path) -> None:
    client = PodResourcesClient(tmp_path / "kubelet.sock", timeout_s=1.0)
    assert fault_of(client.read()) is Fault.ABSENT
    (tmp_path / "kubelet.sock").write_text("a file")
    assert fault_of(client.read()) is Fault.ABSENT


def test_nobody_listens_on_the_socket() -> None:
    with TemporaryDirectory() as folder:
        place = Path(folder) / "kubelet.sock"
        with socket.socket(socket.AF_UNIX) as left_over:
            left_over.bind(str(place))
        client = PodResourcesClient(place, timeout_s=1.0)
        assert fault_of(client.read()) is Fault.UNAVAILABLE


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"HTTP/1.1 400 Bad Request\r\n\r\n", id="HTTP/1"),
        pytest.param(b"", id="hangs up"),
    ],
)
def test_something_else_listens(answer: bytes) -> None:
    with TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as listener:
        place = Path(folder) / "kubelet.sock"
        listener.bind(str(place))
        listener.listen()

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65_536)
                connection.sendall(answer)
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(65_536):
                    pass

        thread = threading.Thread(target=serve)
        thread.start()
        fault = fault_of(PodResourcesClient(place, timeout_s=5.0).read())
        thread.join()
    assert fault is Fault.BROKEN


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_user_who_may_not_use_the_socket(kubelet: Kubelet) -> None:
    """The folder is closed to others, as the kubelet's is."""
    program = (
        "import os, sys; from pathlib import Path\n"
        "from collector.sources.podresources.client import PodResourcesClient\n"
        "from collector.sources.podresources import unary\n"
        "os.setuid(65534)\n"
        "print(PodResourcesClient(Path(sys.argv[1]), timeout_s=1.0).read().fault)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(kubelet.socket)],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[3],
    )
    assert done.stdout.strip() == "no_permission"
