"""One target over a real socket: everything that exporters and impostors answer."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Iterator

import pytest

from collector.scrape import FetchLimits, Page, Reason, Refusal, fetch, open_client
from tests.support.exporter_server import (
    Answer,
    ExporterServer,
    closed_port,
    exporter_server,
    exposition,
    gzipped,
    redirect,
)

TEXT = 'gpu_power_watts{gpu="0"} 116.5\n'
PATIENT = FetchLimits(timeout_s=10, body_limit_bytes=1_000)


@pytest.fixture(scope="module")
def server() -> Iterator[ExporterServer]:
    with exporter_server() as running:
        yield running


def read(url: str, *, limits: FetchLimits = PATIENT) -> Page | Refusal:
    async def once() -> Page | Refusal:
        async with open_client() as client:
            return await fetch(client, url, limits=limits)

    return asyncio.run(once())


def refusal(url: str, *, limits: FetchLimits = PATIENT) -> Refusal:
    found = read(url, limits=limits)
    assert isinstance(found, Refusal)
    assert found.hint
    assert str(found.error()) == found.message
    return found


@pytest.mark.parametrize("make", [exposition, gzipped])
def test_a_good_answer_is_read_whole(server: ExporterServer, make: type[Answer]) -> None:
    server.answers["/good"] = make(TEXT)  # type: ignore[call-arg, arg-type] # either builder
    assert read(server.url("/good")) == Page(body=TEXT.encode())
    assert "accept-encoding: gzip\r\n" in server.request_headers["/good"].lower()


@pytest.mark.parametrize("encode", [lambda b: b, gzip.compress], ids=["plain", "gzip"])
@pytest.mark.parametrize(("size_bytes", "is_read"), [(999, True), (1_000, True), (1_001, False)])
def test_the_limit_counts_the_decompressed_body(
    server: ExporterServer, encode: object, size_bytes: int, *, is_read: bool
) -> None:
    assert callable(encode)
    headers = (("content-encoding", "gzip"),) if encode is gzip.compress else ()
    server.answers["/size"] = Answer(body=encode(b"x" * size_bytes), headers=headers)
    found = read(server.url("/size"))
    assert isinstance(found, Page) == is_read
    if isinstance(found, Refusal):
        assert found.reason is Reason.TOO_LARGE
        assert "more than 1,000 bytes" in found.message


def test_an_endless_body_is_stopped_at_the_limit(server: ExporterServer) -> None:
    server.answers["/endless"] = Answer(is_endless=True)
    limits = FetchLimits(timeout_s=60, body_limit_bytes=1_000_000)
    found = refusal(server.url("/endless"), limits=limits)
    assert found.reason is Reason.TOO_LARGE
    assert 1_000_000 < found.body_bytes < 2_000_000


def test_the_default_limit_stops_an_endless_body_at_64_mib(server: ExporterServer) -> None:
    server.answers["/endless"] = Answer(is_endless=True)
    found = refusal(server.url("/endless"), limits=FetchLimits(timeout_s=60))
    assert found.reason is Reason.TOO_LARGE
    assert 64 * 1_048_576 < found.body_bytes < 66 * 1_048_576


def test_a_small_gzip_that_stands_for_much_is_stopped_at_the_limit(
    server: ExporterServer,
) -> None:
    bomb = gzip.compress(b"\n" * 50_000_000)
    server.answers["/bomb"] = Answer(body=bomb, headers=(("content-encoding", "gzip"),))
    found = refusal(server.url("/bomb"))
    assert found.reason is Reason.TOO_LARGE
    assert found.body_bytes <= 3_000


@pytest.mark.parametrize(
    "answer",
    [Answer(is_silent=True), Answer(body=b"slow_metric 1\n", drip_s=0.01)],
    ids=["silent", "one byte at a time"],
)
def test_the_deadline_covers_the_whole_answer(server: ExporterServer, answer: Answer) -> None:
    server.answers["/slow"] = answer
    found = refusal(server.url("/slow"), limits=FetchLimits(timeout_s=0.2))
    assert found.reason is Reason.TIMEOUT
    assert "within 0.2 s" in found.message


@pytest.mark.parametrize(
    ("location", "target"),
    [
        ("http://elsewhere:9400/metrics", "http://elsewhere:9400/metrics"),
        ("/metrics/", "http://127.0.0.1:{port}/metrics/"),
    ],
)
def test_a_redirect_is_told_not_followed(
    server: ExporterServer, location: str, target: str
) -> None:
    server.answers["/moved"] = redirect(location)
    found = refusal(server.url("/moved"))
    expected = target.format(port=server.port)
    assert found.reason is Reason.REDIRECT
    assert expected in found.message
    assert found.hint == f"scrape that address: {expected}"
    assert server.requests["/metrics/"] == 0


@pytest.mark.parametrize("status", ["404 Not Found", "503 Service Unavailable", "204 No Content"])
def test_other_statuses_are_told(server: ExporterServer, status: str) -> None:
    server.answers["/status"] = Answer(status=status)
    found = refusal(server.url("/status"))
    assert found.reason is Reason.HTTP_STATUS
    assert found.message.endswith(f"answered HTTP {status}")


@pytest.mark.parametrize(
    ("body", "content_type", "looks"),
    [
        (b"<!DOCTYPE html><html></html>", "text/plain", "HTML"),
        (b"\n <html>", "", "HTML"),
        (b"hello", "text/html; charset=utf-8", "HTML"),
        (b'{"status": "ok"}', "text/plain", "JSON"),
        (b"[]", "text/plain", "JSON"),
        (b"12", "application/json", "JSON"),
        (b"\x0a\x00\x12", "text/plain", "binary data"),
    ],
)
def test_other_content_is_no_exposition(
    server: ExporterServer, *, body: bytes, content_type: str, looks: str
) -> None:
    server.answers["/page"] = Answer(body=body, headers=(("content-type", content_type),))
    found = refusal(server.url("/page"))
    assert found.reason is Reason.NOT_EXPOSITION
    assert f"answers with {looks}" in found.message


@pytest.mark.parametrize(
    ("body", "encoding"),
    [
        (b"not gzip at all", "gzip"),
        (gzip.compress(TEXT.encode())[:-9], "gzip"),
        (TEXT.encode(), "br"),
    ],
    ids=["not gzip", "cut gzip", "unknown encoding"],
)
def test_what_cannot_be_decoded(server: ExporterServer, body: bytes, encoding: str) -> None:
    server.answers["/coded"] = Answer(body=body, headers=(("content-encoding", encoding),))
    assert refusal(server.url("/coded")).reason is Reason.ENCODING


def test_an_answer_cut_short_is_not_taken_for_whole(server: ExporterServer) -> None:
    server.answers["/cut"] = Answer(body=TEXT.encode(), promised_bytes=1_000)
    assert refusal(server.url("/cut")).reason is Reason.BROKEN


def test_nothing_listens() -> None:
    with closed_port() as port:
        found = refusal(f"http://127.0.0.1:{port}/metrics")
    assert found.reason is Reason.REFUSED
    assert "connection refused" in found.message


def test_a_name_that_does_not_exist() -> None:
    assert refusal("http://no-such-host.invalid/metrics").reason is Reason.UNKNOWN_HOST


def test_tls_where_none_is_spoken(server: ExporterServer) -> None:
    server.answers["/metrics"] = exposition(TEXT)
    url = server.url().replace("http:", "https:")
    assert refusal(url).reason is Reason.TLS
