"""How connections are kept, and what strange servers do to them; on both event loops."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import pytest
import uvloop

from collector.exporter_client import ExporterClient, first_opened
from collector.scrape import FetchLimits, Page, Reason, Refusal, fetch, open_client

LIMITS = FetchLimits(timeout_s=10, body_limit_bytes=100_000)
TEXT = b"gpu_power_watts 116.5\n"
HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: 22\r\n"
GOOD = HEAD + b"\r\n" + TEXT
Run: TypeAlias = Callable[[Coroutine[Any, Any, None]], None]


@pytest.fixture(params=[asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    runner: Run = request.param
    return runner


@dataclass(slots=True)
class ScriptedServer:
    """Answers each request with the next bytes; None hangs up instead."""

    answers: list[bytes | None]
    connections: int = 0
    requests: int = 0
    hang_up_after: set[int] = field(default_factory=set)
    """Hang up after these answers, counted from 1."""
    port: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                self.requests += 1
                answer = self.answers.pop(0)
                if answer is None:
                    break
                writer.write(answer)
                await writer.drain()
                if self.requests in self.hang_up_after:
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


async def scrapes(
    server: ScriptedServer, count: int, *, between: Callable[[], Awaitable[None]] | None = None
) -> list[Page | Refusal]:
    """Scrape the server so many times with one client."""
    listener = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.port = listener.sockets[0].getsockname()[1]
    found = []
    async with open_client() as client:
        for _ in range(count):
            url = f"http://127.0.0.1:{server.port}/metrics"
            found.append(await fetch(client, url, limits=LIMITS))
            if between is not None:
                await between()
    listener.close()
    await listener.wait_closed()
    return found


async def pause() -> None:
    """Let the loop see what the other side did."""
    for _ in range(20):
        await asyncio.sleep(0.001)


def test_one_connection_serves_many_scrapes(run: Run) -> None:
    async def check() -> None:
        server = ScriptedServer([GOOD] * 5)
        assert await scrapes(server, 5) == [Page(body=TEXT)] * 5
        assert (server.connections, server.requests) == (1, 5)

    run(check())


def test_a_connection_that_was_closed_meanwhile_is_opened_anew(run: Run) -> None:
    async def check() -> None:
        server = ScriptedServer([GOOD] * 3, hang_up_after={1, 2})
        assert await scrapes(server, 3, between=pause) == [Page(body=TEXT)] * 3
        assert server.connections == 3

    run(check())


def test_a_kept_connection_that_ends_without_an_answer_is_tried_once_more(run: Run) -> None:
    async def check() -> None:
        server = ScriptedServer([GOOD, None, GOOD])
        assert await scrapes(server, 2) == [Page(body=TEXT)] * 2
        assert (server.connections, server.requests) == (2, 3)

    run(check())


def test_a_new_connection_that_ends_without_an_answer_is_not_tried_again(run: Run) -> None:
    async def check() -> None:
        server = ScriptedServer([None, GOOD])
        first, second = await scrapes(server, 2)
        assert isinstance(first, Refusal)
        assert (first.reason, second) == (Reason.BROKEN, Page(body=TEXT))
        assert "without an answer" in first.message

    run(check())


@pytest.mark.parametrize(
    "surplus",
    [b"more", GOOD, b"HTTP/1.1 200 OK\r\n"],
    ids=["bytes", "another answer", "half of another answer"],
)
def test_more_than_was_asked_for_ends_the_connection(run: Run, surplus: bytes) -> None:
    async def check() -> None:
        server = ScriptedServer([GOOD + surplus, GOOD])
        assert await scrapes(server, 2, between=pause) == [Page(body=TEXT)] * 2
        assert server.connections == 2

    run(check())


@pytest.mark.parametrize(
    ("answer", "connections"),
    [
        pytest.param(b"HTTP/1.1 103 Early Hints\r\nx: y\r\n\r\n" + GOOD, 1, id="interim answer"),
        pytest.param(
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n16\r\n"
            + TEXT
            + b"\r\n0\r\ncontent-encoding: br\r\n\r\n",
            1,
            id="chunks and a trailer",
        ),
        pytest.param(HEAD + b"connection: close\r\n\r\n" + TEXT, 2, id="asked to close"),
        pytest.param(b"HTTP/1.0 200 OK\r\ncontent-length: 22\r\n\r\n" + TEXT, 2, id="HTTP/1.0"),
    ],
)
def test_ways_to_answer(run: Run, answer: bytes, connections: int) -> None:
    async def check() -> None:
        server = ScriptedServer([answer] * 2)
        assert await scrapes(server, 2) == [Page(body=TEXT)] * 2
        assert server.connections == connections

    run(check())


def test_an_answer_without_a_length_ends_with_its_connection(run: Run) -> None:
    async def check() -> None:
        server = ScriptedServer([b"HTTP/1.1 200 OK\r\n\r\n" + TEXT], hang_up_after={1})
        assert await scrapes(server, 1) == [Page(body=TEXT)]

    run(check())


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"HTTP/1.1 200 OK\r\n" + b"x: " + b"y" * 200_000, id="endless header"),
        pytest.param(b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 50_000, id="endless headers"),
        pytest.param(b"SSH-2.0-OpenSSH_9.2\r\n", id="another protocol"),
        pytest.param(b"HTTP/1.1 200 OK\r\ncontent-length: 5, 6\r\n\r\n", id="two lengths"),
        pytest.param(
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", id="broken chunk"
        ),
        pytest.param(HEAD + b"\r\n" + TEXT[:5], id="half a body"),
    ],
)
def test_what_is_no_whole_answer(run: Run, answer: bytes) -> None:
    async def check() -> None:
        server = ScriptedServer([answer], hang_up_after={1})
        (found,) = await scrapes(server, 1)
        assert isinstance(found, Refusal)
        assert found.reason is Reason.BROKEN

    run(check())


def test_switching_protocols_is_a_status_like_any_other(run: Run) -> None:
    async def check() -> None:
        answer = b"HTTP/1.1 101 Switching\r\nupgrade: h2c\r\nconnection: upgrade\r\n\r\n"
        (found,) = await scrapes(ScriptedServer([answer]), 1)
        assert isinstance(found, Refusal)
        assert (found.reason, found.message[-13:]) == (Reason.HTTP_STATUS, "101 Switching")

    run(check())


def test_a_forgotten_target_is_hung_up_on(run: Run) -> None:
    async def check() -> None:
        ended = asyncio.Event()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(GOOD)
            await reader.read()
            writer.close()
            ended.set()

        listener = await asyncio.start_server(serve, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/metrics"
        async with open_client() as client:
            await fetch(client, url, limits=LIMITS)
            client.forget(url)
            await asyncio.wait_for(ended.wait(), 10)
        listener.close()
        await listener.wait_closed()

    run(check())


def test_a_name_with_several_addresses_is_tried_address_by_address() -> None:
    late: list[str] = []
    never = asyncio.Event

    async def fail() -> str:
        raise ConnectionRefusedError

    async def hang() -> str:
        await never().wait()
        return "never"

    async def answer() -> str:
        return "second"

    async def check() -> None:
        for first in (fail, hang):
            assert await first_opened([first, answer], next_s=0.01, close=late.append) == "second"
        with pytest.raises(ConnectionRefusedError):
            await first_opened([fail, fail], next_s=0.01, close=late.append)
        assert await first_opened([answer, fail], next_s=10, close=late.append) == "second"

    asyncio.run(check())
    assert late == []


def test_what_opens_too_late_is_closed() -> None:
    late: list[str] = []

    async def answer_despite_cancellation() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "late"
        return "never"

    async def answer() -> str:
        return "in time"

    async def check() -> None:
        openers = [answer_despite_cancellation, answer]
        assert await first_opened(openers, next_s=0.01, close=late.append) == "in time"
        await pause()

    asyncio.run(check())
    assert late == ["late"]


def test_the_host_of_the_request_is_the_one_of_the_address(run: Run) -> None:
    async def check() -> None:
        heads = []

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            heads.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(GOOD)
            writer.close()

        listener = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = listener.sockets[0].getsockname()[1]
        async with ExporterClient({"accept": "text/plain"}) as client:
            await client.get(f"http://localhost:{port}/a?b=c", body_limit_bytes=100)
        listener.close()
        await listener.wait_closed()
        assert heads == [
            f"GET /a?b=c HTTP/1.1\r\nhost: localhost:{port}\r\naccept: text/plain\r\n\r\n".encode()
        ]

    run(check())
