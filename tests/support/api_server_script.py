"""A small real HTTP server on 127.0.0.1 that plays an API server by script, well and badly.

Each request takes the next reply that is written for it; raw bytes go out, so that half lines, cut
connections and long silences happen exactly where the script has them.
"""

from __future__ import annotations

import json
import socket
import threading
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import parse_qsl, urlsplit

from tests.support.accepting import accepting

Document: TypeAlias = dict[str, Any]


class Ending(Enum):
    """How an answer ends."""

    CLEAN = "clean"
    CUT = "cut"
    """The connection closes within the answer."""
    HANG = "hang"
    """Nothing more comes, and the connection stays open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One answer, sent in pieces."""

    pieces: tuple[bytes, ...] = ()
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    ending: Ending = Ending.CLEAN
    is_headless: bool = False
    """Not even a status line is sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a client asked."""

    verb: str
    """``list``, ``watch``, ``get`` (anything else) or ``post``."""
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes


def thing(
    name: str, version: int, *, uid: str | None = None, namespace: str | None = "a"
) -> Document:
    """Return a small object."""
    metadata: Document = {
        "name": name,
        "uid": uid or f"uid-{name}",
        "resourceVersion": str(version),
    }
    if namespace is not None:
        metadata["namespace"] = namespace
    return {"metadata": metadata, "spec": {"size": version}}


def listed(
    *objects: Document, version: int = 10, more: str = "", ending: Ending = Ending.CLEAN
) -> Reply:
    """Return a page of a list; ``more`` asks for the next."""
    metadata: Document = {"resourceVersion": str(version)}
    if more:
        metadata["continue"] = more
    body = json.dumps({"kind": "List", "metadata": metadata, "items": list(objects)}).encode()
    return Reply(pieces=(body,), ending=ending)


def event(kind: str, found: Document) -> bytes:
    """Return one line of a watch."""
    return json.dumps({"type": kind, "object": found}).encode() + b"\n"


def bookmark(version: int) -> bytes:
    """Return the line that says how far the watch is."""
    return event("BOOKMARK", {"kind": "Thing", "metadata": {"resourceVersion": str(version)}})


def failure(code: int, reason: str = "", message: str = "", **details: object) -> Document:
    """Return the object with which an API server says no."""
    return {
        "kind": "Status",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": message,
        "details": details,
    }


def refused(code: int, reason: str = "", message: str = "", **details: object) -> Reply:
    """Return an answer that says no."""
    body = json.dumps(failure(code, reason, message, **details)).encode()
    return Reply(pieces=(body,), status=code)


def watched(*lines: bytes, ending: Ending = Ending.HANG) -> Reply:
    """Return a watch that tells these lines one by one."""
    return Reply(pieces=lines, ending=ending)


