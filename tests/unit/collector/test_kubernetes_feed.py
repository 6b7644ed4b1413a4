"""Several kinds as one stream: which are there, which come later, and a prompt end."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from collector.sources.kubernetes.access import ApiAccess
from collector.sources.kubernetes.api_error import ApiFault
from collector.sources.kubernetes.change import Change
from collector.sources.kubernetes.credentials import Origin
from collector.sources.kubernetes.feed import KubernetesFeed
from steward.clock import FixedClock
from tests.support.api_server_script import (
    Reply,
    ScriptedApiServer,
    event,
    listed,
    refused,
    scripted_api_server,
    thing,
    watched,
)
from tests.support.kubernetes_feeds import NOON, QUICK, THINGS, THINGS_PATH, running_feed

WIDGETS = replace(
    THINGS,
    group="shop.example",
    versions=("v2", "v1"),
    plural="widgets",
    kind="Widget",
    is_optional=True,
)


def widgets_path(version: str) -> str:
    return f"/apis/shop.example/{version}/widgets"


@pytest.fixture
def server() -> Iterator[ScriptedApiServer]:
    with scripted_api_server() as running:
        running.kinds[""] = ("things",)
        running.plan("list", THINGS_PATH, listed(thing("t", 1)))
        yield running


@pytest.fixture
def kubeconfig(server: ScriptedApiServer, tmp_path: Path) -> Path:
    return server.kubeconfig(tmp_path)


def test_first_version_that_the_server_has_is_read(
    server: ScriptedApiServer, kubeconfig: Path
) -> None:
    server.kinds |= {"shop.example/v1": ("widgets",), "shop.example/v3": ("widgets",)}
    server.plan("list", widgets_path("v1"), listed(thing("w", 2)))
    with running_feed(kubeconfig, THINGS, WIDGETS) as run:
        run.wait_for(lambda: run.feed.is_synced)
        assert run.told(WIDGETS) == ["ADDED a/w@2", "SYNCED"]
        assert run.health(WIDGETS).version == "v1"


def test_kind_without_list_and_watch_counts_as_absent(
    server: ScriptedApiServer, kubeconfig: Path
) -> None:
    server.plan(
        "get",
        "/apis",
        Reply(pieces=(b'{"groups":[{"name":"shop.example","versions":[{"version":"v1"}]}]}',)),
    )
    server.plan(
        "get",
        "/apis/shop.example/v1",
        Reply(pieces=(b'{"resources":[{"name":"widgets","verbs":["create"]},{"name":"x"}]}',)),
    )
    with running_feed(kubeconfig, THINGS, WIDGETS) as run:
        run.wait_for(lambda: run.health(WIDGETS).is_served is False)
        run.wait_for(lambda: run.feed.is_synced)


def test_optional_kind_that_comes_later_is_noticed(
    server: ScriptedApiServer, kubeconfig: Path
) -> None:
    with running_feed(kubeconfig, THINGS, WIDGETS) as run:
        run.wait_for(lambda: run.feed.is_synced and run.health(WIDGETS).is_served is False)
        assert run.told() == ["ADDED a/t@1", "SYNCED"]
        server.plan("list", widgets_path("v2"), listed(thing("w", 2)))
        server.kinds["shop.example/v2"] = ("widgets",)
        run.wait_for_told("ADDED a/t@1", "SYNCED", "ADDED a/w@2", "SYNCED")
        assert run.health(WIDGETS).is_served is True


def test_kind_that_goes_for_good_ends_its_objects(
    server: ScriptedApiServer, kubeconfig: Path
) -> None:
    server.kinds["shop.example/v2"] = ("widgets",)
    server.plan("list", widgets_path("v2"), listed(thing("w", 2)), refused(404))
    server.plan("watch", widgets_path("v2"), refused(404))
    with running_feed(kubeconfig, WIDGETS) as run:
        run.wait_for(lambda: "SYNCED" in run.told())
        del server.kinds["shop.example/v2"]
        run.wait_for_told("ADDED a/w@2", "SYNCED", "DELETED a/w@2", "SYNCED")
        run.wait_for(lambda: run.health(WIDGETS).is_served is False)


def test_kind_that_is_away_for_one_survey_ends_nothing(
    server: ScriptedApiServer, kubeconfig: Path
) -> None:
    """As right after the start of an API server, before it knows its CRDs."""
    groups = b'{"groups":[{"name":"shop.example","versions":[{"version":"v2"}]}]}'
    server.kinds["shop.example/v2"] = ("widgets",)
    here, away = Reply(pieces=(groups,)), Reply(pieces=(b'{"groups":[]}',))
    server.plan("get", "/apis", here, away, here)
    server.plan("list", widgets_path("v2"), listed(thing("w", 2)))
    server.plan("watch", widgets_path("v2"), refused(404), watched(event("ADDED", thing("x", 11))))
    with running_feed(kubeconfig, WIDGETS, pace=replace(QUICK, survey_s=0.3)) as run:
        run.wait_for_told("ADDED a/w@2", "SYNCED", "ADDED a/x@11")


def test_version_that_is_no_longer_served_is_followed_in_the_next(
    server: ScriptedApiServer, kubeconfig: Path
) -> None:
    server.kinds["shop.example/v1"] = ("widgets",)
    server.plan("list", widgets_path("v1"), listed(thing("w", 2)))
    server.plan("watch", widgets_path("v1"), watched(event("ADDED", thing("x", 11))), refused(404))
    with running_feed(kubeconfig, WIDGETS, pace=replace(QUICK, silence_s=0.3)) as run:
        run.wait_for_told("ADDED a/w@2", "SYNCED", "ADDED a/x@11")
        server.kinds["shop.example/v2"] = server.kinds.pop("shop.example/v1")
        run.wait_for(lambda: run.health(WIDGETS).version == "v2")
        run.wait_for(lambda: bool(server.asked("watch", widgets_path("v2"))))
        assert run.told() == ["ADDED a/w@2", "SYNCED", "ADDED a/x@11"]
    assert server.asked("watch", widgets_path("v2"))[0].query["resourceVersion"] == "11"


def test_forbidden_kind_does_not_stop_the_others(
    server: ScriptedApiServer, kubeconfig: Path
) -> None:
    server.kinds["shop.example/v2"] = ("widgets",)
    server.plan("list", widgets_path("v2"), refused(403, "Forbidden"))
    with running_feed(kubeconfig, WIDGETS, THINGS) as run:
        run.wait_for(lambda: run.feed.is_synced)
        assert run.told() == ["ADDED a/t@1", "SYNCED"]
        assert run.health(WIDGETS).fault is ApiFault.FORBIDDEN
        assert run.health(THINGS).fault is None


def test_group_that_does_not_answer_does_not_hide_the_others(
    server: ScriptedApiServer, kubeconfig: Path
) -> None:
    server.kinds["shop.example/v2"] = ("widgets",)
    server.plan("get", "/apis/shop.example/v2", refused(503, "ServiceUnavailable"))
    with running_feed(kubeconfig, WIDGETS, THINGS) as run:
        run.wait_for_told("ADDED a/t@1", "SYNCED")
        run.wait_for(lambda: run.health(WIDGETS).fault is ApiFault.SERVER)
        assert run.health(WIDGETS).is_served is None
        assert run.feed.is_synced is False
        assert run.health(THINGS).error is None


def test_server_that_comes_later_is_waited_for(server: ScriptedApiServer, kubeconfig: Path) -> None:
    server.plan("get", "/apis", refused(503, "ServiceUnavailable", "not yet"))
    with running_feed(kubeconfig, THINGS, WIDGETS) as run:
        run.wait_for(lambda: run.health(THINGS).fault is ApiFault.SERVER)
        run.wait_for(lambda: run.health(WIDGETS).fault is ApiFault.SERVER)
        server.plan("get", "/apis", Reply(pieces=(b'{"groups":[]}',)))
        run.wait_for_told("ADDED a/t@1", "SYNCED")
        run.wait_for(lambda: run.health(WIDGETS).is_served is False)
        assert [one.error for one in run.feed.health()] == [None, None]


def test_server_that_is_no_api_server_is_told(server: ScriptedApiServer, kubeconfig: Path) -> None:
    server.plan("get", "/apis", Reply(pieces=(b"<html>log in</html>",)))
    with running_feed(kubeconfig, THINGS) as run:
        run.wait_for(lambda: run.health(THINGS).fault is ApiFault.UNREADABLE)
        assert server.url in (run.health(THINGS).error or "")


def test_end_is_prompt_while_watches_hang(server: ScriptedApiServer, kubeconfig: Path) -> None:
    access = ApiAccess(Origin(kubeconfig=kubeconfig))
    patient = replace(QUICK, silence_s=600, answer_s=600, survey_s=600)
    feed = KubernetesFeed(access, [THINGS], clock=FixedClock(NOON), pace=patient)
    stop = threading.Event()
    thread = threading.Thread(target=feed.run, args=(stop, lambda _: None))
    thread.start()
    while not server.asked("watch", THINGS_PATH):
        time.sleep(0.01)
    stop.set()
    thread.join(timeout=3)
    assert not thread.is_alive()
    assert not [one for one in threading.enumerate() if one.name.startswith("kubernetes")]


def test_end_is_prompt_while_a_request_gets_no_answer(
    server: ScriptedApiServer, kubeconfig: Path
) -> None:
    server.script["list", THINGS_PATH].clear()
    server.plan("list", THINGS_PATH, Reply(is_headless=True))
    patient = replace(QUICK, silence_s=600, answer_s=600, survey_s=600)
    with running_feed(kubeconfig, THINGS, pace=patient) as run:
        run.wait_for(lambda: bool(server.asked("list", THINGS_PATH)))
    assert not [one for one in threading.enumerate() if one.name.startswith("kubernetes")]


def test_failure_of_who_takes_the_changes_ends_the_feed(kubeconfig: Path) -> None:
    feed = KubernetesFeed(
        ApiAccess(Origin(kubeconfig=kubeconfig)), [THINGS], clock=FixedClock(NOON), pace=QUICK
    )

    def refuse(change: Change) -> None:
        raise OSError(f"no room for {change.key.name}")

    with pytest.raises(OSError, match="no room for t"):
        feed.run(threading.Event(), refuse)
    assert not [one for one in threading.enumerate() if one.name.startswith("kubernetes")]


def test_full_queue_makes_the_reader_wait_and_loses_nothing(
    server: ScriptedApiServer, kubeconfig: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("collector.sources.kubernetes.feed.QUEUE_LENGTH", 2)
    monkeypatch.setattr("collector.sources.kubernetes.feed.WAKE_S", 0.01)
    server.script["list", THINGS_PATH].clear()
    server.plan("list", THINGS_PATH, listed(*(thing(f"n{n}", n + 1) for n in range(9))))
    feed = KubernetesFeed(
        ApiAccess(Origin(kubeconfig=kubeconfig)), [THINGS], clock=FixedClock(NOON), pace=QUICK
    )
    stop, taken = threading.Event(), list[str]()

    def take(change: Change) -> None:
        if not taken:  # by now the reader has more than the queue holds
            stop.wait(0.1)
        taken.append(change.key.name)
        if change.object is None:
            stop.set()

    feed.run(stop, take)
    assert taken == [*(f"n{n}" for n in range(9)), ""]


def test_slow_taker_gets_everything_in_order(server: ScriptedApiServer, kubeconfig: Path) -> None:
    many = [thing(f"n{number:04}", number + 1) for number in range(3_000)]
    server.script["list", THINGS_PATH].clear()
    server.plan("list", THINGS_PATH, listed(*many))
    with running_feed(kubeconfig, THINGS) as run:
        run.wait_for(lambda: len(run.changes) == 3_001)
    assert [one.key.name for one in run.changes] == [*sorted(f"n{n:04}" for n in range(3_000)), ""]
