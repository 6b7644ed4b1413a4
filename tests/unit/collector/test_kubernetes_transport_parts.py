"""The small parts of the transport: decoding, sharing, waiting, telling, permissions."""

from __future__ import annotations

import json
import logging
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from collector.sources.kubernetes.access import ApiAccess
from collector.sources.kubernetes.api_error import (
    ApiError,
    ApiFault,
    Question,
    Status,
    status_of,
)
from collector.sources.kubernetes.credentials import Origin
from collector.sources.kubernetes.notices import Notices
from collector.sources.kubernetes.objects import Pod
from collector.sources.kubernetes.pace import Backoff
from collector.sources.kubernetes.permissions import (
    REVIEW_PATH,
    MissingPermission,
    cluster_role,
    missing_permissions,
)
from collector.sources.kubernetes.resource import Resource
from collector.sources.kubernetes.resources import RESOURCES
from collector.sources.kubernetes.sharing import share_texts
from collector.sources.kubernetes.wire_faults import decoded
from collector.sources.kubernetes.wire_objects import BareObject, ErrorEvent, Event, ObjectDecoder
from tests.support.api_server_script import (
    Reply,
    ScriptedApiServer,
    bookmark,
    event,
    failure,
    refused,
    scripted_api_server,
    thing,
)
from tests.support.kubernetes_feeds import THINGS, Thing


def error(fault: ApiFault, message: str = "it failed") -> ApiError:
    return ApiError(message, hint="mend it", fault=fault)


# --- resources ---


@pytest.mark.parametrize(
    ("group", "namespace", "path", "name"),
    [
        pytest.param("", None, "/api/v1/things", "things", id="core"),
        pytest.param("", "a", "/api/v1/namespaces/a/things", "things", id="core in a namespace"),
        pytest.param("x.io", None, "/apis/x.io/v1/things", "things.x.io", id="group"),
        pytest.param(
            "x.io", "a", "/apis/x.io/v1/namespaces/a/things", "things.x.io", id="group in one"
        ),
    ],
)
def test_path_and_name(group: str, namespace: str | None, path: str, name: str) -> None:
    resource = replace(THINGS, group=group, namespace=namespace)
    assert (resource.path("v1"), resource.name) == (path, name)


def test_resources_are_distinct_and_can_be_decoded() -> None:
    names = [one.name for one in RESOURCES]
    assert len(set(names)) == len(names)
    page = json.dumps({"metadata": {"resourceVersion": "1"}, "items": None}).encode()
    for resource in RESOURCES:
        assert ObjectDecoder(resource).page(page).objects == ()


# --- decoding ---


def test_page_without_metadata_is_no_page() -> None:
    with pytest.raises(msgspec.DecodeError):
        ObjectDecoder(THINGS).page(b'{"items": []}')


def test_page_has_objects_version_and_token() -> None:
    body = {"metadata": {"resourceVersion": "9", "continue": "t"}, "items": [thing("a", 1)]}
    page = ObjectDecoder(THINGS).page(json.dumps(body).encode())
    assert [one.metadata.name for one in page.objects] == ["a"]
    assert (page.resource_version, page.continue_token, page.undecodable) == ("9", "t", ())


def test_strange_objects_are_told_apart() -> None:
    strange = {"metadata": {"name": "s", "uid": "u"}, "spec": []}
    body = {"metadata": {"resourceVersion": "9"}, "items": [strange, thing("a", 1)]}
    page = ObjectDecoder(THINGS).page(json.dumps(body).encode())
    assert [one.metadata.name for one in page.objects] == ["a"]
    assert [(one.metadata.name, one.metadata.uid) for one in page.undecodable] == [("s", "u")]


def test_events_of_a_watch() -> None:
    decoder = ObjectDecoder(THINGS)
    added = decoder.event(event("ADDED", thing("a", 1)))
    assert isinstance(added, Event)
    assert added.object is not None
    assert (added.type, added.object.metadata.name) == ("ADDED", "a")
    marked = decoder.event(bookmark(7))
    assert isinstance(marked, Event)
    assert (marked.object, marked.bare.metadata.resource_version) == (None, "7")
    ended = decoder.event(event("ERROR", failure(410, "Expired", "too old")))
    assert isinstance(ended, ErrorEvent)
    assert (ended.status.code, ended.status.reason) == (410, "Expired")


