"""Who answers as API server, and as whom it knows this program."""

from __future__ import annotations

import msgspec

from collector.sources.kubernetes.access import ApiAccess
from collector.sources.kubernetes.api_error import ApiError, Question
from collector.sources.kubernetes.wire_faults import decoded

REVIEW_PATH = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
_REVIEW = b'{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}'


class _Version(msgspec.Struct, rename="camel"):
    git_version: str


class _UserInfo(msgspec.Struct):
    username: str = ""


class _ReviewStatus(msgspec.Struct, rename="camel"):
    user_info: _UserInfo


class _Review(msgspec.Struct):
    status: _ReviewStatus


def server_version(access: ApiAccess, *, answer_s: float) -> str:
    """Return the server's version, such as ``v1.36.3``.

    Raises:
        ApiError: it does not answer, or is no API server.
    """
    question = Question(path="/version")
    body = access.get(question, answer_s=answer_s)
    return decoded(body, _Version, question=question, server=access.server).git_version


def account_name(access: ApiAccess, *, answer_s: float) -> str | None:
    """Return the user's name as the server sees it; None where it does not tell (before 1.28)."""
    question = Question(path=REVIEW_PATH, verb="ask")
    try:
        body = access.post(question, _REVIEW, answer_s=answer_s)
        reviewed = decoded(body, _Review, question=question, server=access.server)
    except ApiError:
        return None
    return reviewed.status.user_info.username or None
