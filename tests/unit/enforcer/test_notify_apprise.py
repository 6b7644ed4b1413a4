"""Notices by Apprise against a real web server on loopback: what arrives, and what failure says."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from enforcer.decisions import Step
from enforcer.enrich import subject_target
from enforcer.notify import OwnerWarning
from enforcer.notify_apprise import apprise_channels
from steward.errors import SettingsError
from tests.support.enforcer_plan import MINUTE, NOON, due, holder

KEPT = "s3cr3t"
"""Part of an address that nobody may read."""


@dataclass
class Sink:
    """What a chat received, and what it answers."""

    port: int
    status: int = 200
    bodies: list[dict[str, object]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"json://user:{KEPT}@127.0.0.1:{self.port}/hook"


@contextmanager
def listening(status: int = 200) -> Iterator[Sink]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            sink.bodies.append(json.loads(self.rfile.read(length)))
            self.send_response(sink.status)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    sink = Sink(port=server.server_address[1], status=status)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield sink
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def warning() -> OwnerWarning:
    idle = holder("w-1")
    return OwnerWarning(
        action_id="plan/0",
        workload=idle,
        decision=due(idle, Step.NOTIFY),
        told_at=NOON,
        act_at=NOON + 60 * MINUTE,
    )


def test_the_owner_reads_what_was_seen_and_what_follows() -> None:
    with listening() as sink:
        (channel,) = apprise_channels([sink.url])
        told = channel.tell(warning())
    assert (told.channel, told.is_delivered, told.detail) == ("json-1", True, None)
    (body,) = sink.bodies
    assert body["message"] == warning().text
    assert "w-1" in str(body["title"])


@pytest.mark.parametrize("status", [403, 500])
def test_a_refused_notice_is_not_delivered_and_tells_no_secret(status: int) -> None:
    with listening(status) as sink:
        (channel,) = apprise_channels([sink.url])
        told = channel.tell(warning())
    assert not told.is_delivered
    assert KEPT not in str(told)


def test_nobody_listening_is_not_delivered() -> None:
    with listening() as sink:
        pass
    (channel,) = apprise_channels([sink.url])
    assert not channel.tell(warning()).is_delivered


def test_each_address_is_a_channel_of_its_own() -> None:
    with listening() as good, listening(500) as bad:
        channels = apprise_channels([good.url, bad.url])
        assert [one.tell(warning()).is_delivered for one in channels] == [True, False]
    assert [one.name for one in channels] == ["json-1", "json-2"]


def test_nothing_is_known_of_a_notice_after_a_crash() -> None:
    (channel,) = apprise_channels(["json://127.0.0.1:1/"])
    assert not channel.was_told("plan/0", subject_target(holder("w-1")))


def test_no_address_is_no_channel_and_needs_no_apprise() -> None:
    assert apprise_channels([]) == ()


@pytest.mark.parametrize("url", ["", "nonsense", "nosuchservice://x", f"http//{KEPT}"])
def test_an_address_that_is_none_is_a_fault_of_the_settings_that_tells_no_secret(url: str) -> None:
    with pytest.raises(SettingsError, match=r"address 2 of enforce\.notify_urls") as refused:
        apprise_channels(["json://127.0.0.1:1/", url])
    assert KEPT not in refused.value.message