@pytest.mark.parametrize("line", [b"", b"{", b"[]", b'{"type": "ADDED"}', b'{"object": {}}'])
def test_line_that_is_no_event(line: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        ObjectDecoder(THINGS).event(line)


# --- status ---


DEEP = b"[" * 100_000 + b"]" * 100_000


@pytest.mark.parametrize(
    "body",
    [
        DEEP,
        b'{"metadata": {}, "items": ' + DEEP + b"}",
        b'{"metadata": {}, "items": [{"metadata": {}, "spec": ' + DEEP + b"}]}",
        b'{"metadata": {}, "items": [{"metadata": {"labels": ' + DEEP + b"}}]}",
        b'{"type": "ADDED", "object": {"metadata": {}, "spec": ' + DEEP + b"}}",
    ],
)
def test_document_nested_without_end_is_unreadable(body: bytes) -> None:
    decoder = ObjectDecoder(RESOURCES[0])
    with pytest.raises(msgspec.DecodeError):
        decoder.page(body)
    with pytest.raises(msgspec.DecodeError):
        decoder.event(body)
    with pytest.raises(ApiError, match="not what it should be"):
        decoded(body, list[BareObject], question=Question(path="/x"), server="s")
    assert status_of(body, code=500).code == 500


def test_status_without_a_code_has_that_of_the_answer() -> None:
    assert status_of(b'{"message": "no"}', code=403).code == 403
    assert status_of(b'{"code": 410}', code=403).code == 410
    assert status_of(b"\xffoops", code=502).message == "\ufffdoops"


def test_wish_to_wait_may_be_absent_or_zero() -> None:
    def wish(**details: object) -> float | None:
        return msgspec.json.decode(json.dumps(failure(429, **details)), type=Status).retry_after_s

    assert (wish(), wish(retryAfterSeconds=0), wish(retryAfterSeconds=3)) == (None, 0.0, 3.0)


def test_wish_to_wait_has_an_end() -> None:
    """A wait of ages would be the end of a thread, or of the collector's sight."""
    wishes = [-1, 3_599, 3_600, 3_601, 1e300]
    bodies = [json.dumps(failure(429, retryAfterSeconds=wish)).encode() for wish in wishes]
    told = [status_of(body, code=429).retry_after_s for body in bodies]
    assert told == [0.0, 3_599.0, 3_600.0, 3_600.0, 3_600.0]


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        pytest.param("5", 5.0, id="seconds"),
        pytest.param("0", 0.0, id="none"),
        pytest.param("999999999", 3_600.0, id="ages"),
        pytest.param("9999999999", None, id="more than ages"),
        pytest.param("Wed, 21 Oct 2026 07:28:00 GMT", None, id="a date"),
        pytest.param("-5", None, id="negative"),
        pytest.param("\u0665", None, id="a digit of another script"),
        pytest.param("", None, id="nothing"),
        pytest.param(None, None, id="no header"),
    ],
)
def test_wish_to_wait_may_stand_in_the_header(header: str | None, expected: float | None) -> None:
    told = status_of(b"Too many requests, please try again later.", code=429, retry_after=header)
    assert told.retry_after_s == expected


def test_wish_in_the_body_goes_before_that_in_the_header() -> None:
    body = json.dumps(failure(429, retryAfterSeconds=7)).encode()
    assert status_of(body, code=429, retry_after="5").retry_after_s == 7.0
    assert (
        status_of(json.dumps(failure(429)).encode(), code=429, retry_after="5").retry_after_s == 5
    )


# --- sharing ---


def pod(number: int) -> Pod:
    manifest: dict[str, Any] = {
        "metadata": {
            "name": f"pod-{number}",
            "uid": f"uid-{number}",
            "resourceVersion": str(number),
            "namespace": "namespace of both",
            "labels": {"a label of both": "its value of both"},
            "ownerReferences": [{"kind": "Job of both", "uid": "owner of both"}],
        },
        "spec": {"containers": [{"resources": {"requests": {"gpu of both": "8 of both"}}}]},
        "status": {"conditions": [{"type": "condition of both", "message": None}]},
    }
    return msgspec.json.decode(json.dumps(manifest), type=Pod)


def texts(found: object) -> Iterator[str]:
    if isinstance(found, str):
        yield found
    elif isinstance(found, dict):
        for pair in found.items():
            yield from texts(pair)
    elif isinstance(found, (list, tuple)):
        for one in found:
            yield from texts(one)
    elif isinstance(found, msgspec.Struct):
        for name in found.__struct_fields__:
            yield from texts(getattr(found, name))


def test_texts_of_equal_content_become_one_and_nothing_else_changes() -> None:
    first, second = pod(1), pod(2)
    share_texts(first)
    share_texts(second)
    assert (first, second) == (pod(1), pod(2))
    ours = {text: id(text) for text in texts(first) if "of both" in text}
    theirs = {text: id(text) for text in texts(second) if "of both" in text}
    assert len(ours) == 8
    assert ours == theirs


def test_what_is_no_struct_is_left_alone() -> None:
    share_texts({"a": "b"})


def test_lists_are_shared_too() -> None:
    class Bag(msgspec.Struct):
        items: list[str]

    first, second = (msgspec.json.decode(b'{"items": ["one text"]}', type=Bag) for _ in range(2))
    share_texts(first)
    share_texts(second)
    assert first == second
    assert first.items[0] is second.items[0]


# --- waiting ---


def test_waiting_doubles_up_to_the_longest_and_begins_anew() -> None:
    class Highest(random.Random):
        def uniform(self, a: float, b: float) -> float:
            assert (a, b) == (0.5, 1.0)
            return b

    backoff = Backoff(first_s=0.5, max_s=3.0, random=Highest())
    assert [backoff.next_s() for _ in range(5)] == [0.5, 1.0, 2.0, 3.0, 3.0]
    assert backoff.failures_in_a_row == 5
    backoff.reset()
    assert backoff.next_s() == 0.5


