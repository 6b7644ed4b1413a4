"""URLs of targets: asked at an interval, kept when they fail."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator

import pytest

from collector.discovery import ScrapeTarget
from collector.discovery_http import HttpDiscovery
from tests.support.exporter_server import (
    Answer,
    ExporterServer,
    closed_port,
    exporter_server,
    redirect,
)

JSON = (("content-type", "application/json"),)


@pytest.fixture
def server() -> Iterator[ExporterServer]:
    with exporter_server() as running:
        yield running


def listing(*addresses: str, node: str | None = None) -> Answer:
    labels = {} if node is None else {"node": node}
    body = json.dumps([{"targets": list(addresses), "labels": labels}]).encode()
    return Answer(body=body, headers=JSON)


def look(found: HttpDiscovery) -> list[str]:
    return [one.url for one in asyncio.run(found.look())]


def test_all_urls_count_each_target_once(server: ExporterServer) -> None:
    server.answers = {"/a": listing("h1:1", "h2:2"), "/b": listing("h2:2", node="n2")}
    found = HttpDiscovery([server.url("/a"), server.url("/b")], refresh_s=60)
    assert asyncio.run(found.look()) == (
        ScrapeTarget(url="http://h1:1/metrics"),
        ScrapeTarget(url="http://h2:2/metrics", node="n2"),
    )
    assert [(one.target_count, one.error) for one in found.states()] == [(2, None), (1, None)]


def test_server_is_told_how_often_it_is_asked(server: ExporterServer) -> None:
    server.answers = {"/a": listing()}
    look(HttpDiscovery([server.url("/a")], refresh_s=30))
    head = server.request_headers["/a"].lower()
    assert "x-prometheus-refresh-interval-seconds: 30\r\n" in head
    assert "accept: application/json\r\n" in head


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        pytest.param(Answer(status="500 Oops"), "HTTP 500", id="status"),
        pytest.param(Answer(body=b"<html>"), "answers no JSON", id="no JSON"),
        pytest.param(Answer(body=b"{}"), "not a list of groups", id="another shape"),
        pytest.param(Answer(body=b"[" * 100_000), "answers no JSON", id="nested without end"),
        pytest.param(redirect("http://[::1"), "cannot be read", id="redirect to nowhere"),
        pytest.param(Answer(body=b"[", promised_bytes=9), "cannot be read", id="cut off"),
        pytest.param(Answer(is_silent=True), "within 0.5 s", id="silent"),
        pytest.param(Answer(body=b"[]", drip_s=0.2), "within 0.5 s", id="dripping"),
        pytest.param(Answer(body=b'[{"targets": ["h h"]}]'), "bad target", id="bad address"),
    ],
)
def test_url_that_fails_keeps_its_last_good_targets_and_says_so(
    server: ExporterServer, answer: Answer, words: str
) -> None:
    server.answers = {"/a": listing("h1:1"), "/b": listing("h2:2")}
    found = HttpDiscovery([server.url("/a"), server.url("/b")], refresh_s=60, timeout_s=0.5)
    look(found)
    server.answers = {"/a": answer, "/b": listing("h3:3")}
    assert look(found) == ["http://h1:1/metrics", "http://h3:3/metrics"]
    failed, good = found.states()
    assert failed.error is not None
    assert words in failed.error
    assert server.url("/a") in failed.error
    assert (failed.target_count, good.error) == (1, None)
    server.answers["/a"] = listing()
    assert look(found) == ["http://h3:3/metrics"]
    assert found.states()[0].error is None


def test_nobody_listens() -> None:
    with closed_port() as port:
        found = HttpDiscovery([f"http://127.0.0.1:{port}/"], refresh_s=60)
        assert look(found) == []
        assert f"http://127.0.0.1:{port}/ cannot be read" in (found.states()[0].error or "")


def test_answer_that_is_too_large_is_given_up(
    server: ExporterServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("collector.discovery_http.ANSWER_LIMIT_BYTES", 20)
    server.answers = {"/a": listing("h1:1")}
    found = HttpDiscovery([server.url("/a")], refresh_s=60)
    assert look(found) == []
    assert "more than any list" in (found.states()[0].error or "")


@pytest.mark.parametrize("url", ["http://[::1", "http://", "http://h:99999", "http://\udc80"])
def test_url_that_is_none_is_told_and_ends_nothing(url: str) -> None:
    found = HttpDiscovery([url], refresh_s=60)
    assert asyncio.run(found.look()) == ()
    (state,) = found.states()
    assert "cannot be read" in str(state.error)
