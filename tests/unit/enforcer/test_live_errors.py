"""What an API server's refusals mean: each in the words that decide what is done next."""

from __future__ import annotations

import pytest

from enforcer.gateway.live_errors import NotFoundError, answer_error
from steward.errors import ClusterError, ConflictError, DeniedError, RefusedError

RBAC = 'jobs.batch "one" is forbidden: User "steward" cannot patch resource "jobs"'
WEBHOOK = 'admission webhook "vjob.kb.io" denied the request: not now'
POLICY = "ValidatingAdmissionPolicy 'gpu-guard' with binding 'all' denied request: no owner"
QUOTA = 'pods "one" is forbidden: exceeded quota: gpus'
BUDGET = "Cannot evict pod as it would violate the pod's disruption budget."


@pytest.mark.parametrize(
    ("status", "words", "expected"),
    [
        (400, "unknown field", RefusedError),
        (401, "Unauthorized", DeniedError),
        (403, RBAC, DeniedError),
        (403, WEBHOOK, RefusedError),
        (403, QUOTA, RefusedError),
        (404, "not found", NotFoundError),
        (409, "the object has been modified", ConflictError),
        (422, POLICY, RefusedError),
        (422, 'Job "one" is invalid: spec.template: field is immutable', RefusedError),
        (422, "metadata.uid: Invalid value: field is immutable", ConflictError),
        (429, BUDGET, RefusedError),
        (429, "too many requests, please try again later", ClusterError),
        (500, "etcd leader changed", ClusterError),
        (503, "apiserver not ready", ClusterError),
    ],
)
def test_a_refusal_is_told_as_what_it_is(
    status: int, words: str, expected: type[ClusterError]
) -> None:
    error = answer_error(status, {"message": words}, asked="server to PATCH /x")
    assert type(error) is expected
    assert str(status) in error.message
    assert words.split(",", maxsplit=1)[0] in error.message
    assert error.hint


@pytest.mark.parametrize("answer", [None, {}, {"message": None}, {"details": {"causes": [1, {}]}}])
def test_an_answer_that_is_no_status_is_still_told(answer: dict[str, object] | None) -> None:
    error = answer_error(502, answer, asked="server to GET /x")  # type: ignore[arg-type]  # what proxies send
    assert type(error) is ClusterError


def test_long_words_are_cut() -> None:
    error = answer_error(400, {"message": "x " * 5_000}, asked="server")
    assert len(error.message) < 500
