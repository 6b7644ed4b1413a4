"""A real HTTP server on 127.0.0.1 that gives the answers it is told, one after the other."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True, kw_only=True)
class Said:
    """One answer."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    is_silent: bool = False
    """Accept the question and never answer."""


@dataclass(kw_only=True)
class AnsweringServer:
    """A running server; the last answer is given for ever."""

    url: str
    answers: list[Said]
    questions: list[tuple[str, str, dict[str, str], str]] = field(default_factory=list)
    """Method, path, headers (names in small letters) and body of each question."""
    closing: threading.Event = field(default_factory=threading.Event)


def success(data: object) -> Said:
    """Return a good answer of the API."""
    return Said(body=json.dumps({"status": "success", "data": data}).encode())


def vector(*values: tuple[dict[str, str], float, str]) -> Said:
    """Return a good answer to an instant query."""
    result = [{"metric": labels, "value": [at, text]} for labels, at, text in values]
    return success({"resultType": "vector", "result": result})


def matrix(*series: tuple[dict[str, str], list[tuple[float, str]]]) -> Said:
    """Return a good answer to a range selector."""
    result = [{"metric": labels, "values": values} for labels, values in series]
    return success({"resultType": "matrix", "result": result})


def fault(status: int, kind: str, text: str) -> Said:
    """Return an error of the API."""
    body = json.dumps({"status": "error", "errorType": kind, "error": text}).encode()
    return Said(status=status, body=body)


@contextmanager
def answering_server(answers: Sequence[Said]) -> Iterator[AnsweringServer]:
    """Serve on a free port of 127.0.0.1 for the length of the block."""

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            length = int(self.headers.get("content-length", 0))
            asked = self.rfile.read(length).decode()
            heads = {name.lower(): text for name, text in self.headers.items()}
            running.questions.append((self.command, self.path, heads, asked))
            said = running.answers.pop(0) if len(running.answers) > 1 else running.answers[0]
            if said.is_silent:
                running.closing.wait(20)
                return
            self.send_response(said.status)
            for name, text in said.headers.items():
                self.send_header(name, text)
            self.send_header("content-length", str(len(said.body)))
            self.end_headers()
            self.wfile.write(said.body)

        do_GET = do_POST = answer  # noqa: N815 - the names http.server looks for

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    running = AnsweringServer(
        url=f"http://127.0.0.1:{server.server_address[1]}", answers=list(answers)
    )
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield running
    finally:
        running.closing.set()
        server.shutdown()
        thread.join()
        server.server_close()
