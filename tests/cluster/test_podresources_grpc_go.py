"""The client for the kubelet against a server of grpc-go, which the kubelet uses: etcd."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from collector.sources.podresources import unary, wire
from tests.conftest import skip_aloud
from tests.support.cluster_programs import ProgramMissingError, program
from tests.support.collector_process import free_port

PATIENCE_S = 30.0
VERSION_FIELD = 2


@pytest.fixture(scope="module")
def grpc_go() -> Iterator[Path]:
    """Return the unix socket of a server of grpc-go."""
    try:
        etcd = program("etcd")
    except ProgramMissingError as error:
        skip_aloud(str(error))
        raise AssertionError from error
    with TemporaryDirectory() as folder:
        place = Path(folder) / "socket"
        peer, client = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
        process = subprocess.Popen(
            [
                str(etcd),
                f"--data-dir={folder}/data",
                f"--listen-client-urls=unix://{place}",
                f"--advertise-client-urls={client}",
                f"--listen-peer-urls={peer}",
                f"--initial-advertise-peer-urls={peer}",
                f"--initial-cluster=default={peer}",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            until_s = time.monotonic() + PATIENCE_S
            while not place.exists():
                assert process.poll() is None
                assert time.monotonic() < until_s
                time.sleep(0.05)
            yield place
        finally:
            process.kill()
            process.wait()


def test_an_answer(grpc_go: Path) -> None:
    message = unary.ask(grpc_go, "/etcdserverpb.Maintenance/Status", timeout_s=10.0)
    version = dict(wire.fields(message))[VERSION_FIELD]
    assert re.fullmatch(rb"3\.\d+\.\d+", wire.nested(version))


def test_a_refusal(grpc_go: Path) -> None:
    with pytest.raises(unary.StatusError, match="UNIMPLEMENTED: unknown service v1"):
        unary.ask(grpc_go, "/v1.PodResourcesLister/List", timeout_s=10.0)
