"""A real HTTP server on 127.0.0.1 that answers as exporters do, well and badly.

Each path has one ``Answer``; the server writes raw bytes, so that every fault of the wire
(broken gzip, endless bodies, half answers) can be served exactly.
"""

from __future__ import annotations

import gzip
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace

from tests.support.accepting import accepting

REQUEST_NUMBER = b"@N@"
"""Stands in a body for how often its path was asked, this time included."""
PIECE = b"gpu_filler" + b"1" * 65_000 + b" 1\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What one path answers."""

    body: bytes = b""
    status: str = "200 OK"
    headers: tuple[tuple[str, str], ...] = (("content-type", "text/plain; version=0.0.4"),)
    is_endless: bool = False
    """Send filler until the client hangs up."""
    drip_s: float | None = None
    """Send one byte, then wait this long, again and again; None sends at once."""
    is_silent: bool = False
    """Accept the request and never answer."""
    promised_bytes: int | None = None
    """The content-length to announce where it differs from the body's."""


def exposition(text: str) -> Answer:
    """Return a good answer with this text."""
    return Answer(body=text.encode())


def gzipped(text: str) -> Answer:
    """Return a good answer, compressed."""
    return Answer(
        body=gzip.compress(text.encode()),
        headers=(("content-type", "text/plain"), ("content-encoding", "gzip")),
    )


def redirect(location: str, status: str = "302 Found") -> Answer:
    """Return an answer that points elsewhere."""
    return Answer(status=status, headers=(("location", location),))


@dataclass(slots=True)
class ExporterServer:
    """A running server; ``answers`` may change while it runs."""

    port: int
    answers: dict[str, Answer] = field(default_factory=dict)
    requests: Counter[str] = field(default_factory=Counter)
    closing: threading.Event = field(default_factory=threading.Event)
    sent_bytes: Counter[str] = field(default_factory=Counter)
    request_headers: dict[str, str] = field(default_factory=dict)
    """The head of the last request of each path."""

    def url(self, path: str = "/metrics") -> str:
        """Return the address of a path."""
        return f"http://127.0.0.1:{self.port}{path}"

    def serve(self, connection: socket.socket) -> None:
        """Answer one request, then hang up."""
        with connection, suppress(OSError):
            connection.settimeout(10)
            head = _request_head(connection)
            path = head.split(" ")[1]
            self.requests[path] += 1
            self.request_headers[path] = head
            answer = self.answers.get(path, Answer(status="404 Not Found", body=b"no such path\n"))
            self._send(connection, answer, path)

    def _send(self, connection: socket.socket, answer: Answer, path: str) -> None:
        def send(piece: bytes) -> None:
            connection.sendall(piece)
            self.sent_bytes[path] += len(piece)

        if answer.is_silent:
            self.closing.wait()
            return
        number = str(self.requests[path]).encode()
        answer = replace(answer, body=answer.body.replace(REQUEST_NUMBER, number))
        send(_head(answer))
        if answer.is_endless:
            while not self.closing.is_set():
                send(PIECE)
        if answer.drip_s is None:
            send(answer.body)
            return
        for byte in answer.body * 1_000:
            send(bytes([byte]))
            if self.closing.wait(answer.drip_s):
                return


def _request_head(connection: socket.socket) -> str:
    head = b""
    while b"\r\n\r\n" not in head:
        piece = connection.recv(4_096)
        if not piece:
            raise ConnectionError
        head += piece
        if not head.startswith(b"GET "):
            connection.sendall(b"HTTP/1.0 400 Bad Request\r\n\r\nno HTTP request\n")
            raise ConnectionError
    return head.decode("latin-1")


def _head(answer: Answer) -> bytes:
    length = answer.promised_bytes
    if length is None and not answer.is_endless and answer.drip_s is None:
        length = len(answer.body)
    lines = [f"HTTP/1.1 {answer.status}", "connection: close"]
    lines += [f"{name}: {value}" for name, value in answer.headers]
    lines += [] if length is None else [f"content-length: {length}"]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


@contextmanager
def exporter_server(answers: dict[str, Answer] | None = None) -> Iterator[ExporterServer]:
    """Serve on a free port of 127.0.0.1 for the length of the block."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=1_024)
    server = ExporterServer(listener.getsockname()[1], dict(answers or {}))
    with accepting(listener, server.serve, closing=server.closing):
        yield server


@contextmanager
def closed_port() -> Iterator[int]:
    """Hold a port on which nothing listens, so that connecting is refused."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]


def gpu_text(*, host: str, gpu_count: int = 2, busy_percent: float = 50.0) -> str:
    """Return a small dcgm-exporter text of one node."""
    lines = ["# TYPE DCGM_FI_DEV_GPU_UTIL gauge", "# TYPE DCGM_FI_DEV_POWER_USAGE gauge"]
    for index in range(gpu_count):
        labels = (
            f'gpu="{index}",UUID="GPU-{host}-{index}",device="nvidia{index}",'
            f'modelName="NVIDIA A100-SXM4-40GB",Hostname="{host}"'
        )
        lines.append(f"DCGM_FI_DEV_GPU_UTIL{{{labels}}} {busy_percent}")
        lines.append(f"DCGM_FI_DEV_POWER_USAGE{{{labels}}} 116.5")
    return "\n".join(lines) + "\n"
