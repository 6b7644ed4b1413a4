"""One connection to an API server: every failure is one clear error."""

from __future__ import annotations

import json
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from collector.sources.kubernetes.access import ApiAccess, lines_of
from collector.sources.kubernetes.api_error import ApiError, ApiFault, Question
from collector.sources.kubernetes.credentials import Origin
from collector.sources.kubernetes.wire_faults import wire_error
from tests.support.api_server_script import (
    Ending,
    Reply,
    ScriptedApiServer,
    bookmark,
    refused,
    scripted_api_server,
    watched,
)
from tests.support.exporter_server import closed_port

PODS = Question(path="/api/v1/pods", verb="list", group="", plural="pods")
JOBS = Question(path="/apis/batch/v1/jobs", verb="watch", group="batch", plural="jobs")
VERSION = Question(path="/version")


@pytest.fixture
def server() -> Iterator[ScriptedApiServer]:
    with scripted_api_server() as running:
        yield running


@pytest.fixture
def access(server: ScriptedApiServer, tmp_path: Path) -> Iterator[ApiAccess]:
    opened = ApiAccess(Origin(kubeconfig=server.kubeconfig(tmp_path)))
    yield opened
    opened.close()


def write_kubeconfig(
    path: Path, *, server: str, user: dict[str, object] | None = None, **cluster: str
) -> Path:
    config = {
        "clusters": [{"name": "c", "cluster": {"server": server, **cluster}}],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path.write_text(json.dumps(config), encoding="utf-8")
    return path


def error_for(access: ApiAccess, question: Question = PODS, *, answer_s: float = 5) -> ApiError:
    with pytest.raises(ApiError) as caught:
        access.get(question, answer_s=answer_s)
    return caught.value


def test_answer_is_the_raw_body_asked_with_token_and_name(
    server: ScriptedApiServer, access: ApiAccess
) -> None:
    server.plan("get", "/version", Reply(pieces=(b'{"major":', b'"1"}')))
    assert access.get(VERSION, answer_s=5) == b'{"major":"1"}'
    (asked,) = server.asked("get", "/version")
    assert asked.headers["authorization"] == "Bearer first"
    assert asked.headers["accept"] == "application/json"
    assert asked.headers["user-agent"].startswith("steward-collect/")


def test_document_is_posted_as_json(server: ScriptedApiServer, access: ApiAccess) -> None:
    server.plan("post", "/apis/x", Reply(pieces=(b"{}",), status=201))
    assert access.post(Question(path="/apis/x"), b'{"a": 1}', answer_s=5) == b"{}"
    (asked,) = server.asked("post", "/apis/x")
    assert (asked.body, asked.headers["content-type"]) == (b'{"a": 1}', "application/json")


@pytest.mark.parametrize(
    ("code", "fault"),
    [
        pytest.param(401, ApiFault.UNAUTHORIZED, id="401"),
        pytest.param(403, ApiFault.FORBIDDEN, id="403"),
        pytest.param(404, ApiFault.NOT_FOUND, id="404"),
        pytest.param(410, ApiFault.GONE, id="410"),
        pytest.param(429, ApiFault.THROTTLED, id="429"),
        pytest.param(500, ApiFault.SERVER, id="500"),
        pytest.param(503, ApiFault.SERVER, id="503"),
        pytest.param(302, ApiFault.REFUSED_REQUEST, id="a redirect is not followed"),
        pytest.param(400, ApiFault.REFUSED_REQUEST, id="400"),
    ],
)
def test_status_is_one_word(
    server: ScriptedApiServer, access: ApiAccess, code: int, fault: ApiFault
) -> None:
    server.plan("get", PODS.path, refused(code, "Because", "of  many\nreasons"))
    error = error_for(access)
    assert error.fault is fault
    assert server.url in error.message
    assert "list pods" in error.message
    assert "of many reasons" in error.message
    assert error.hint


def test_refusal_without_a_status_object_has_the_bodys_words(
    server: ScriptedApiServer, access: ApiAccess
) -> None:
    server.plan("get", PODS.path, Reply(pieces=(b"upstream is away",), status=502))
    error = error_for(access)
    assert (error.fault, "upstream is away" in error.message) == (ApiFault.SERVER, True)


def test_wish_to_wait_is_kept(server: ScriptedApiServer, access: ApiAccess) -> None:
    server.plan("get", PODS.path, refused(429, "TooManyRequests", retryAfterSeconds=7))
    assert error_for(access).retry_after_s == 7.0


def test_wish_of_an_overloaded_api_server_is_kept(
    server: ScriptedApiServer, access: ApiAccess
) -> None:
    """Priority and fairness, and a server that ends, answer in plain text."""
    words = b"Too many requests, please try again later.\n"
    reply = Reply(pieces=(words,), status=429, headers=(("Retry-After", "9"),))
    server.plan("get", PODS.path, reply)
    error = error_for(access)
    assert (error.fault, error.retry_after_s) == (ApiFault.THROTTLED, 9.0)


@pytest.mark.parametrize(
    ("question", "rule"),
    [
        pytest.param(
            PODS, 'apiGroups: [""], resources: ["pods"], verbs: ["list", "watch"]', id="core group"
        ),
        pytest.param(
            JOBS, 'apiGroups: ["batch"], resources: ["jobs"], verbs: ["list", "watch"]', id="group"
        ),
    ],
)
def test_forbidden_hint_is_the_missing_rule(
    server: ScriptedApiServer, access: ApiAccess, question: Question, rule: str
) -> None:
    server.plan("get", question.path, refused(403, "Forbidden", "no"))
    assert rule in error_for(access, question).hint


def test_refused_token_is_loaded_anew_once(
    server: ScriptedApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when a token file was rotated, or a plugin's token expired early."""
    monkeypatch.setattr("collector.sources.kubernetes.access.RELOAD_S", -1.0)
    token = tmp_path / "token"
    token.write_text("old", encoding="ascii")
    config = write_kubeconfig(
        tmp_path / "config", server=server.url, user={"tokenFile": str(token)}
    )
    access = ApiAccess(Origin(kubeconfig=config))
    token.write_text("new", encoding="ascii")
    server.plan("get", "/version", refused(401), Reply(pieces=(b"{}",)))
    assert access.get(VERSION, answer_s=5) == b"{}"
    tokens = [one.headers["authorization"] for one in server.asked("get", "/version")]
    assert tokens == ["Bearer old", "Bearer new"]
    access.close()


def test_plugins_token_is_used(server: ScriptedApiServer, tmp_path: Path) -> None:
    credential = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": {"token": "from the plugin"},
    }
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": sys.executable,
        "args": ["-c", f"print({json.dumps(credential)!r})"],
        "interactiveMode": "Never",
    }
    config = write_kubeconfig(tmp_path / "config", server=server.url, user={"exec": plugin})
    access = ApiAccess(Origin(kubeconfig=config))
    server.plan("get", "/version", Reply(pieces=(b"{}",)))
    access.get(VERSION, answer_s=5)
    assert server.requests[0].headers["authorization"] == "Bearer from the plugin"
    access.close()