def test_waiting_is_spread_and_never_overflows() -> None:
    backoff = Backoff(first_s=1.0, max_s=8.0)
    waits_s = [backoff.next_s() for _ in range(2_000)]
    assert min(waits_s[4:]) >= 4.0
    assert max(waits_s) <= 8.0
    assert len(set(waits_s)) > 1_000


# --- telling ---


def test_server_that_is_away_is_told_once_for_all_kinds(caplog: pytest.LogCaptureFixture) -> None:
    notices = Notices()
    with caplog.at_level(logging.INFO):
        for name in ("pods", "nodes", "pods"):
            notices.failed(name, error(ApiFault.REFUSED, "the server is away"))
        for name in ("pods", "nodes", "pods"):
            notices.succeeded(name)
    assert [one.getMessage() for one in caplog.records] == [
        "the server is away (connection_refused; mend it)",
        "the API server answers again (was connection_refused)",
    ]


def test_missing_right_is_told_for_each_kind(caplog: pytest.LogCaptureFixture) -> None:
    notices = Notices()
    with caplog.at_level(logging.INFO):
        for name in ("pods", "nodes", "pods"):
            notices.failed(name, error(ApiFault.FORBIDDEN, f"no {name}"))
        notices.succeeded("nodes")
        notices.succeeded("jobs")
    assert [one.getMessage() for one in caplog.records] == [
        "no pods (forbidden; mend it)",
        "no nodes (forbidden; mend it)",
        "nodes can be read again (was forbidden)",
    ]


def test_another_fault_is_news_and_the_protocols_own_is_not(
    caplog: pytest.LogCaptureFixture,
) -> None:
    notices = Notices()
    with caplog.at_level(logging.INFO):
        for fault in (ApiFault.GONE, ApiFault.CLOSED, ApiFault.TLS, ApiFault.TIMEOUT):
            notices.failed("pods", error(fault))
    assert [one.levelname for one in caplog.records] == ["WARNING", "WARNING"]


# --- permissions ---


@pytest.fixture
def server() -> Iterator[ScriptedApiServer]:
    with scripted_api_server() as running:
        yield running


def review(*, allowed: bool) -> Reply:
    return Reply(pieces=(json.dumps({"status": {"allowed": allowed}}).encode(),), status=201)


def asked_about(server: ScriptedApiServer) -> list[dict[str, str]]:
    bodies = [json.loads(one.body) for one in server.asked("post", REVIEW_PATH)]
    assert {(one["kind"], one["apiVersion"]) for one in bodies} == {
        ("SelfSubjectAccessReview", "authorization.k8s.io/v1")
    }
    return [one["spec"]["resourceAttributes"] for one in bodies]


def test_each_right_is_asked_for_once(server: ScriptedApiServer, tmp_path: Path) -> None:
    access = ApiAccess(Origin(kubeconfig=server.kubeconfig(tmp_path)))
    jobs = replace(THINGS, group="batch", plural="jobs")
    own = replace(THINGS, namespace="a")
    yes, no = review(allowed=True), review(allowed=False)
    server.plan("post", REVIEW_PATH, yes, yes, no, yes, yes, no)
    narrower = replace(THINGS, label_selector="x=y")
    assert missing_permissions(access, [jobs, THINGS, own, narrower]) == [
        MissingPermission(group="", resource="things", verb="watch"),
        MissingPermission(group="batch", resource="jobs", verb="watch"),
    ]
    assert asked_about(server) == [
        {"verb": "list", "group": "", "resource": "things"},
        {"verb": "list", "group": "", "resource": "things", "namespace": "a"},
        {"verb": "watch", "group": "", "resource": "things"},
        {"verb": "watch", "group": "", "resource": "things", "namespace": "a"},
        {"verb": "list", "group": "batch", "resource": "jobs"},
        {"verb": "watch", "group": "batch", "resource": "jobs"},
    ]
    access.close()


def test_account_that_is_not_known_cannot_be_asked_about(
    server: ScriptedApiServer, tmp_path: Path
) -> None:
    access = ApiAccess(Origin(kubeconfig=server.kubeconfig(tmp_path)))
    server.plan("post", REVIEW_PATH, refused(401, "Unauthorized"))
    with pytest.raises(ApiError) as caught:
        missing_permissions(access, [THINGS])
    assert caught.value.fault is ApiFault.UNAUTHORIZED
    access.close()


def test_role_has_one_rule_per_group() -> None:
    role = yaml.safe_load(cluster_role(RESOURCES, name="reader"))
    assert (role["kind"], role["metadata"]["name"]) == ("ClusterRole", "reader")
    granted = {
        (group, plural)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for plural in rule["resources"]
    }
    assert granted == {(one.group, one.plural) for one in RESOURCES}
    assert {tuple(rule["verbs"]) for rule in role["rules"]} == {("list", "watch")}
    groups = [rule["apiGroups"] for rule in role["rules"]]
    assert groups == sorted(groups)
    assert len(groups) == len({tuple(one) for one in groups})


def test_thing_is_decoded_as_such() -> None:
    resource: Resource = THINGS
    assert resource.decode is Thing
