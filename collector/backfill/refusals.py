"""Why a Prometheus server gave no answer: for good, for now, or because too much was asked."""

from __future__ import annotations

import re
import ssl
from dataclasses import dataclass
from typing import Final

import httpx

from collector.backfill.answers import fault_of
from steward.errors import SourceError

_TOO_MUCH: Final = re.compile(
    r"too many|too large|exceed|limit|maximum|larger than|more than|-search\.max", re.IGNORECASE
)
"""How Prometheus, Thanos, Mimir and VictoriaMetrics say that a query asks for too much."""
_HEADERS_HINT: Final = (
    "put the header into a file, one `Authorization: Bearer …` a line, and name it with "
    "--headers-file"
)
_PREFIX_HINT: Final = (
    "give the address below which /api/v1/query answers: Mimir adds /prometheus, "
    "VictoriaMetrics cluster /select/0/prometheus"
)
_PASSING: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
_EXCERPT_LENGTH: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """No answer, and what may be done about it."""

    error: SourceError
    is_passing: bool = False
    """The same question may be answered later."""
    is_too_much: bool = False
    """A smaller question may be answered."""


def refusal_of(
    outcome: httpx.Response | Exception, *, url: str, body: bytes | None = b""
) -> Refused:
    """Return why there is no answer.

    Args:
        outcome: the response, or what kept it from coming.
        url: the server, for the message.
        body: what the server wrote; None where it wrote more than is read.
    """
    if isinstance(outcome, Exception):
        return _broken(outcome, url)
    if body is None:
        error = SourceError(
            f"{url} answers one question with more than is read at once",
            hint="narrow what is imported with --match",
        )
        return Refused(error=error, is_too_much=True)
    return _of_status(outcome, url=url, body=body)


def _broken(error: Exception, url: str) -> Refused:
    if isinstance(error, httpx.ReadTimeout):
        slow = SourceError(
            f"{url} did not answer in time", hint="try again when the server is less busy"
        )
        return Refused(error=slow, is_too_much=True)
    cause = _root_cause(error)
    is_tls = isinstance(cause, ssl.SSLError)
    hint = "check the certificate and its authority" if is_tls else "check the address and the port"
    told = SourceError(f"{url} cannot be reached: {cause}", hint=hint)
    return Refused(error=told, is_passing=not is_tls)


def _root_cause(error: BaseException) -> BaseException:
    """Return the first failure of the chain, below what the HTTP library made of it."""
    below = error.__context__ if error.__cause__ is None else error.__cause__
    return error if below is None else _root_cause(below)


def _of_status(response: httpx.Response, *, url: str, body: bytes) -> Refused:
    status = response.status_code
    fault = fault_of(body)
    said = "" if fault is None else fault.text
    kind = "" if fault is None else fault.kind
    if _is_too_much(said, status=status, kind=kind):
        message = f"{url} will not answer so much at once: {_cut(said)}"
        error = SourceError(message, hint="narrow what is imported with --match")
        return Refused(error=error, is_too_much=True)
    if status in _PASSING:
        message = f"{url} answered HTTP {status}{_colon(said)}"
        error = SourceError(message, hint="look into the server's log")
        return Refused(error=error, is_passing=True)
    return Refused(error=_final(response, url=url, said=said, body=body))


def _final(response: httpx.Response, *, url: str, said: str, body: bytes) -> SourceError:
    """Return the error for an answer that asking again would not change."""
    status = response.status_code
    if status in {401, 403}:
        message = f"{url} refuses access (HTTP {status}){_colon(said)}"
        return SourceError(message, hint=_HEADERS_HINT)
    if response.has_redirect_location:
        message = f"{url} redirects to {response.headers['location']} (HTTP {status})"
        return SourceError(message, hint="give that address with --url")
    if said:
        message = f"{url} refuses the question (HTTP {status}): {_cut(said)}"
        return SourceError(message, hint="check --match")
    kind = "HTML" if body.lstrip()[:1] == b"<" else "something else"
    answer = f"HTTP {status}" if status != httpx.codes.OK else kind
    return SourceError(
        f"{url} answers with {answer}, not with the HTTP API of Prometheus", hint=_PREFIX_HINT
    )


def _is_too_much(said: str, *, status: int, kind: str) -> bool:
    """Tell whether less may be answered; too many questions at once are another matter."""
    if status == httpx.codes.TOO_MANY_REQUESTS or "parse error" in said:
        return False
    return kind == "timeout" or _TOO_MUCH.search(said) is not None


def _colon(said: str) -> str:
    return f": {_cut(said)}" if said else ""


def _cut(said: str) -> str:
    return said if len(said) <= _EXCERPT_LENGTH else said[: _EXCERPT_LENGTH - 1] + "…"
