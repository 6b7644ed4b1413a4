"""Reads one target over HTTP: all of its answer in time and within the limit, or why not.

What can go wrong with a target ends here as a ``Refusal`` with one stable reason; nothing is
parsed.
"""

from __future__ import annotations

import asyncio
import json
import re
import socket
import ssl
import zlib
from dataclasses import dataclass
from enum import StrEnum
from typing import Final
from urllib.parse import urljoin

from collector.exporter_answer import OK, Answer, BrokenAnswerError
from collector.exporter_client import ExporterClient
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
_PIECE_BYTES: Final = 262_144
_PLAIN: Final = frozenset({"", "identity"})
_GZIP: Final = frozenset({"gzip", "x-gzip"})
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})


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
    date: str | None = None
    """What the server says the time is, as its ``Date`` header has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchLimits:
    """How long and how much one target may answer."""

    timeout_s: float
    """For connecting, waiting and the whole body together, not for each read."""
    body_limit_bytes: int = 64 * MIB_BYTES
    """After decompression; an answer of exactly this size is still read."""


def open_client() -> ExporterClient:
    """Return a client for scraping: no proxies, no redirects, a kept connection per target."""
    return ExporterClient(REQUEST_HEADERS)


async def fetch(client: ExporterClient, url: str, *, limits: FetchLimits) -> Page | Refusal:
    """Return the target's answer, or the one reason why there is none.

    Args:
        client: from ``open_client``.
        url: from ``collector.discovery``.
        limits: the deadline for everything together, and the largest body.
    """
    deadline = asyncio.timeout(limits.timeout_s)
    try:
        async with deadline:
            answer = await client.get(url, body_limit_bytes=limits.body_limit_bytes)
            return await _page(answer, url=url, limits=limits)
    except (OSError, BrokenAnswerError) as error:  # a time-out of the deadline is an OSError too
        return _timeout_refusal(url, limits) if deadline.expired() else _failure(url, error)


def _timeout_refusal(url: str, limits: FetchLimits) -> Refusal:
    return Refusal(
        reason=Reason.TIMEOUT,
        message=f"{url} did not finish its answer within {limits.timeout_s:g} s",
        hint="look why the exporter is slow, or raise collect.timeout_s",
    )


async def _page(answer: Answer, *, url: str, limits: FetchLimits) -> Page | Refusal:
    """Return the answer's body decompressed, or why it is none."""
    if answer.status != OK:
        return _status_refusal(answer, url)
    body = await _body(answer, url=url, limit_bytes=limits.body_limit_bytes)
    if isinstance(body, Refusal):
        return body
    if len(body) > limits.body_limit_bytes:
        return _size_refusal(url, limits, body_bytes=len(body))
    refusal = _content_refusal(answer, body[:512], url=url, body_bytes=len(body))
    return refusal or Page(body=body, date=answer.headers.get("date"))


async def _body(answer: Answer, *, url: str, limit_bytes: int) -> bytes | Refusal:
    """Return the body decompressed; one beyond the limit is cut a little after it."""
    encoding = answer.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in _PLAIN | _GZIP:
        return _encoding_refusal(url, f"is encoded as {encoding!r}")
    if encoding in _PLAIN:
        return answer.body
    body = await _gunzipped(answer.body, url=url, limit_bytes=limit_bytes)
    if answer.is_cut and isinstance(body, Refusal):
        return answer.body  # compressed it is above the limit already
    return body


def _size_refusal(url: str, limits: FetchLimits, *, body_bytes: int) -> Refusal:
    return Refusal(
        reason=Reason.TOO_LARGE,
        message=f"{url} answered with more than {limits.body_limit_bytes:,} bytes",
        hint="scrape an exporter, not a stream; or raise collect.body_limit_bytes",
        body_bytes=body_bytes,
    )


def _status_refusal(answer: Answer, url: str) -> Refusal:
    """Return why this status brings no exposition."""
    status, location = answer.status, answer.headers.get("location")
    if status in _REDIRECTS and location is not None:
        location = urljoin(url, location)
        return Refusal(
            reason=Reason.REDIRECT,
            message=f"{url} redirects to {location} (HTTP {status})",
            hint=f"scrape that address: {location}",
        )
    return Refusal(
        reason=Reason.HTTP_STATUS,
        message=f"{url} answered HTTP {status} {answer.phrase}".rstrip(),
        hint="open the address in a browser; the exporter's path is usually /metrics",
    )


def _content_refusal(answer: Answer, start: bytes, *, url: str, body_bytes: int) -> Refusal | None:
    """Return why this body is no exposition as far as its type and first bytes tell, or None."""
    kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
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


async def _gunzipped(raw: bytes, *, url: str, limit_bytes: int) -> bytes | Refusal:
    """Return the decompressed body, cut a little beyond the limit however much it stands for."""
    # A few KB may stand for gigabytes, so no call may yield more than one piece.
    piece_bytes = min(limit_bytes + 1, _PIECE_BYTES)
    stream, pieces, size, pending = zlib.decompressobj(wbits=31), list[bytes](), 0, raw
    try:
        while pending and not stream.eof and size <= limit_bytes:
            pieces.append(stream.decompress(pending, piece_bytes))
            size += len(pieces[-1])
            pending = stream.unconsumed_tail
            if pending:
                await asyncio.sleep(0)  # the others' turn
    except zlib.error as error:
        return _encoding_refusal(url, f"is broken gzip ({error})")
    if not stream.eof and size <= limit_bytes:
        return _encoding_refusal(url, "is gzip that ends too early")
    return b"".join(pieces)


def _encoding_refusal(url: str, fault: str) -> Refusal:
    return Refusal(
        reason=Reason.ENCODING,
        message=f"the answer of {url} {fault}",
        hint="let the exporter answer in plain text or gzip",
    )


def _failure(url: str, error: Exception) -> Refusal:
    """Return the refusal for a connection that failed."""
    cause = error.__cause__ or error
    if isinstance(cause, ssl.SSLError):
        detail, hint = f"TLS failed: {cause}", "check the certificate and its authority"
        return Refusal(reason=Reason.TLS, message=f"{url}: {detail}", hint=hint)
    if isinstance(cause, socket.gaierror):
        message = f"{url}: the host name is not known ({cause.strerror})"
        return Refusal(reason=Reason.UNKNOWN_HOST, message=message, hint="check the host name")
    if isinstance(error, ConnectionRefusedError):
        message = f"{url}: connection refused, nothing listens there"
        return Refusal(reason=Reason.REFUSED, message=message, hint="start the exporter")
    if isinstance(error, OSError):
        message = f"{url} cannot be reached: {error}"
        return Refusal(reason=Reason.UNREACHABLE, message=message, hint="check route and firewall")
    return Refusal(
        reason=Reason.BROKEN,
        message=f"{url} broke off its answer: {json.dumps(str(error))}",
        hint="look into the exporter's log",
    )
