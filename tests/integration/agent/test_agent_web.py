"""The agent's own HTTP server, asked as Prometheus, probes and strangers ask."""

from __future__ import annotations

import gzip
import socket
from collections.abc import Iterator

import httpx
import pytest

from collector.agent.web import Answer, exposition, serving
from steward.errors import PortInUseError

PAGE = "# HELP a Text.\n# TYPE a gauge\na 1\n"
TIMEOUT_S = 20.0


@pytest.fixture
def port() -> Iterator[int]:
    """Serve one page of metrics and one that fails its probe."""
    routes = {
        "/metrics": lambda: exposition(PAGE),
        "/healthz": lambda: Answer(b"old\n", "503 Service Unavailable"),
    }
    with serving("127.0.0.1", 0, routes=routes) as found:
        yield found


def exchange(port: int, request: bytes) -> tuple[bytes, bytes]:
    """Send bytes and return the answer's head and body."""
    with socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S) as connection:
        connection.sendall(request)
        pieces = iter(lambda: connection.recv(65_536), b"")
        head, _, body = b"".join(pieces).partition(b"\r\n\r\n")
        return head, body


def test_a_page(port: int) -> None:
    head, body = exchange(port, b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
    assert head.split(b"\r\n") == [
        b"HTTP/1.1 200 OK",
        b"Content-Type: text/plain; version=0.0.4; charset=utf-8",
        f"Content-Length: {len(PAGE)}".encode(),
        b"Connection: close",
    ]
    assert body == PAGE.encode()


def test_a_compressed_page(port: int) -> None:
    request = b"GET /metrics HTTP/1.1\r\nAccept-Encoding: deflate, gzip;q=1\r\n\r\n"
    head, body = exchange(port, request)
    assert b"Content-Encoding: gzip" in head
    assert gzip.decompress(body) == PAGE.encode()


def test_a_request_in_pieces(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S) as connection:
        for piece in (b"GET /met", b"rics HTTP/1.0\r\n", b"\r\n"):
            connection.sendall(piece)
        assert connection.recv(100).startswith(b"HTTP/1.1 200 OK")


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        pytest.param(b"HEAD /metrics HTTP/1.1\r\n\r\n", b"200 OK", id="head"),
        pytest.param(b"GET /metrics?name=x HTTP/1.1\r\n\r\n", b"200 OK", id="query"),
        pytest.param(b"GET /healthz HTTP/1.1\r\n\r\n", b"503 Service Unavailable", id="probe"),
        pytest.param(b"GET /else HTTP/1.1\r\n\r\n", b"404 Not Found", id="no such page"),
        pytest.param(b"POST /metrics HTTP/1.1\r\n\r\n", b"405 Method Not Allowed", id="post"),
        pytest.param(b"PRI * HTTP/2.0\r\n\r\n", b"400 Bad Request", id="HTTP/2"),
        pytest.param(b"\x16\x03\x01\r\n\r\n", b"400 Bad Request", id="TLS"),
        pytest.param(b"x" * 9_000, b"400 Bad Request", id="too long"),
    ],
)
def test_status(port: int, request_bytes: bytes, status: bytes) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S) as connection:
        connection.sendall(request_bytes)
        assert connection.recv(100).startswith(b"HTTP/1.1 " + status)


def test_head_has_no_body(port: int) -> None:
    head, body = exchange(port, b"HEAD /metrics HTTP/1.1\r\n\r\n")
    assert f"Content-Length: {len(PAGE)}".encode() in head
    assert body == b""


def test_a_client_that_hangs_up_costs_nothing(port: int) -> None:
    for request in (b"", b"GET /metr", b"GET /metrics HTTP/1.1\r\n\r\n"):
        with socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S) as connection:
            connection.sendall(request)
    answer = httpx.get(f"http://127.0.0.1:{port}/metrics", trust_env=False, timeout=TIMEOUT_S)
    assert answer.text == PAGE


def test_a_port_that_is_taken(port: int) -> None:
    with (
        pytest.raises(PortInUseError, match=f"127.0.0.1:{port} is in use"),
        serving("127.0.0.1", port, routes={}),
    ):
        pass


def test_an_address_of_another_machine() -> None:
    with (
        pytest.raises(PortInUseError, match=r"listening on 192\.0\.2\.1:0 fails"),
        serving("192.0.2.1", 0, routes={}),
    ):
        pass
