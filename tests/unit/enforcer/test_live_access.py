"""The connection to an API server and its discovery: every failure is one clear error."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from enforcer.gateway.live import LiveGateway
from enforcer.gateway.live_access import LiveAccess, Origin, Request
from enforcer.gateway.live_kinds import Kinds
from enforcer.gateway.port import Target, Verb, Write
from steward.errors import ClusterError, ConflictError, DeniedError, RefusedError
from tests.support.api_server_script import (
    Ending,
    Reply,
    ScriptedApiServer,
    listed,
    refused,
    scripted_api_server,
    thing,
)
from tests.support.exporter_server import closed_port

VERSION = Request(method="GET", path="/version")
JOBS = "/apis/batch/v1/namespaces/a/jobs"
KINDS = {"resources": [{"name": "jobs", "kind": "Job", "namespaced": True}]}
TARGET = Target(api_version="batch/v1", kind="Job", namespace="a", name="one", uid="uid-one")
WRITE = Write(verb=Verb.PATCH, target=TARGET, body={"spec": {"a": None}}, resource_version="7")


def told(document: object) -> Reply:
    """Return an answer that is a JSON document."""
    return Reply(pieces=(json.dumps(document).encode(),))


@pytest.fixture
def server() -> Iterator[ScriptedApiServer]:
    with scripted_api_server() as running:
        running.plan("get", "/apis/batch/v1", told(KINDS))
        yield running


@pytest.fixture
def access(server: ScriptedApiServer, tmp_path: Path) -> Iterator[LiveAccess]:
    opened = LiveAccess(Origin(kubeconfig=server.kubeconfig(tmp_path)))
    yield opened
    opened.close()


@pytest.fixture
def gateway(access: LiveAccess) -> LiveGateway:
    return LiveGateway(access, is_leading=lambda: True)


def test_who_asks_is_told(server: ScriptedApiServer, access: LiveAccess) -> None:
    server.plan("get", "/version", told({"major": "1"}))
    assert access.ask(VERSION) == {"major": "1"}
    (request,) = server.asked("get", "/version")
    assert request.headers["authorization"] == "Bearer first"
    assert request.headers["user-agent"].startswith("gpu-steward/")


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(Reply(pieces=(b"<html>",)), id="a page"),
        pytest.param(Reply(pieces=(b"[]",)), id="a list"),
        pytest.param(Reply(pieces=(b"",)), id="nothing"),
        pytest.param(Reply(pieces=(b"{", b'"a"'), ending=Ending.CUT), id="half an answer"),
        pytest.param(Reply(status=302, headers=(("location", "/"),)), id="a redirect"),
        pytest.param(Reply(status=503, pieces=(b"upstream",)), id="a proxy's words"),
    ],
)
def test_an_answer_that_cannot_be_used_is_one_error(
    server: ScriptedApiServer, access: LiveAccess, reply: Reply
) -> None:
    server.plan("get", "/version", reply)
    with pytest.raises(ClusterError) as caught:
        access.ask(VERSION)
    assert type(caught.value) is ClusterError
    assert server.url in caught.value.message


def test_a_server_that_is_not_there_is_named(tmp_path: Path) -> None:
    with closed_port() as port:
        silent = ScriptedApiServer(port)
        access = LiveAccess(Origin(kubeconfig=silent.kubeconfig(tmp_path)))
        with pytest.raises(ClusterError, match="gave no answer to GET /version") as caught:
            access.ask(VERSION)
    assert silent.url in caught.value.message


@pytest.mark.parametrize("text", [None, "", "{", "[1]", '{"current-context": "x"}'])
def test_a_kubeconfig_that_is_none_is_told(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "kubeconfig"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    with pytest.raises(ClusterError, match="no Kubernetes API server is known"):
        LiveAccess(Origin(kubeconfig=path))


def test_refused_credentials_are_loaded_anew_once(
    server: ScriptedApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("enforcer.gateway.live_access.RELOAD_S", -1.0)
    access = LiveAccess(Origin(kubeconfig=server.kubeconfig(tmp_path)))
    server.kubeconfig(tmp_path, token="second")  # noqa: S106 - of a script
    server.plan("get", "/version", refused(401), told({"major": "1"}))
    assert access.ask(VERSION) == {"major": "1"}
    tokens = [one.headers["authorization"] for one in server.asked("get", "/version")]
    assert tokens == ["Bearer first", "Bearer second"]
    access.close()


def test_credentials_that_stay_refused_are_denied(
    server: ScriptedApiServer, access: LiveAccess
) -> None:
    server.plan("get", "/version", refused(401, "Unauthorized"))
    with pytest.raises(DeniedError):
        access.ask(VERSION)


def test_a_list_goes_on_over_pages(server: ScriptedApiServer, gateway: LiveGateway) -> None:
    server.plan("list", JOBS, listed(thing("b", 2), more="next"), listed(thing("a", 1)))
    found = gateway.list(api_version="batch/v1", kind="Job", namespace="a", labels="x=y")
    assert [(each["kind"], each["apiVersion"]) for each in found] == [("Job", "batch/v1")] * 2
    queries = [request.query for request in server.asked("list", JOBS)]
    assert queries == [
        {"limit": "500", "labelSelector": "x=y"},
        {"limit": "500", "labelSelector": "x=y", "continue": "next"},
    ]


def test_a_write_holds_to_uid_and_version_and_is_named(
    server: ScriptedApiServer, gateway: LiveGateway
) -> None:
    server.plan("patch", f"{JOBS}/one", told({"kind": "Job"}))
    gateway.rehearse(WRITE)
    gateway.write(WRITE)
    rehearsal, write = server.asked("patch", f"{JOBS}/one")
    body = {"spec": {"a": None}, "metadata": {"uid": "uid-one", "resourceVersion": "7"}}
    assert [json.loads(each.body) for each in (rehearsal, write)] == [body, body]
    assert write.query == {"fieldManager": "gpu-steward", "fieldValidation": "Strict"}
    assert rehearsal.query == {**write.query, "dryRun": "All"}
    assert write.headers["content-type"] == "application/merge-patch+json"


def test_an_eviction_holds_to_them_too(server: ScriptedApiServer, gateway: LiveGateway) -> None:
    pods = {"resources": [{"name": "pods", "kind": "Pod", "namespaced": True}]}
    server.plan("get", "/api/v1", told(pods))
    path = "/api/v1/namespaces/a/pods/one"
    server.plan("post", f"{path}/eviction", told({"kind": "Status"}))
    target = Target(api_version="v1", kind="Pod", namespace="a", name="one", uid="u")
    gateway.write(Write(verb=Verb.EVICT, target=target, body={}, resource_version="7"))
    (request,) = server.asked("post", f"{path}/eviction")
    held = {"preconditions": {"uid": "u", "resourceVersion": "7"}}
    assert json.loads(request.body)["deleteOptions"] == held


def test_what_is_gone_is_a_conflict_and_what_is_not_served_refused(
    server: ScriptedApiServer, gateway: LiveGateway
) -> None:
    del server
    with pytest.raises(ConflictError, match="gone"):
        gateway.write(WRITE)
    other = Target(api_version="x.example/v1", kind="X", namespace="a", name="one", uid=None)
    with pytest.raises(RefusedError, match="serves no X"):
        gateway.write(Write(verb=Verb.PATCH, target=other, body={}, resource_version=None))
    asked = {"api_version": "x.example/v1", "kind": "X", "namespace": None}
    assert not gateway.may(verb="get", **asked)  # type: ignore[arg-type]  # texts and None


@pytest.mark.parametrize(
    ("status", "expected"),
    [({"allowed": True}, True), ({"allowed": False}, False), ({}, False), (None, False)],
)
def test_only_a_clear_yes_is_a_permission(
    server: ScriptedApiServer, gateway: LiveGateway, status: object, *, expected: bool
) -> None:
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    server.plan("post", path, told({"status": status}))
    may = gateway.may(verb="patch/scale", api_version="batch/v1", kind="Job", namespace="a")
    assert may is expected
    (request,) = server.asked("post", path)
    attributes = json.loads(request.body)["spec"]["resourceAttributes"]
    assert attributes == {
        "verb": "patch",
        "group": "batch",
        "version": "v1",
        "resource": "jobs",
        "subresource": "scale",
        "namespace": "a",
    }


@pytest.mark.parametrize(
    ("kind", "waits_s", "asked_count"),
    [
        pytest.param("Job", 599.0, 1, id="known and fresh"),
        pytest.param("Job", 600.0, 2, id="known and old"),
        pytest.param("Other", 59.0, 1, id="missing and fresh"),
        pytest.param("Other", 60.0, 2, id="missing for long enough to ask again"),
    ],
)
def test_discovery_is_remembered_for_a_while(
    server: ScriptedApiServer, access: LiveAccess, kind: str, waits_s: float, asked_count: int
) -> None:
    clock = [0.0]
    kinds = Kinds(access, monotonic=lambda: clock[0] + 1)
    first = kinds.find("batch/v1", kind)
    clock[0] = waits_s
    assert kinds.find("batch/v1", kind) == first
    assert (first is None) == (kind == "Other")
    assert len(server.asked("get", "/apis/batch/v1")) == asked_count
