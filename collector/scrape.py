"""Reads one target over HTTP: all of its answer in time and within the limit, or why not.

What can go wrong with a target ends here as a ``Refusal`` with one stable reason; nothing is
parsed.
"""

from __future__ import annotations

import asyncio
import errno
import json
import re
import socket
import ssl
import zlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import httpx

from steward.errors import SourceError
from steward.units import MIB_BYTES
from steward.version import __version__

REQUEST_HEADERS: Final = {
    "accept": "text/plain;version=0.0.4,*/*;q=0.1",
    "accept-encoding": "gzip",
    "user-agent": f"steward-collect/{__version__}",
}
_HTML_START: Final = re.compile(rb"\s*<(!doctype|html|head|body|\?xml)", re.IGNORECASE)
_JSON_START: Final = re.compile(rb"\s*[\[{]\s*[\[{\"\]}0-9]")
_STREAM_PIECE_BYTES: Final = 65_536


class Reason(StrEnum):
    """Why a scrape brought nothing; kept in ``scrape.reason``."""

    REFUSED = "connection_refused"
    UNKNOWN_HOST = "unknown_host"
    UNREACHABLE = "unreachable"
    TLS = "tls"
    BROKEN = "broken_answer"
    TIMEOUT = "timeout"
    TOO_LARGE = "too_large"
    REDIRECT = "redirect"
    HTTP_STATUS = "http_status"
    ENCODING = "encoding"
    NOT_EXPOSITION = "not_exposition"
    EMPTY = "empty"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """What kept a target from being read."""

    reason: Reason
    message: str
    hint: str
    body_bytes: int = 0
    """Bytes of the answer that were read before it was given up."""

    def error(self) -> SourceError:
        """Return the refusal as the failure that a person sees."""
        return SourceError(self.message, hint=self.hint)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A target's whole answer, decompressed."""

    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchLimits:
    """How long and how much one target may answer."""

    timeout_s: float
    """For connecting, waiting and the whole body together, not for each read."""
    body_limit_bytes: int = 64 * MIB_BYTES
    """After decompression; an answer of exactly this size is still read."""


