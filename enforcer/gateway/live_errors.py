"""What an API server's refusal means, in the words of the port."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

from enforcer.gateway.port import KubernetesObject
from steward.errors import ClusterError, ConflictError, DeniedError, RefusedError

WORDS_LIMIT: Final = 400
"""Characters of the server's own words that are passed on."""
_ADMISSION_WORDS: Final = ("admission webhook", "ValidatingAdmissionPolicy", "exceeded quota")
"""A 403 with one of these comes from admission, not from RBAC."""
_UID_WORDS: Final = "metadata.uid"
"""A patch that holds to the uid of a former object of the name is told as a forbidden change."""
_BUDGET_WORDS: Final = "disruption budget"
_REFUSED: Final = frozenset(
    {
        HTTPStatus.BAD_REQUEST,
        HTTPStatus.METHOD_NOT_ALLOWED,
        HTTPStatus.NOT_ACCEPTABLE,
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
        HTTPStatus.UNPROCESSABLE_ENTITY,
    }
)


class NotFoundError(ClusterError):
    """There is nothing at this address; stays within the gateway."""


def answer_error(status: int, answer: KubernetesObject | None, *, asked: str) -> ClusterError:
    """Return the failure that a status means.

    Args:
        status: of HTTP.
        answer: the Status object that came with it; None: something else did.
        asked: who was asked what.
    """
    words = _words(answer)
    kind, hint = _meaning(status, words)
    return kind(f"{asked} answered {status}{f': {words}' if words else ''}", hint=hint)


def _meaning(status: int, words: str) -> tuple[type[ClusterError], str]:
    if status == HTTPStatus.UNPROCESSABLE_ENTITY and _UID_WORDS in words:
        return _MEANINGS[HTTPStatus.CONFLICT]
    is_admission = any(each in words for each in _ADMISSION_WORDS)
    is_budget = status == HTTPStatus.TOO_MANY_REQUESTS and _BUDGET_WORDS in words
    if status in _REFUSED or is_budget or (status == HTTPStatus.FORBIDDEN and is_admission):
        return RefusedError, "see what the server says; the object stays as it is"
    return _MEANINGS.get(status, _OTHER)


def _words(answer: KubernetesObject | None) -> str:
    if answer is None:
        return "not in the API's own words"
    message = answer.get("message")
    causes = answer.get("details")
    details = causes.get("causes") if isinstance(causes, Mapping) else None
    said = [message] if isinstance(message, str) else []
    if isinstance(details, list):
        said += [_cause(each) for each in details]
    return " ".join(" ".join(said).split())[:WORDS_LIMIT]


def _cause(cause: object) -> str:
    found = cause.get("message") if isinstance(cause, Mapping) else None
    return found if isinstance(found, str) else ""


_OTHER: Final[tuple[type[ClusterError], str]] = (
    ClusterError,
    "look into the log of the API server or of what proxies it",
)
_MEANINGS: Final[dict[int, tuple[type[ClusterError], str]]] = {
    HTTPStatus.UNAUTHORIZED: (DeniedError, "renew the credentials of the enforcer's account"),
    HTTPStatus.FORBIDDEN: (
        DeniedError,
        "grant the enforcer's account this rule, or leave the kind out",
    ),
    HTTPStatus.NOT_FOUND: (NotFoundError, "nothing to do: it does not exist"),
    HTTPStatus.CONFLICT: (ConflictError, "read it anew and decide again"),
    HTTPStatus.TOO_MANY_REQUESTS: (
        ClusterError,
        "give the enforcer's account a FlowSchema of its own, or look who floods the API server",
    ),
}
