"""One connection to an API server: raw bytes in, raw bytes out, every failure one clear error.

Address, credentials and TLS are those of the ``kubernetes`` package; its typed models are never
built. Credentials that the server refuses are loaded anew once before that is told: tokens are
replaced on disk, and exec plugins hand out new ones.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Final
from urllib.parse import urlencode

import urllib3
from kubernetes.client import Configuration
from kubernetes.client.rest import RESTClientObject
from kubernetes.config import ConfigException
from urllib3.exceptions import HTTPError

from collector.sources.kubernetes.api_error import (
    ApiError,
    ApiFault,
    Question,
    error_of,
    status_of,
)
from collector.sources.kubernetes.credentials import Origin, load_configuration
from collector.sources.kubernetes.sockets import KEEPALIVE_OPTIONS, OpenSockets, watch_sockets
from collector.sources.kubernetes.wire_faults import fault_of, wire_error, words_of
from steward.units import MIB_BYTES
from steward.version import __version__

PIECE_BYTES: Final = 65_536
BODY_LIMIT_BYTES: Final = 256 * MIB_BYTES
LINE_LIMIT_BYTES: Final = 64 * MIB_BYTES
"""Of one event: forty times the largest object that etcd takes."""
REFUSAL_LIMIT_BYTES: Final = MIB_BYTES
CONNECTIONS: Final = 64
RELOAD_S: Final = 1.0
"""Refused credentials are loaded anew at most this often: it may start a plugin."""
HEADERS: Final = {
    "accept": "application/json",
    "user-agent": f"steward-collect/{__version__}",
}


class ApiAccess:
    """A pool of connections to one API server; safe for many threads.

    Args:
        origin: where address and credentials are described.
        connect_s: for opening one connection.

    Raises:
        ApiError: the description is missing or broken; the server itself is not asked.
    """

    def __init__(self, origin: Origin | None = None, *, connect_s: float = 5.0) -> None:
        """Load the credentials; nothing is sent yet."""
        self.origin = origin or Origin()
        self._connect_s = connect_s
        self._sockets = OpenSockets()
        self._lock = threading.Lock()
        self._load()

    @property
    def server(self) -> str:
        """Return the API server's address."""
        return str(self._configuration.host)

    def get(self, question: Question, *, answer_s: float) -> bytes:
        """Return the whole answer.

        Args:
            question: what to ask for.
            answer_s: for everything together, from the request to the last byte.

        Raises:
            ApiError: there is none.
        """
        return self._whole("GET", question, answer_s=answer_s, body=None)

    def post(self, question: Question, body: bytes, *, answer_s: float) -> bytes:
        """Send a JSON document and return the whole answer; else as ``get``."""
        return self._whole("POST", question, answer_s=answer_s, body=body)

    @contextmanager
    def lines(self, question: Question, *, silence_s: float) -> Iterator[Iterator[bytes]]:
        """Yield the lines of an endless answer as they come; the connection ends with the block.

        Args:
            question: a watch.
            silence_s: so long without a byte raises ``ApiError`` with ``ApiFault.TIMEOUT``.

        Raises:
            ApiError: the server refused, or the connection broke. What came of a line before that
                is its last line.
        """
        answer = self._asked("GET", question, read_s=silence_s, body=None)
        try:
            yield lines_of(self._bounded(answer, question))
        finally:
            answer.close()

    def close(self) -> None:
        """End every connection; threads that read from one get ``ApiFault.CLOSED`` at once."""
        self._sockets.shut_down()
        self._pool.clear()

    def _load(self) -> None:
        configuration = load_configuration(self.origin)
        configuration.retries = False
        configuration.connection_pool_maxsize = CONNECTIONS
        configuration.socket_options = list(KEEPALIVE_OPTIONS)
        pool = RESTClientObject(configuration).pool_manager
        watch_sockets(pool, self._sockets)
        self._configuration, self._pool = configuration, pool
        self._loaded_s = time.monotonic()

    def _whole(
        self, method: str, question: Question, *, answer_s: float, body: bytes | None
    ) -> bytes:
        until_s = time.monotonic() + answer_s
        answer = self._asked(method, question, read_s=answer_s, body=body)
        pieces: list[bytes] = []
        size_bytes = 0
        try:
            for piece in self._pieces(answer, question):
                pieces.append(piece)
                size_bytes += len(piece)
                if size_bytes > BODY_LIMIT_BYTES:
                    raise self._error(ApiFault.TOO_LARGE, question, "the answer is too large")
                if time.monotonic() > until_s:
                    what = f"the answer took longer than {answer_s:g} s"
                    raise self._error(ApiFault.TIMEOUT, question, what)
        except ApiError:
            answer.close()
            raise
        answer.release_conn()
        return b"".join(pieces)

    def _asked(
        self, method: str, question: Question, *, read_s: float, body: bytes | None
    ) -> urllib3.BaseHTTPResponse:
        """Return an answer of status 200 whose body is not yet read."""
        configuration = self._configuration
        answer = self._sent(method, question, read_s=read_s, body=body)
        if answer.status == HTTPStatus.UNAUTHORIZED:
            answer.close()
            self._reload(instead_of=configuration)
            answer = self._sent(method, question, read_s=read_s, body=body)
        if HTTPStatus.OK <= answer.status < HTTPStatus.MULTIPLE_CHOICES:
            return answer
        said = self._beginning(answer, question)
        answer.close()
        retry_after = answer.headers.get("retry-after")
        status = status_of(said, code=answer.status, retry_after=retry_after)
        raise error_of(status, question, server=self.server)

    def _sent(
        self, method: str, question: Question, *, read_s: float, body: bytes | None
    ) -> urllib3.BaseHTTPResponse:
        url = self.server.rstrip("/") + question.path
        if question.query:
            url += "?" + urlencode(question.query)
        try:
            return self._pool.request(
                method,
                url,
                body=body,
                headers={**HEADERS, **self._credentials(question)},
                timeout=urllib3.Timeout(connect=self._connect_s, read=read_s),
                preload_content=False,
                decode_content=False,
                redirect=False,
                retries=False,
            )
        except HTTPError as error:
            raise self._wire_error(error, question) from error

    def _pieces(self, answer: urllib3.BaseHTTPResponse, question: Question) -> Iterator[bytes]:
        """Yield the body in pieces as they arrive, each at most ``PIECE_BYTES``."""
        try:
            while piece := answer.read1(PIECE_BYTES):
                yield piece
        except HTTPError as error:
            raise self._wire_error(error, question) from error

    def _bounded(self, answer: urllib3.BaseHTTPResponse, question: Question) -> Iterator[bytes]:
        """Yield the body in pieces, as long as its lines have ends."""
        line_bytes = 0
        for piece in self._pieces(answer, question):
            end = piece.rfind(b"\n")
            line_bytes = line_bytes + len(piece) if end < 0 else len(piece) - end
            if line_bytes > LINE_LIMIT_BYTES:
                raise self._error(ApiFault.TOO_LARGE, question, "an event has no end")
            yield piece

    def _beginning(self, answer: urllib3.BaseHTTPResponse, question: Question) -> bytes:
        """Return what a refusal says, as far as anybody would read it."""
        said = b""
        for piece in self._pieces(answer, question):
            said += piece
            if len(said) > REFUSAL_LIMIT_BYTES:
                break
        return said

    def _credentials(self, question: Question) -> dict[str, str]:
        """Return the headers that say who asks; tokens about to expire are renewed first."""
        with self._lock:
            try:
                entry = self._configuration.auth_settings().get("BearerToken")
            except (ConfigException, OSError) as error:
                what = f"the credentials could not be renewed: {error}"
                raise self._error(ApiFault.CREDENTIALS, question, what) from error
        token = None if entry is None else entry["value"]
        if token is not None and not (token.isascii() and token.isprintable()):
            what = "its token has characters that no token has, such as a line break"
            raise self._error(ApiFault.CREDENTIALS, question, what)
        return {"content-type": "application/json"} | ({"authorization": token} if token else {})

    def _reload(self, *, instead_of: Configuration) -> None:
        """Load the credentials anew, unless that was done just now."""
        with self._lock:
            is_due = time.monotonic() - self._loaded_s > RELOAD_S
            if self._configuration is instead_of and is_due:
                self._load()

    def _wire_error(self, error: HTTPError, question: Question) -> ApiError:
        return self._error(fault_of(error), question, words_of(error))

    def _error(self, fault: ApiFault, question: Question, what: str) -> ApiError:
        if self._sockets.is_closed:
            fault, what = ApiFault.CLOSED, "the collector closed its connections"
        return wire_error(fault, question, what, server=self.server)


def lines_of(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield complete lines without their ends, and what is left after the last one, if anything."""
    begun: list[bytes] = []
    for piece in pieces:
        first, *others = piece.split(b"\n")
        begun.append(first)
        for other in others:
            yield b"".join(begun)
            begun = [other]
    if rest := b"".join(begun):
        yield rest