def test_proxy_of_the_kubeconfig_is_used(server: ScriptedApiServer, tmp_path: Path) -> None:
    config = write_kubeconfig(
        tmp_path / "config", server="http://cluster.invalid", **{"proxy-url": server.url}
    )
    access = ApiAccess(Origin(kubeconfig=config))
    server.plan("get", "/version", Reply(pieces=(b"{}",)))
    assert access.get(VERSION, answer_s=5) == b"{}"
    assert server.requests[0].headers["host"] == "cluster.invalid"
    access.close()
    assert error_for(access, VERSION).fault is ApiFault.CLOSED


def test_proxy_of_the_environment_is_not_asked_for_this_machine(
    server: ScriptedApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://nowhere.invalid:1")
    monkeypatch.delenv("no_proxy", raising=False)
    access = ApiAccess(Origin(kubeconfig=server.kubeconfig(tmp_path)))
    server.plan("get", "/version", Reply(pieces=(b"{}",)))
    assert access.get(VERSION, answer_s=5) == b"{}"
    access.close()


def test_nothing_listens(tmp_path: Path) -> None:
    with closed_port() as port:
        config = write_kubeconfig(tmp_path / "config", server=f"http://127.0.0.1:{port}")
        error = error_for(ApiAccess(Origin(kubeconfig=config)))
    assert error.fault is ApiFault.REFUSED
    assert f"http://127.0.0.1:{port} did not list pods" in error.message


def test_host_that_nobody_knows(tmp_path: Path) -> None:
    config = write_kubeconfig(tmp_path / "config", server="http://nowhere.invalid")
    assert error_for(ApiAccess(Origin(kubeconfig=config))).fault is ApiFault.UNKNOWN_HOST


@pytest.mark.parametrize(
    ("reply", "fault"),
    [
        pytest.param(Reply(pieces=(b"half",), ending=Ending.CUT), ApiFault.BROKEN, id="cut off"),
        pytest.param(Reply(pieces=(b"half",), ending=Ending.HANG), ApiFault.TIMEOUT, id="stuck"),
        pytest.param(Reply(is_headless=True), ApiFault.TIMEOUT, id="no answer at all"),
    ],
)
def test_answer_that_is_not_whole_is_none(
    server: ScriptedApiServer, access: ApiAccess, reply: Reply, fault: ApiFault
) -> None:
    server.plan("get", PODS.path, reply)
    assert error_for(access, answer_s=0.3).fault is fault


def test_answer_that_drips_has_one_deadline(
    server: ScriptedApiServer, access: ApiAccess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "collector.sources.kubernetes.access.time.monotonic", iter(range(9)).__next__
    )
    server.plan("get", PODS.path, Reply(pieces=(b"a", b"b", b"c")))
    error = error_for(access, answer_s=2)
    assert (error.fault, "longer than 2 s" in error.message) == (ApiFault.TIMEOUT, True)


def test_endless_answer_is_given_up(
    server: ScriptedApiServer, access: ApiAccess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("collector.sources.kubernetes.access.BODY_LIMIT_BYTES", 5)
    server.plan("get", PODS.path, Reply(pieces=(b"123456",)), Reply(pieces=(b"12345",)))
    assert error_for(access).fault is ApiFault.TOO_LARGE
    assert access.get(PODS, answer_s=5) == b"12345"


def test_lines_come_as_they_are_sent(server: ScriptedApiServer, access: ApiAccess) -> None:
    server.plan("watch", PODS.path, watched(bookmark(1), bookmark(2)))
    asked = Question(path=PODS.path, query=(("watch", "true"),), verb="watch", plural="pods")
    with access.lines(asked, silence_s=5) as lines:
        assert [next(lines), next(lines)] == [bookmark(1).rstrip(), bookmark(2).rstrip()]


def test_close_wakes_who_waits_for_a_line(server: ScriptedApiServer, access: ApiAccess) -> None:
    asked = Question(path=PODS.path, query=(("watch", "true"),), verb="watch", plural="pods")
    faults: list[ApiFault] = []

    def follow() -> None:
        with pytest.raises(ApiError) as caught, access.lines(asked, silence_s=600) as lines:
            list(lines)
        faults.append(caught.value.fault)

    reader = threading.Thread(target=follow)
    reader.start()
    while not server.asked("watch", PODS.path):
        reader.join(timeout=0.01)
    access.close()
    reader.join(timeout=5)
    assert faults == [ApiFault.CLOSED]
    assert error_for(access).fault is ApiFault.CLOSED


def test_unknown_authority_is_a_fault_of_tls(tmp_path: Path) -> None:
    with tls_server(tmp_path) as port:
        config = write_kubeconfig(tmp_path / "config", server=f"https://127.0.0.1:{port}")
        access = ApiAccess(Origin(kubeconfig=config))
        error = error_for(access, VERSION)
        access.close()
    assert error.fault is ApiFault.TLS
    assert "certificate" in error.message


def test_named_authority_is_trusted(tmp_path: Path) -> None:
    with tls_server(tmp_path) as port:
        authority = {"certificate-authority": str(tmp_path / "server.crt")}
        config = write_kubeconfig(
            tmp_path / "config", server=f"https://127.0.0.1:{port}", **authority
        )
        access = ApiAccess(Origin(kubeconfig=config))
        assert access.get(VERSION, answer_s=5) == b"{}"
        access.close()


class _Empty(BaseHTTPRequestHandler):
    """Answers every request with an empty object."""

    def do_GET(self) -> None:
        """Answer."""
        self.send_response(200)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class _TlsServer(HTTPServer):
    """Does the handshake in ``get_request``, whose failures the server passes over."""

    context: ssl.SSLContext

    def get_request(self) -> tuple[ssl.SSLSocket, object]:
        """Return a connection after its handshake."""
        plain, address = super().get_request()
        try:
            return self.context.wrap_socket(plain, server_side=True), address
        except ssl.SSLError:
            plain.close()
            raise


class tls_server:  # noqa: N801 - used as a word of the test
    """A server whose certificate it signed itself."""

    def __init__(self, folder: Path) -> None:
        """Make the certificate."""
        self.key, self.certificate = folder / "server.key", folder / "server.crt"
        subprocess.run(
            [
                *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
                *("-keyout", str(self.key), "-out", str(self.certificate)),
                *("-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"),
            ],
            check=True,
            capture_output=True,
        )

    def __enter__(self) -> int:
        """Serve; return the port."""
        self.server = _TlsServer(("127.0.0.1", 0), _Empty)
        self.server.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.server.context.load_cert_chain(self.certificate, self.key)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,))
        self.thread.start()
        return int(self.server.server_port)

    def __exit__(self, *_: object) -> None:
        """End the server."""
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.mark.parametrize(
    ("pieces", "lines"),
    [
        pytest.param([], [], id="nothing"),
        pytest.param([b"a\n"], [b"a"], id="one line"),
        pytest.param([b"a\nb\n"], [b"a", b"b"], id="two in one piece"),
        pytest.param([b"a", b"b", b"\nc\n"], [b"ab", b"c"], id="one over three pieces"),
        pytest.param([b"a\n", b"b"], [b"a", b"b"], id="the last without its end"),
        pytest.param([b"a", b"\n"], [b"a"], id="the end alone in its piece"),
        pytest.param([b"\n\n"], [b"", b""], id="empty lines"),
    ],
)
def test_lines_of_pieces(pieces: list[bytes], lines: list[bytes]) -> None:
    assert list(lines_of(pieces)) == lines


