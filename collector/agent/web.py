"""The smallest HTTP server that Prometheus, probes and people need: two pages, GET and HEAD.

The standard library's server would load mail and TLS modules, 5 MB in all. A request must end
within its deadline and size, and only so many are answered at once.
"""

from __future__ import annotations

import errno
import gzip
import logging
import re
import socket
import socketserver
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final

from collector.agent.text import CONTENT_TYPE
from steward.errors import PortInUseError

log = logging.getLogger(__name__)

REQUEST_DEADLINE_S: Final = 5.0
REQUEST_LIMIT_BYTES: Final = 8_192
MOST_AT_ONCE: Final = 16
_REQUEST: Final = re.compile(rb"(?P<method>[A-Z]{1,16}) (?P<path>/[^ ?]*)(?:\?[^ ]*)? HTTP/1\.[01]")
_GZIP: Final = re.compile(rb"^accept-encoding:.*\bgzip\b", re.IGNORECASE | re.MULTILINE)
_HEAD_END: Final = b"\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Answer:
    """What one path answers."""

    body: bytes
    status: str = "200 OK"
    content_type: str = "text/plain; charset=utf-8"


Route = Callable[[], Answer]


class _Handler(socketserver.BaseRequestHandler):
    """Answers one request, then hangs up."""

    server: _Server

    def handle(self) -> None:
        """Read the head within its deadline and answer it."""
        if not self.server.places.acquire(blocking=False):
            self._send(Answer(b"too many requests at once\n", "503 Service Unavailable"))
            return
        try:
            with suppress(OSError):
                self._serve()
        finally:
            self.server.places.release()

    def _serve(self) -> None:
        head = _read_head(self.request)
        if head is None:
            self._send(Answer(b"no HTTP request\n", "400 Bad Request"))
            return
        found = _REQUEST.match(head)
        if found is None:
            self._send(Answer(b"no HTTP request\n", "400 Bad Request"))
        elif found["method"] not in {b"GET", b"HEAD"}:
            self._send(Answer(b"only GET and HEAD\n", "405 Method Not Allowed"))
        else:
            route = self.server.routes.get(found["path"].decode("latin-1"))
            answer = Answer(b"not here\n", "404 Not Found") if route is None else route()
            self._send(
                answer,
                is_head=found["method"] == b"HEAD",
                is_gzip=_GZIP.search(head) is not None,
            )

    def _send(self, answer: Answer, *, is_head: bool = False, is_gzip: bool = False) -> None:
        body = gzip.compress(answer.body, compresslevel=1, mtime=0) if is_gzip else answer.body
        lines = [
            f"HTTP/1.1 {answer.status}",
            f"Content-Type: {answer.content_type}",
            f"Content-Length: {len(body)}",
            "Connection: close",
        ]
        if is_gzip:
            lines.append("Content-Encoding: gzip")
        head = "\r\n".join(lines).encode("latin-1") + _HEAD_END
        self.request.sendall(head if is_head else head + body)


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, address: tuple[str, int], *, routes: Mapping[str, Route]) -> None:
        self.routes = routes
        self.places = threading.BoundedSemaphore(MOST_AT_ONCE)
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        super().__init__(address, _Handler)

    def get_request(self) -> tuple[socket.socket, object]:
        connection, peer = super().get_request()
        connection.settimeout(REQUEST_DEADLINE_S)
        return connection, peer

    def handle_error(self, request: object, client_address: object) -> None:
        """Log what went wrong instead of printing it."""
        log.debug("request of %s on %s failed: %s", client_address, request, sys.exception())


def _read_head(connection: socket.socket) -> bytes | None:
    """Return the request's head; None where it is too long or ends early."""
    head = b""
    while _HEAD_END not in head:
        piece = connection.recv(REQUEST_LIMIT_BYTES)
        head += piece
        if not piece or len(head) > REQUEST_LIMIT_BYTES:
            return None
    return head


def exposition(text: str) -> Answer:
    """Return a page of metrics."""
    return Answer(text.encode(), content_type=CONTENT_TYPE)


@contextmanager
def serving(host: str, port: int, *, routes: Mapping[str, Route]) -> Iterator[int]:
    """Serve these paths for the length of the block; yield the port.

    Raises:
        PortInUseError: the address cannot be listened on.
    """
    try:
        server = _Server((host, port), routes=routes)
    except OSError as error:
        why = "is in use" if error.errno == errno.EADDRINUSE else f"fails: {error.strerror}"
        raise PortInUseError(
            f"listening on {host}:{port} {why}", hint="choose another with --host and --port"
        ) from error
    thread = threading.Thread(target=server.serve_forever, name="web", daemon=True)
    thread.start()
    try:
        yield int(server.server_address[1])
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