class _Refused(Exception):  # noqa: N818 - carries a Refusal out of the reading, never leaves here
    """Ends the reading of an answer."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


def open_client() -> httpx.AsyncClient:
    """Return a client for scraping: no proxies, no redirects, no limit on connections.

    Connections are not kept: a thousand idle ones would cost a thousand file descriptors.
    """
    return httpx.AsyncClient(
        headers=REQUEST_HEADERS,
        verify=ssl.create_default_context(),
        limits=httpx.Limits(max_connections=None, max_keepalive_connections=0),
        timeout=None,  # noqa: S113 - one deadline for the whole scrape instead of one per read
        trust_env=False,
        follow_redirects=False,
    )


async def fetch(client: httpx.AsyncClient, url: str, *, limits: FetchLimits) -> Page | Refusal:
    """Return the target's answer, or the one reason why there is none.

    Args:
        client: from ``open_client``.
        url: from ``collector.discovery``.
        limits: the deadline for everything together, and the largest body.
    """
    try:
        async with asyncio.timeout(limits.timeout_s):
            async with client.stream("GET", url) as response:
                return await _read(response, url=url, limits=limits)
    except TimeoutError:
        return Refusal(
            reason=Reason.TIMEOUT,
            message=f"{url} did not finish its answer within {limits.timeout_s:g} s",
            hint="look why the exporter is slow, or raise collect.timeout_s",
        )
    except _Refused as refused:
        return refused.refusal
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
        return _transport_refusal(url, error)


async def _read(response: httpx.Response, *, url: str, limits: FetchLimits) -> Page | Refusal:
    refusal = _status_refusal(response, url)
    if refusal is not None:
        return refusal
    body = bytearray()
    async for piece in _decompressed(response, url=url, limit_bytes=limits.body_limit_bytes):
        body += piece
        if len(body) > limits.body_limit_bytes:
            return Refusal(
                reason=Reason.TOO_LARGE,
                message=f"{url} answered with more than {limits.body_limit_bytes:,} bytes",
                hint="scrape an exporter, not a stream; or raise collect.body_limit_bytes",
                body_bytes=len(body),
            )
    refusal = _content_refusal(response, bytes(body[:512]), url=url, body_bytes=len(body))
    if refusal is not None:
        return refusal
    return Page(body=bytes(body))


def _status_refusal(response: httpx.Response, url: str) -> Refusal | None:
    """Return why this status brings no exposition, or None for 200."""
    status = response.status_code
    if status == httpx.codes.OK:
        return None
    if response.has_redirect_location:
        location = str(response.url.join(response.headers["location"]))
        return Refusal(
            reason=Reason.REDIRECT,
            message=f"{url} redirects to {location} (HTTP {status})",
            hint=f"scrape that address: {location}",
        )
    return Refusal(
        reason=Reason.HTTP_STATUS,
        message=f"{url} answered HTTP {status} {response.reason_phrase}".rstrip(),
        hint="open the address in a browser; the exporter's path is usually /metrics",
    )


def _content_refusal(
    response: httpx.Response, start: bytes, *, url: str, body_bytes: int
) -> Refusal | None:
    """Return why this body is no exposition as far as its type and first bytes tell, or None."""
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    looks = "HTML" if kind == "text/html" or _HTML_START.match(start) else None
    looks = "JSON" if kind.endswith("json") or _JSON_START.match(start) else looks
    looks = "binary data" if b"\x00" in start else looks
    if looks is None:
        return None
    return Refusal(
        reason=Reason.NOT_EXPOSITION,
        message=f"{url} answers with {looks}, not with a Prometheus exposition",
        hint="give the exporter's own address, usually http://HOST:PORT/metrics",
        body_bytes=body_bytes,
    )


async def _decompressed(
    response: httpx.Response, *, url: str, limit_bytes: int
) -> AsyncIterator[bytes]:
    """Yield the body in pieces of bounded size, however well it was compressed."""
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if encoding in {"", "identity"}:
        async for raw in response.aiter_raw():
            yield raw
    elif encoding in {"gzip", "x-gzip"}:
        async for piece in _gunzipped(response, url=url, limit_bytes=limit_bytes):
            yield piece
    else:
        raise _Refused(_encoding_refusal(url, f"is encoded as {encoding!r}"))


async def _gunzipped(
    response: httpx.Response, *, url: str, limit_bytes: int
) -> AsyncIterator[bytes]:
    # A few KB may stand for gigabytes, so no call may yield more than one piece.
    piece_bytes = min(limit_bytes + 1, _STREAM_PIECE_BYTES)
    stream = zlib.decompressobj(wbits=31)
    try:
        async for raw in response.aiter_raw():
            pending = raw
            while pending and not stream.eof:
                yield stream.decompress(pending, piece_bytes)
                pending = stream.unconsumed_tail
                await asyncio.sleep(0)
        yield stream.flush()
    except zlib.error as error:
        raise _Refused(_encoding_refusal(url, f"is broken gzip ({error})")) from error
    if not stream.eof:
        raise _Refused(_encoding_refusal(url, "is gzip that ends too early"))


def _encoding_refusal(url: str, fault: str) -> Refusal:
    return Refusal(
        reason=Reason.ENCODING,
        message=f"the answer of {url} {fault}",
        hint="let the exporter answer in plain text or gzip",
    )


def _transport_refusal(url: str, error: Exception) -> Refusal:
    """Return the refusal for a connection that failed."""
    cause = _root_cause(error)
    if isinstance(cause, ssl.SSLError):
        detail, hint = f"TLS failed: {cause}", "check the certificate and its authority"
        return Refusal(reason=Reason.TLS, message=f"{url}: {detail}", hint=hint)
    if isinstance(cause, socket.gaierror):
        message = f"{url}: the host name is not known ({cause.strerror})"
        return Refusal(reason=Reason.UNKNOWN_HOST, message=message, hint="check the host name")
    if isinstance(cause, ConnectionRefusedError) or _errno(cause) == errno.ECONNREFUSED:
        message = f"{url}: connection refused, nothing listens there"
        return Refusal(reason=Reason.REFUSED, message=message, hint="start the exporter")
    if isinstance(error, httpx.ConnectError | OSError):
        message = f"{url} cannot be reached: {cause}"
        return Refusal(reason=Reason.UNREACHABLE, message=message, hint="check route and firewall")
    return Refusal(
        reason=Reason.BROKEN,
        message=f"{url} broke off its answer: {json.dumps(str(cause))}",
        hint="look into the exporter's log",
    )


def _root_cause(error: BaseException) -> BaseException:
    """Return the first failure of the chain, below what the HTTP library made of it."""
    seen = error
    if isinstance(error, BaseExceptionGroup):
        seen = error.exceptions[0]
    below = seen.__cause__ or seen.__context__
    return seen if below is None else _root_cause(below)


def _errno(error: BaseException) -> int | None:
    return error.errno if isinstance(error, OSError) else None