def test_event_without_end_is_given_up(
    server: ScriptedApiServer, access: ApiAccess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("collector.sources.kubernetes.access.LINE_LIMIT_BYTES", 100)
    server.plan(
        "watch", PODS.path, Reply(pieces=(b"{}\n" + b"x" * 90, b"x" * 90), ending=Ending.HANG)
    )
    asked = Question(path=PODS.path, query=(("watch", "true"),), verb="watch", plural="pods")
    taken: list[bytes] = []
    with (
        pytest.raises(ApiError, match="an event has no end") as caught,
        access.lines(asked, silence_s=20) as lines,
    ):
        taken.extend(lines)
    assert caught.value.fault is ApiFault.TOO_LARGE


def test_refusal_without_end_is_read_as_far_as_anybody_would(
    server: ScriptedApiServer, access: ApiAccess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("collector.sources.kubernetes.access.REFUSAL_LIMIT_BYTES", 100)
    server.plan("get", PODS.path, Reply(status=500, pieces=(b"no" * 90,), ending=Ending.HANG))
    with pytest.raises(ApiError, match="500"):
        access.get(PODS, answer_s=20)


@pytest.mark.parametrize("token", ["a\nb", "a\r\nHost: x", "\u2603", "\x00"])
def test_token_that_is_none_is_told(server: ScriptedApiServer, tmp_path: Path, token: str) -> None:
    path = write_kubeconfig(tmp_path / "k", server=server.url, user={"token": token})
    access = ApiAccess(Origin(kubeconfig=path))
    with pytest.raises(ApiError, match="characters that no token has") as caught:
        access.get(PODS, answer_s=20)
    assert caught.value.fault is ApiFault.CREDENTIALS
    access.close()


def test_credentials_that_cannot_be_renewed_are_told(
    access: ApiAccess, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_configuration: object) -> None:
        raise OSError("/var/run/token is gone")

    monkeypatch.setattr(access._configuration, "refresh_api_key_hook", fail)
    error = error_for(access)
    assert (error.fault, "token is gone" in error.message) == (ApiFault.CREDENTIALS, True)


@pytest.mark.parametrize(
    "fault",
    [
        ApiFault.REFUSED,
        ApiFault.UNKNOWN_HOST,
        ApiFault.UNREACHABLE,
        ApiFault.TLS,
        ApiFault.TIMEOUT,
        ApiFault.BROKEN,
        ApiFault.UNREADABLE,
        ApiFault.TOO_LARGE,
        ApiFault.CREDENTIALS,
        ApiFault.CLOSED,
    ],
)
def test_every_fault_of_the_wire_has_a_next_step(fault: ApiFault) -> None:
    assert wire_error(fault, PODS, "it failed", server="s").hint
