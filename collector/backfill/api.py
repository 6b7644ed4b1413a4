"""Asks a Prometheus server, or one that speaks its HTTP API: retries, and one clear error.

The only place that opens connections for the backfill. An answer that is too much for the server
or for us is told apart from one that failed: the caller asks for less.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, Self, TypeVar

import httpx
import msgspec

from collector.backfill.answers import (
    MATRIX,
    NAMES,
    TARGETS,
    VECTOR,
    ActiveTarget,
    InstantValue,
    RawSeries,
)
from collector.backfill.refusals import Refused, refusal_of
from collector.backfill.selectors import duration
from steward.errors import SourceError
from steward.period import Period
from steward.units import MIB_BYTES
from steward.version import __version__

ANSWER_LIMIT_BYTES: Final = 64 * MIB_BYTES
"""Of one answer: more is asked for in smaller pieces."""
PAUSES_S: Final = (1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0)
"""Between the tries of one question; a server that restarts is back within them."""
_MILLISECOND: Final = timedelta(milliseconds=1)
_Answer = TypeVar("_Answer")


class TooMuchError(Exception):
    """The answer is more than the server gives at once, or takes too long: ask for less."""

    def __init__(self, error: SourceError) -> None:
        """Keep what a person is told where less cannot be asked for."""
        super().__init__(error.message)
        self.error = error


@dataclass(slots=True, kw_only=True)
class PrometheusApi:
    """One server; use as a context so that its connection is closed."""

    url: str
    """From ``addresses.server_url``: without a slash at its end."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Sent with each question; they may carry a secret, so they appear in no message."""
    timeout_s: float = 120.0
    """For one question; told to the server as well."""
    pause: Callable[[float], None] = time.sleep
    retry_count: int = 0
    """Questions that were asked again, for the summary."""
    _client: httpx.Client | None = None

    def __enter__(self) -> Self:
        """Open the connection."""
        self._client = httpx.Client(
            headers={"user-agent": f"steward-import/{__version__}", **self.headers},
            verify=ssl.create_default_context(),
            timeout=httpx.Timeout(self.timeout_s, connect=10.0),
            trust_env=False,
            follow_redirects=False,
        )
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connection."""
        if self._client is not None:
            self._client.close()

    def check(self) -> None:
        """Ask the simplest question there is, once: a wrong address is told at once.

        Raises:
            SourceError: nothing answers, or what answers is not this API.
        """
        answer = self._try("/api/v1/query", {"query": "vector(1)"}, VECTOR, is_post=True)
        if isinstance(answer, Refused):
            raise answer.error

    def names(self, period: Period) -> list[str]:
        """Return the metric names that have samples in a period, as far as the index tells."""
        question = {"start": _stamp(period.from_at), "end": _stamp(period.until_at)}
        return self._ask("/api/v1/label/__name__/values", question, NAMES, is_post=False).data

    def targets(self) -> list[ActiveTarget]:
        """Return the targets scraped now; none where a server does not tell: long-term stores."""
        try:
            answer = self._ask("/api/v1/targets", {"state": "active"}, TARGETS, is_post=False)
        except (SourceError, TooMuchError):
            return []
        return answer.data.active

    def samples(self, selector: str, span: Period) -> list[RawSeries]:
        """Return the samples of a span as they were scraped, with their own times.

        A range selector in an instant query gives what is stored; a range query would give what is
        evaluated at steps. Servers differ in whether the left end belongs to it: it is cut here.

        Raises:
            TooMuchError: the span holds more than the server or we can take at once.
            SourceError: the server fails.
        """
        length = duration(span.length)
        question = {
            "query": f"{selector}[{length}]",
            "time": _stamp(span.until_at - _MILLISECOND),
            "timeout": f"{self.timeout_s:g}s",
        }
        series = self._ask("/api/v1/query", question, MATRIX).data.result
        return _without_earlier(series, from_s=span.from_at.timestamp())

    def vector(self, expression: str, *, at: datetime) -> list[InstantValue]:
        """Return an instant query's result at an instant.

        Raises:
            TooMuchError: as above.
            SourceError: the server fails.
        """
        question = {
            "query": expression,
            "time": _stamp(at),
            "timeout": f"{self.timeout_s:g}s",
        }
        return self._ask("/api/v1/query", question, VECTOR).data.result

    def _ask(
        self,
        path: str,
        question: Mapping[str, str],
        decoder: msgspec.json.Decoder[_Answer],
        *,
        is_post: bool = True,
    ) -> _Answer:
        """Ask until it is answered, refused for good, or the tries are used up."""
        for pause_s in (*PAUSES_S, None):
            answer = self._try(path, question, decoder, is_post=is_post)
            if not isinstance(answer, Refused):
                return answer
            if answer.is_too_much:
                raise TooMuchError(answer.error)
            if pause_s is None or not answer.is_passing:
                raise answer.error
            self.retry_count += 1
            self.pause(pause_s)
        raise AssertionError

    def _try(
        self,
        path: str,
        question: Mapping[str, str],
        decoder: msgspec.json.Decoder[_Answer],
        *,
        is_post: bool,
    ) -> _Answer | Refused:
        """Ask once."""
        client = self._client
        if client is None:
            raise AssertionError("open it with `with`")
        where = f"{self.url}{path}"
        if is_post:
            request = client.build_request("POST", where, data=question)
        else:
            request = client.build_request("GET", where, params=question)
        try:
            with closing(client.send(request, stream=True)) as response:
                body = _body(response, deadline_s=time.monotonic() + 2 * self.timeout_s)
        except (httpx.HTTPError, ssl.SSLError, OSError) as error:
            return refusal_of(error, url=self.url)
        if response.status_code != httpx.codes.OK or body is None:
            return refusal_of(response, url=self.url, body=body)
        try:
            return decoder.decode(body)
        except (msgspec.MsgspecError, RecursionError):
            return refusal_of(response, url=self.url, body=body)


def _body(response: httpx.Response, *, deadline_s: float) -> bytes | None:
    """Return the whole body; None where it is beyond the limit in size or time."""
    body = bytearray()
    for piece in response.iter_bytes():
        body += piece
        if len(body) > ANSWER_LIMIT_BYTES or time.monotonic() > deadline_s:
            return None
    return bytes(body)


def _without_earlier(series: list[RawSeries], *, from_s: float) -> list[RawSeries]:
    """Return the series without the sample that stands just before the span.

    Prometheus 2 counts both ends of a range selector in, Prometheus 3 only the right one.
    """
    if not any(each.values and each.values[0][0] < from_s for each in series):
        return series
    cut = [
        RawSeries(metric=each.metric, values=[at for at in each.values if at[0] >= from_s])
        for each in series
    ]
    return [each for each in cut if each.values]


def _stamp(at: datetime) -> str:
    return f"{at.timestamp():.3f}"
