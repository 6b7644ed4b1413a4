"""What can go wrong between the collector and an API server, each with one stable word."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from http import HTTPStatus
from typing import Final

import msgspec

from steward.errors import SourceError

MESSAGE_LIMIT: Final = 300
"""Characters of a server's own words that are passed on."""
RETRY_AFTER_LIMIT_S: Final = 3_600.0
"""A longer wish of a server (or of what stands before it) is no wish but a fault."""
STORAGE_STARTS: Final = "storage is (re)initializing"
"""What an API server says, with 429, of a kind whose first objects it is just reading from etcd.

So it is after the start of the server, and for each CRD at its first watch. The server's own words
when etcd fails meanwhile go on after a colon: that is trouble.
"""


class ApiFault(StrEnum):
    """Why a request brought nothing; kept in the health of a resource."""

    REFUSED = "connection_refused"
    UNKNOWN_HOST = "unknown_host"
    UNREACHABLE = "unreachable"
    TLS = "tls"
    TIMEOUT = "timeout"
    BROKEN = "broken_answer"
    UNREADABLE = "unreadable_answer"
    TOO_LARGE = "too_large"
    CREDENTIALS = "credentials"
    """Nothing was asked: the credentials could not be loaded."""
    UNAUTHORIZED = "unauthorized"
    FORBIDDEN = "forbidden"
    NOT_FOUND = "not_found"
    GONE = "gone"
    """The version to go on from is too old (410)."""
    THROTTLED = "throttled"
    SERVER = "server_error"
    REFUSED_REQUEST = "http_status"
    """Any other status."""
    CLOSED = "closed"
    """The collector itself ended the connection."""


class ApiError(SourceError):
    """A request to the API server brought nothing.

    Args:
        message: names the server, the request and what is wrong.
        hint: the next step.
        fault: the stable word for it.
        retry_after_s: how long the server asks to wait; None where it does not say.
        is_passing: whether the server says that it is only not ready yet.
    """

    def __init__(
        self,
        message: str,
        *,
        hint: str,
        fault: ApiFault,
        retry_after_s: float | None = None,
        is_passing: bool = False,
    ) -> None:
        """Keep the word and the server's wish beside message and hint."""
        super().__init__(message, hint=hint)
        self.fault = fault
        self.retry_after_s = retry_after_s
        self.is_passing = is_passing


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One request in the words of the API: its path, and the permission that it needs."""

    path: str
    query: tuple[tuple[str, str], ...] = ()
    verb: str = "get"
    group: str = ""
    plural: str | None = None
    """None for requests that need no rule, such as discovery."""

    def __str__(self) -> str:
        """Return the request as messages name it: ``list jobs.batch``, ``get /apis``."""
        if self.plural is None:
            return f"{self.verb} {self.path}"
        return f"{self.verb} {self.plural}" + (f".{self.group}" if self.group else "")

    @property
    def rule(self) -> str:
        """Return the entry of a ClusterRole that permits this."""
        verbs = '"list", "watch"' if self.verb in {"list", "watch"} else f'"{self.verb}"'
        return f'apiGroups: ["{self.group}"], resources: ["{self.plural}"], verbs: [{verbs}]'


class _Details(msgspec.Struct, rename="camel"):
    retry_after_seconds: float | None = None


class Status(msgspec.Struct, rename="camel"):
    """The API's own answer for a failure; also the object of an error event of a watch."""

    code: int = 0
    reason: str = ""
    message: str = ""
    details: _Details | None = msgspec.field(default=None)

    @property
    def retry_after_s(self) -> float | None:
        """Return how long the server asks to wait; None where it does not say."""
        asked_s = None if self.details is None else self.details.retry_after_seconds
        return None if asked_s is None else min(max(asked_s, 0.0), RETRY_AFTER_LIMIT_S)

    @property
    def is_passing(self) -> bool:
        """Return whether the server is only not ready yet for this kind, and says so."""
        return self.code == HTTPStatus.TOO_MANY_REQUESTS and self.message == STORAGE_STARTS


def status_of(body: bytes, *, code: int, retry_after: str | None = None) -> Status:
    """Return the answer's Status; one with the body's own words where it is no Status.

    Args:
        body: what was answered.
        code: the HTTP status.
        retry_after: the header ``Retry-After``. Only there stands the wish of an API server that
            has too many requests; one in the body goes first.
    """
    try:
        status = msgspec.json.decode(body, type=Status)
    except (msgspec.DecodeError, RecursionError):
        status = Status(message=body.decode("utf-8", "replace"))
    status.code = status.code or code
    if status.retry_after_s is None and retry_after is not None and _SECONDS.match(retry_after):
        status.details = _Details(retry_after_seconds=float(retry_after))
    return status


def error_of(status: Status, question: Question, *, server: str) -> ApiError:
    """Return the failure that this status means, with the next step for a person."""
    outcome = _outcome_of(status)
    words = " ".join(status.message.split())[:MESSAGE_LIMIT]
    said = f": {words}" if words else ""
    return ApiError(
        f"{server} refused to {question} ({status.code} {status.reason or outcome.fault}){said}",
        hint=outcome.hint.format(rule=question.rule, question=question),
        fault=outcome.fault,
        retry_after_s=status.retry_after_s,
        is_passing=status.is_passing,
    )


@dataclass(frozen=True, slots=True)
class _Outcome:
    fault: ApiFault
    hint: str = field(default="")


_OUTCOMES: Final[dict[int, _Outcome]] = {
    HTTPStatus.UNAUTHORIZED: _Outcome(
        ApiFault.UNAUTHORIZED,
        "renew the credentials of the kubeconfig's user (log in again), or name another context",
    ),
    HTTPStatus.FORBIDDEN: _Outcome(
        ApiFault.FORBIDDEN,
        "add this rule to the ClusterRole of the collector's account: {rule}",
    ),
    HTTPStatus.NOT_FOUND: _Outcome(
        ApiFault.NOT_FOUND, "install what brings this kind of objects, if it is wanted"
    ),
    HTTPStatus.GONE: _Outcome(ApiFault.GONE, "nothing to do: the collector lists anew"),
    HTTPStatus.TOO_MANY_REQUESTS: _Outcome(
        ApiFault.THROTTLED,
        "give the collector's account a FlowSchema of its own, or look who floods the API server",
    ),
}
_SECONDS: Final = re.compile(r"[0-9]{1,9}\Z")
"""The header's other form, a date, is not what API servers send."""
_STARTS: Final = _Outcome(
    ApiFault.THROTTLED,
    "the API server still reads this kind from etcd; if this stays, look into its log",
)


def _outcome_of(status: Status) -> _Outcome:
    if status.is_passing:
        return _STARTS
    return _OUTCOMES.get(status.code) or _outcome_of_class(status.code)


def _outcome_of_class(code: int) -> _Outcome:
    if code >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return _Outcome(
            ApiFault.SERVER, "look into the log of the API server or of what proxies it"
        )
    return _Outcome(
        ApiFault.REFUSED_REQUEST, "check that the kubeconfig's server is a Kubernetes API server"
    )
