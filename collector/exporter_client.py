"""A lean HTTP client for exporters: one kept connection per target, one answer at a time.

A general client costs a millisecond of CPU per request, more than everything else that is done
with an exporter's answer. What an answer means is decided in ``scrape``; here are only the bytes.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_address
from types import TracebackType
from typing import Final, Self, TypeVar, cast
from urllib.parse import urlsplit

from collector.exporter_answer import Answer, Exchange, NoAnswerError

RESOLVER_THREADS: Final = 64
"""Names are resolved in threads; a name server that hangs for some must not hold up the rest."""
NEXT_ADDRESS_S: Final = 0.25
"""Of a host with several addresses the next one is tried beside the first after this long."""
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_Opened = TypeVar("_Opened")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Endpoint:
    """Where a target is asked, and with which words."""

    host: str
    port: int
    is_tls: bool
    request: bytes


class _Connection(asyncio.Protocol):
    """One connection; asks one thing at a time and is closed after anything unexpected."""

    __slots__ = ("_exchange", "_transport")

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._exchange: Exchange | None = None

    @property
    def is_open(self) -> bool:
        """Tell whether another request may be sent."""
        return self._transport is not None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if self._exchange is None:
            self.close()
        else:
            self._exchange.feed(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        if self._exchange is not None:
            self._exchange.end(exc)

    async def ask(self, request: bytes, *, body_limit_bytes: int) -> Answer:
        """Send the request and return its answer.

        Raises:
            NoAnswerError: the connection was closed before a byte of the answer came.
            BrokenAnswerError: it broke later, or spoke no HTTP.
        """
        if self._transport is None:
            raise NoAnswerError("the connection is closed")
        exchange = Exchange(asyncio.get_running_loop(), body_limit_bytes=body_limit_bytes)
        self._exchange = exchange
        try:
            self._transport.write(request)
            return await exchange.answer
        finally:
            self._exchange = None
            if not exchange.is_reusable:
                exchange.end(None)
                self.close()

    def close(self) -> None:
        """Hang up at once."""
        if self._transport is not None:
            self._transport.abort()
            self._transport = None


class ExporterClient:
    """Asks many exporters, each over a connection of its own that is kept for the next time.

    No redirects, no proxies, no cookies. TLS is checked against the machine's authorities.

    Args:
        headers: sent with every request.
    """

    def __init__(self, headers: dict[str, str]) -> None:
        """Open nothing yet."""
        self._header_lines = "".join(f"{name}: {text}\r\n" for name, text in headers.items())
        self._endpoints: dict[str, _Endpoint] = {}
        self._kept: dict[str, _Connection] = {}
        self._tls: ssl.SSLContext | None = None
        self._resolver: ThreadPoolExecutor | None = None

    async def __aenter__(self) -> Self:
        """Return the client."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Hang up everywhere."""
        for url in list(self._endpoints):
            self.forget(url)
        if self._resolver is not None:
            self._resolver.shutdown(wait=False, cancel_futures=True)
        await asyncio.sleep(0)  # lets the loop close what was hung up

    async def get(self, url: str, *, body_limit_bytes: int) -> Answer:
        """Return what the URL answers, its body as it came over the wire.

        Args:
            url: from ``collector.discovery``.
            body_limit_bytes: reading ends beyond it; the answer then says so.

        Raises:
            OSError: the target could not be connected to.
            BrokenAnswerError: the connection broke, or what came is not HTTP.
        """
        endpoint = self._endpoint(url)
        kept = self._kept.pop(url, None)
        if kept is not None and kept.is_open:
            try:
                return await self._ask(kept, url, body_limit_bytes=body_limit_bytes)
            except NoAnswerError:
                pass  # closed by the other side while nobody asked: ask anew
        opened = await self._open(endpoint)
        return await self._ask(opened, url, body_limit_bytes=body_limit_bytes)

    def forget(self, url: str) -> None:
        """Hang up on a target that is no longer asked."""
        self._endpoints.pop(url, None)
        kept = self._kept.pop(url, None)
        if kept is not None:
            kept.close()

    async def _ask(self, connection: _Connection, url: str, *, body_limit_bytes: int) -> Answer:
        request = self._endpoint(url).request
        answer = await connection.ask(request, body_limit_bytes=body_limit_bytes)
        if connection.is_open:
            self._kept[url] = connection
        return answer

    def _endpoint(self, url: str) -> _Endpoint:
        endpoint = self._endpoints.get(url)
        if endpoint is None:
            parts = urlsplit(url)
            place = f"{parts.path}?{parts.query}" if parts.query else parts.path
            head = f"GET {place} HTTP/1.1\r\nhost: {parts.netloc}\r\n{self._header_lines}\r\n"
            endpoint = self._endpoints[url] = _Endpoint(
                host=parts.hostname or "",
                port=parts.port or _DEFAULT_PORTS[parts.scheme],
                is_tls=parts.scheme == "https",
                request=head.encode(),
            )
        return endpoint

    async def _open(self, endpoint: _Endpoint) -> _Connection:
        """Connect to the first of the host's addresses that answers."""
        openers = [
            partial(self._open_address, address, endpoint=endpoint)
            for address in await self._addresses(endpoint)
        ]
        return await first_opened(openers, next_s=NEXT_ADDRESS_S, close=_Connection.close)

    async def _open_address(self, address: str, *, endpoint: _Endpoint) -> _Connection:
        _, connection = await asyncio.get_running_loop().create_connection(
            _Connection,
            address,
            endpoint.port,
            ssl=self._tls_context() if endpoint.is_tls else None,
            server_hostname=endpoint.host if endpoint.is_tls else None,
        )
        return connection

    async def _addresses(self, endpoint: _Endpoint) -> Sequence[str]:
        """Return the host's IP addresses, the preferred first.

        Raises:
            socket.gaierror: the name does not resolve.
        """
        if _is_ip_address(endpoint.host):
            return [endpoint.host]
        if self._resolver is None:
            self._resolver = ThreadPoolExecutor(RESOLVER_THREADS, thread_name_prefix="resolver")
        found = await asyncio.get_running_loop().run_in_executor(
            self._resolver, _resolve, endpoint.host, endpoint.port
        )
        return list(dict.fromkeys(found))

    def _tls_context(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = ssl.create_default_context()
        return self._tls


async def first_opened(
    openers: Sequence[Callable[[], Awaitable[_Opened]]],
    *,
    next_s: float,
    close: Callable[[_Opened], None],
) -> _Opened:
    """Return what the first opener to succeed gives.

    Args:
        openers: tried in order.
        next_s: the next one starts this long after the one before, or at once where that failed.
        close: ends what an opener gave too late to be used.

    Raises:
        OSError: all of them failed; the first one's failure.
    """
    if len(openers) == 1:
        return await openers[0]()
    waiting = deque(openers)
    attempts: set[asyncio.Future[_Opened]] = set()
    failures: list[OSError] = []
    try:
        while waiting or attempts:
            if waiting:
                attempts.add(asyncio.ensure_future(waiting.popleft()()))
            ended, _ = await asyncio.wait(
                attempts,
                timeout=next_s if waiting else None,
                return_when=asyncio.FIRST_COMPLETED,
            )
            for attempt in ended:
                attempts.remove(attempt)
                failure = attempt.exception()
                if failure is None:
                    return attempt.result()
                if not isinstance(failure, OSError):
                    raise failure
                failures.append(failure)
        raise failures[0]
    finally:
        for attempt in attempts:
            attempt.add_done_callback(partial(_close_late, close))
            attempt.cancel()


def _close_late(close: Callable[[_Opened], None], attempt: asyncio.Future[_Opened]) -> None:
    if not attempt.cancelled() and attempt.exception() is None:
        close(attempt.result())


def _is_ip_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _resolve(host: str, port: int) -> list[str]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError as error:  # an empty or too long part of the name
        raise socket.gaierror(socket.EAI_NONAME, f"no host can have this name: {error}") from error
    return [str(place[0]) for *_, place in found]
