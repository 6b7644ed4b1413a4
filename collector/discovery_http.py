"""Targets from URLs in Prometheus' ``http_sd`` format, asked again at an interval.

A URL that fails keeps its last good targets and says so.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

import httpx

from collector.discovery import ScrapeTarget
from collector.discovery_labels import SourceState, merged_targets, targets_of
from steward.errors import InputError, SourceError, StewardError
from steward.units import MIB_BYTES

ANSWER_LIMIT_BYTES: Final = 64 * MIB_BYTES
INTERVAL_HEADER: Final = "x-prometheus-refresh-interval-seconds"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """What a URL last gave."""

    targets: tuple[ScrapeTarget, ...] = ()
    error: StewardError | None = None


class HttpDiscovery:
    """Targets of all URLs.

    Args:
        urls: each answers with a JSON document.
        refresh_s: told to the servers, as Prometheus does; who calls ``look`` keeps to it.
        timeout_s: for each whole answer.
    """

    def __init__(self, urls: Sequence[str], *, refresh_s: float, timeout_s: float = 10.0) -> None:
        """Ask nothing yet."""
        self._answers = {url: _Answer() for url in urls}
        self._timeout_s = timeout_s
        self.refresh_s = refresh_s

    async def look(self) -> tuple[ScrapeTarget, ...]:
        """Return the targets of all URLs, asked now, all together."""
        headers = {"accept": "application/json", INTERVAL_HEADER: f"{self.refresh_s:g}"}
        urls = tuple(self._answers)
        async with httpx.AsyncClient(
            headers=headers, trust_env=False, timeout=self._timeout_s, follow_redirects=True
        ) as client:
            answers = await asyncio.gather(*(self._ask(client, url) for url in urls))
        self._answers = dict(zip(urls, answers, strict=True))
        return merged_targets(answer.targets for answer in answers)

    def states(self) -> tuple[SourceState, ...]:
        """Return how it goes with each URL."""
        return tuple(
            SourceState(
                source=url,
                target_count=len(answer.targets),
                error=None if answer.error is None else answer.error.message,
                hint=None if answer.error is None else answer.error.hint,
            )
            for url, answer in self._answers.items()
        )

    async def _ask(self, client: httpx.AsyncClient, url: str) -> _Answer:
        try:
            async with asyncio.timeout(self._timeout_s):
                body = await _body(client, url)
            return _Answer(targets=targets_of(_document(body, url), source=url))
        except StewardError as error:
            return self._kept(url, error)
        except TimeoutError:
            message = f"{url} did not finish its answer within {self._timeout_s:g} s"
            return self._kept(url, SourceError(message, hint="look why the service is slow"))

    def _kept(self, url: str, error: StewardError) -> _Answer:
        """Return the last good targets with what is wrong now."""
        return _Answer(targets=self._answers[url].targets, error=error)


async def _body(client: httpx.AsyncClient, url: str) -> bytes:
    """Return the whole answer.

    Raises:
        SourceError: there is none, or it is no success, or too large.
    """
    body = bytearray()
    try:
        async with client.stream("GET", url) as response:
            if response.status_code != HTTPStatus.OK:
                status = f"{response.status_code} {response.reason_phrase}"
                raise _source_error(f"{url} answered HTTP {status}")
            async for piece in response.aiter_bytes():
                body += piece
                if len(body) > ANSWER_LIMIT_BYTES:
                    raise _source_error(f"{url} answers more than any list of targets is")
    except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
        what = str(error) or type(error).__name__
        raise _source_error(f"{url} cannot be read: {what}") from error
    return bytes(body)


def _source_error(message: str) -> SourceError:
    return SourceError(message, hint="check that an http_sd service answers at this address")


def _document(body: bytes, url: str) -> object:
    try:
        document: object = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{url} answers no JSON: {error}", hint="give the address of an http_sd service"
        ) from error
    return document
