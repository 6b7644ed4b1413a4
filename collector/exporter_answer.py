"""One HTTP answer while it arrives: pieces from the wire in, status, headers and body out."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

OK: Final = 200
HEAD_LIMIT_BYTES: Final = 65_536
"""Status line and headers of an exporter are a few hundred bytes."""
_SWITCHING_PROTOCOLS: Final = 101


class BrokenAnswerError(Exception):
    """The connection broke within the answer, or what came is not HTTP."""


class NoAnswerError(BrokenAnswerError):
    """The connection ended before a byte of the answer came: of a kept one, a reason to retry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came back for one request."""

    status: int
    phrase: str
    headers: Mapping[str, str]
    """By name in lower case."""
    body: bytes
    """As it came over the wire; empty for another status than 200."""
    is_cut: bool
    """The body is longer than the limit: reading ended there."""


class Exchange:
    """One request's answer, read piece by piece; the ``on_`` methods are the parser's.

    Args:
        loop: resolves the answer.
        body_limit_bytes: reading ends beyond it.
    """

    __slots__ = (
        "_body",
        "_body_bytes",
        "_body_limit_bytes",
        "_head_bytes",
        "_headers",
        "_is_head_read",
        "_parser",
        "_phrase",
        "_status",
        "answer",
        "is_reusable",
    )

    def __init__(self, loop: asyncio.AbstractEventLoop, *, body_limit_bytes: int) -> None:
        """Start with nothing read."""
        self.answer: asyncio.Future[Answer] = loop.create_future()
        self.is_reusable = False
        """The whole answer was read and the connection may be asked again."""
        self._parser: HttpResponseParser | None = HttpResponseParser(self)
        self._headers: dict[str, str] = {}
        self._body: list[bytes] = []
        self._body_bytes = 0
        self._body_limit_bytes = body_limit_bytes
        self._head_bytes = 0
        self._is_head_read = False
        self._phrase = ""
        self._status = 0

    def feed(self, piece: bytes) -> None:
        """Read what came."""
        if self._parser is None:
            self.is_reusable = False  # more than was asked for
            return
        try:
            self._parser.feed_data(piece)
        except HttpParserUpgrade:
            self.is_reusable = False
        except HttpParserError as error:
            self.is_reusable = False
            self._fail(BrokenAnswerError(str(error)))
        if not self._is_head_read:
            self._head_bytes += len(piece)
            if self._head_bytes > HEAD_LIMIT_BYTES:
                self._fail(BrokenAnswerError("its head does not end"))

    def end(self, error: Exception | None) -> None:
        """Note that the connection ended: an answer without a length is then whole."""
        self.is_reusable = False
        if self._is_head_read and error is None and self._ends_with_connection():
            self._finish()
        elif self._head_bytes or self._is_head_read:
            broken = BrokenAnswerError("the connection was closed within the answer")
            broken.__cause__ = error
            self._fail(broken)
        else:
            silent = NoAnswerError("the connection was closed without an answer")
            silent.__cause__ = error
            self._fail(silent)

    def on_message_begin(self) -> None:
        """Notice a second answer, which was not asked for."""
        if self._parser is None:
            self.is_reusable = False

    def on_status(self, phrase: bytes) -> None:
        """Keep the words beside the status code."""
        self._phrase = phrase.decode("latin-1")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header; those that follow the body are passed over."""
        if not self._is_head_read:
            self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """Decide whether there is a body to wait for."""
        if self._parser is None:
            return
        self._status = self._parser.get_status_code()
        if self._is_interim():
            self._headers.clear()
            return
        self._is_head_read = True
        if self._status != OK:
            self._finish()

    def on_body(self, piece: bytes) -> None:
        """Keep a piece of the body, up to the limit."""
        self._body.append(piece)
        self._body_bytes += len(piece)
        if self._body_bytes > self._body_limit_bytes:
            self._finish(is_cut=True)

    def on_message_complete(self) -> None:
        """Hand the whole answer over."""
        if self._parser is not None and not self._is_interim():
            self.is_reusable = self._parser.should_keep_alive()
            self._finish()

    def _is_interim(self) -> bool:
        return self._status < OK and self._status != _SWITCHING_PROTOCOLS

    def _ends_with_connection(self) -> bool:
        return "content-length" not in self._headers and "transfer-encoding" not in self._headers

    def _finish(self, *, is_cut: bool = False) -> None:
        self._parser = None  # it refers to this exchange: a ring that would outlive the scrape
        if self.answer.done():
            return
        self.answer.set_result(
            Answer(
                status=self._status,
                phrase=self._phrase,
                headers=self._headers,
                body=self._body[0] if len(self._body) == 1 else b"".join(self._body),
                is_cut=is_cut,
            )
        )

    def _fail(self, error: Exception) -> None:
        self._parser = None
        if not self.answer.done():
            self.answer.set_exception(error)
