"""One gRPC question over a unix socket: an empty request, one answer, one deadline.

gRPC is HTTP/2 with a five-byte prefix before each message and the outcome in the trailers
(https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md). ``h2`` speaks the HTTP/2; Google's
``grpcio`` would do the same for 20 MB of memory more, which is most of what the agent may use.
"""

from __future__ import annotations

import socket
import struct
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import unquote

import h2.config
import h2.connection
import h2.events
import h2.exceptions

from steward.units import MIB_BYTES
from steward.version import __version__

LARGEST_ANSWER_BYTES: Final = 16 * MIB_BYTES
OK: Final = "0"
STATUS_NAMES: Final = (
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
)
"""gRPC's codes, by number."""
DEADLINE_EXCEEDED: Final = str(STATUS_NAMES.index("DEADLINE_EXCEEDED"))
_PREFIX: Final = struct.Struct(">BI")
_EMPTY_REQUEST: Final = _PREFIX.pack(0, 0)
_PIECE_BYTES: Final = 65_536


class StatusError(Exception):
    """The server ended the call with a status other than OK.

    Args:
        status: gRPC's number as text.
        message: what the server says of it.
    """

    def __init__(self, status: str, message: str) -> None:
        """Keep the number, and name it in the text."""
        known = status.isdecimal() and int(status) < len(STATUS_NAMES)
        name = STATUS_NAMES[int(status)] if known else f"status {status}"
        super().__init__(f"{name}: {message}" if message else name)
        self.status = status


class NotGrpcError(Exception):
    """What came back is no gRPC answer."""


@dataclass(slots=True)
class _Answer:
    """What was received so far."""

    headers: dict[str, str] = field(default_factory=dict)
    body: bytearray = field(default_factory=bytearray)
    is_ended: bool = False


def ask(path: Path, method: str, *, timeout_s: float) -> bytes:
    """Return the answer to an empty request.

    Args:
        path: the unix socket.
        method: ``/package.Service/Method``.
        timeout_s: for connecting and the whole answer together.

    Raises:
        TimeoutError: no whole answer in time.
        OSError: the socket cannot be used.
        StatusError: the server refused.
        NotGrpcError: the answer is none, is compressed, or larger than 16 MiB.
    """
    until_s = time.monotonic() + timeout_s
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(timeout_s)
        connection.connect(str(path))
        try:
            answer = _exchange(connection, method, until_s=until_s)
        except h2.exceptions.ProtocolError as error:
            raise NotGrpcError(f"no HTTP/2: {error!r}") from error
    return _message(answer)


def _exchange(connection: socket.socket, method: str, *, until_s: float) -> _Answer:
    config = h2.config.H2Configuration(client_side=True, header_encoding="utf-8")
    http = h2.connection.H2Connection(config)
    http.initiate_connection()
    stream = http.get_next_available_stream_id()
    left_ms = max(1, round((until_s - time.monotonic()) * 1_000))
    http.send_headers(stream, _request_headers(method, left_ms))
    http.send_data(stream, _EMPTY_REQUEST, end_stream=True)
    answer = _Answer()
    while not answer.is_ended:
        connection.sendall(http.data_to_send())
        connection.settimeout(_left_s(until_s))
        piece = connection.recv(_PIECE_BYTES)
        if not piece:
            raise NotGrpcError("the server hung up before its answer")
        for event in http.receive_data(piece):
            _take(event, http=http, answer=answer)
    return answer


def _request_headers(method: str, left_ms: int) -> list[tuple[str, str]]:
    return [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", method),
        (":authority", "localhost"),
        ("te", "trailers"),
        ("content-type", "application/grpc"),
        ("user-agent", f"gpu-steward/{__version__}"),
        ("grpc-timeout", f"{left_ms}m"),
    ]


def _left_s(until_s: float) -> float:
    left_s = until_s - time.monotonic()
    if left_s <= 0:
        raise TimeoutError("no answer in time")
    return left_s


def _take(event: h2.events.Event, *, http: h2.connection.H2Connection, answer: _Answer) -> None:
    if isinstance(event, h2.events.ResponseReceived | h2.events.TrailersReceived):
        answer.headers |= {str(name): str(value) for name, value in event.headers or ()}
    elif isinstance(event, h2.events.DataReceived):
        answer.body += event.data
        if len(answer.body) > LARGEST_ANSWER_BYTES:
            raise NotGrpcError(f"an answer of more than {LARGEST_ANSWER_BYTES:,} bytes")
        http.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
    elif isinstance(event, h2.events.StreamEnded):
        answer.is_ended = True
    elif isinstance(event, h2.events.StreamReset | h2.events.ConnectionTerminated):
        raise NotGrpcError(f"the server broke off (error {event.error_code})")


def _message(answer: _Answer) -> bytes:
    """Return the one message of an answer that ended well."""
    headers = answer.headers
    is_grpc = headers.get("content-type", "").startswith("application/grpc")
    if headers.get(":status") != "200" or not is_grpc or "grpc-status" not in headers:
        raise NotGrpcError(f"HTTP {headers.get(':status')}, {headers.get('content-type')}")
    if headers["grpc-status"] != OK:
        raise StatusError(headers["grpc-status"], unquote(headers.get("grpc-message", "")))
    if len(answer.body) < _PREFIX.size:
        raise NotGrpcError("an answer without a message")
    is_compressed, size = _PREFIX.unpack_from(answer.body)
    message = bytes(answer.body[_PREFIX.size :])
    if is_compressed or size != len(message):
        raise NotGrpcError(f"{len(message)} bytes where {size} were announced")
    return message