@dataclass(slots=True)
class ScriptedApiServer:
    """A running server; the script may grow while it runs."""

    port: int
    script: dict[tuple[str, str], deque[Reply]] = field(default_factory=lambda: defaultdict(deque))
    """Replies by verb and path; the last of each stays, a watch without one hangs."""
    kinds: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Plurals by group and version, ``""`` for the core: ``{"batch/v1": ("jobs",)}``."""
    requests: list[Request] = field(default_factory=list)
    closing: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def url(self) -> str:
        """Return the server's address."""
        return f"http://127.0.0.1:{self.port}"

    def plan(self, verb: str, path: str, *replies: Reply) -> None:
        """Write the next replies for one verb and path."""
        with self.lock:
            self.script[verb, path].extend(replies)

    def asked(self, verb: str, path: str) -> list[Request]:
        """Return what was asked so far."""
        with self.lock:
            return [one for one in self.requests if (one.verb, one.path) == (verb, path)]

    def kubeconfig(self, folder: Path, *, token: str = "first", **user: str) -> Path:  # noqa: S107 - of a script
        """Write a kubeconfig for this server; return its path."""
        path = folder / "kubeconfig"
        config = {
            "clusters": [{"name": "scripted", "cluster": {"server": self.url}}],
            "users": [{"name": "me", "user": user or {"token": token}}],
            "contexts": [{"name": "script", "context": {"cluster": "scripted", "user": "me"}}],
            "current-context": "script",
        }
        path.write_text(json.dumps(config), encoding="utf-8")
        return path

    def serve(self, connection: socket.socket) -> None:
        """Answer one request, then hang up."""
        with connection, suppress(OSError):
            connection.settimeout(10)
            request = _read_request(connection)
            with self.lock:
                self.requests.append(request)
                reply = self._reply_to(request)
            self._send(connection, reply)

    def _reply_to(self, request: Request) -> Reply:
        replies = self.script.get((request.verb, request.path))
        if replies:
            return replies.popleft() if len(replies) > 1 or request.verb == "watch" else replies[0]
        if request.verb == "watch":
            return watched()
        return self._discovery(request.path) or refused(404, "NotFound", "no such path")

    def _discovery(self, path: str) -> Reply | None:
        if path == "/apis":
            return _json({"groups": list(_groups(self.kinds))})
        root = "" if path == "/api/v1" else path.removeprefix("/apis/")
        if root not in self.kinds:
            return None
        verbs = ["get", "list", "watch"]
        return _json({"resources": [{"name": one, "verbs": verbs} for one in self.kinds[root]]})

    def _send(self, connection: socket.socket, reply: Reply) -> None:
        if not reply.is_headless:
            head = [f"HTTP/1.1 {reply.status} Scripted", "connection: close"]
            head += ["transfer-encoding: chunked", *(f"{n}: {v}" for n, v in reply.headers)]
            connection.sendall(("\r\n".join(head) + "\r\n\r\n").encode())
            for piece in reply.pieces:
                connection.sendall(b"%x\r\n%s\r\n" % (len(piece), piece))
        if reply.ending is Ending.HANG or reply.is_headless:
            self._hold(connection)
        elif reply.ending is Ending.CLEAN:
            connection.sendall(b"0\r\n\r\n")

    def _hold(self, connection: socket.socket) -> None:
        """Say nothing until the client hangs up or the server ends."""
        connection.settimeout(0.05)
        while not self.closing.is_set():
            with suppress(TimeoutError):
                if not connection.recv(1):
                    return


def _json(document: Document) -> Reply:
    return Reply(pieces=(json.dumps(document).encode(),))


def _groups(kinds: Iterable[str]) -> Iterator[Document]:
    for group in sorted({kind.partition("/")[0] for kind in kinds if kind}):
        versions = [kind.partition("/")[2] for kind in kinds if kind.startswith(f"{group}/")]
        yield {"name": group, "versions": [{"version": one} for one in versions]}


def _read_request(connection: socket.socket) -> Request:
    head, body = b"", b""
    while b"\r\n\r\n" not in head:
        piece = connection.recv(65_536)
        if not piece:
            raise ConnectionError
        head += piece
    head, _, body = head.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {
        name.lower(): value.strip() for name, _, value in (one.partition(":") for one in lines)
    }
    while len(body) < int(headers.get("content-length", 0)):
        body += connection.recv(65_536)
    method, target, _ = first.split(" ")
    parts = urlsplit(target)
    query = dict(parse_qsl(parts.query))
    return Request(
        verb=_verb(method, query), path=parts.path, query=query, headers=headers, body=body
    )


def _verb(method: str, query: Mapping[str, str]) -> str:
    if method != "GET":
        return method.lower()
    if "watch" in query:
        return "watch"
    return "list" if "limit" in query else "get"


@contextmanager
def scripted_api_server(**kinds: tuple[str, ...]) -> Iterator[ScriptedApiServer]:
    """Serve on a free port of 127.0.0.1 for the length of the block."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)
    server = ScriptedApiServer(listener.getsockname()[1], kinds=dict(kinds))
    with accepting(listener, server.serve, closing=server.closing):
        yield server
