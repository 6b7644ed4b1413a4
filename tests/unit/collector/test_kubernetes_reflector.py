"""Following one kind of objects against a server that does what API servers do, well and badly."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from collector.sources.kubernetes.api_error import ApiFault
from collector.sources.kubernetes.change import ChangeType, ObjectKey
from tests.support.api_server_script import (
    Ending,
    Reply,
    ScriptedApiServer,
    bookmark,
    event,
    failure,
    listed,
    refused,
    scripted_api_server,
    thing,
    watched,
)
from tests.support.kubernetes_feeds import (
    NOON,
    QUICK,
    THINGS,
    THINGS_PATH,
    FeedRun,
    running_feed,
)


@pytest.fixture
def server() -> Iterator[ScriptedApiServer]:
    with scripted_api_server() as running:
        running.kinds[""] = ("things",)
        yield running


@pytest.fixture
def kubeconfig(server: ScriptedApiServer, tmp_path: Path) -> Path:
    return server.kubeconfig(tmp_path)


def resumed_from(server: ScriptedApiServer) -> list[str]:
    return [one.query["resourceVersion"] for one in server.asked("watch", THINGS_PATH)]


def wait_for_watches(run: FeedRun, server: ScriptedApiServer, *versions: str) -> None:
    run.wait_for(lambda: resumed_from(server) == list(versions), what=f"watches from {versions}")


def test_list_is_read_page_by_page_then_watched(
    server: ScriptedApiServer, kubeconfig: Path
) -> None:
    server.plan(
        "list",
        THINGS_PATH,
        listed(thing("a", 1), thing("b", 2), version=7, more="more"),
        listed(thing("c", 3), version=7),
    )
    server.plan(
        "watch",
        THINGS_PATH,
        watched(event("MODIFIED", thing("a", 8)), event("DELETED", thing("b", 9))),
    )
    with running_feed(kubeconfig, THINGS) as run:
        run.wait_for_told(
            "ADDED a/a@1", "ADDED a/b@2", "ADDED a/c@3", "SYNCED", "MODIFIED a/a@8", "DELETED a/b@9"
        )
        health = run.health(THINGS)
    first, second = server.asked("list", THINGS_PATH)
    (watch,) = server.asked("watch", THINGS_PATH)
    assert (first.query, second.query) == ({"limit": "2"}, {"limit": "2", "continue": "more"})
    assert 60 <= int(watch.query.pop("timeoutSeconds")) <= 90
    assert watch.query == {"watch": "true", "allowWatchBookmarks": "true", "resourceVersion": "7"}
    assert (health.is_synced, health.object_count, health.version) == (True, 2, "v1")
    assert (health.last_list_at, health.last_event_at, health.error) == (NOON, NOON, None)


def test_change_names_the_object_and_the_moment(
    server: ScriptedApiServer, kubeconfig: Path
) -> None:
    server.plan("list", THINGS_PATH, listed(thing("a", 1, uid="u1")))
    with running_feed(kubeconfig, THINGS) as run:
        run.wait_for_told("ADDED a/a@1", "SYNCED")
    added, synced = run.changes
    assert (added.resource, added.observed_at) == (THINGS, NOON)
    assert added.key == ObjectKey(namespace="a", name="a", uid="u1")
    assert (synced.type, synced.object) == (ChangeType.SYNCED, None)
    assert synced.key == ObjectKey(namespace=None, name="", uid="")


def test_selectors_narrow_both_list_and_watch(server: ScriptedApiServer, kubeconfig: Path) -> None:
    narrowed = replace(THINGS, label_selector="app=x", field_selector="spec.size=3")
    server.plan("list", THINGS_PATH, listed())
    with running_feed(kubeconfig, narrowed) as run:
        run.wait_for(lambda: bool(server.asked("watch", THINGS_PATH)))
    for verb in ("list", "watch"):
        query = server.asked(verb, THINGS_PATH)[0].query
        assert (query["labelSelector"], query["fieldSelector"]) == ("app=x", "spec.size=3")


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param(watched(bookmark(20), ending=Ending.CUT), id="cut between events"),
        pytest.param(
            watched(bookmark(20), event("ADDED", thing("b", 21))[:30], ending=Ending.CUT),
            id="cut within a line",
        ),
        pytest.param(
            watched(bookmark(20), event("ADDED", thing("b", 21))[:30], ending=Ending.CLEAN),
            id="ended within a line",
        ),
        pytest.param(watched(bookmark(20), b"<html>oops\n"), id="a line that is no JSON"),
        pytest.param(watched(bookmark(20), ending=Ending.CLEAN), id="ended early"),
        pytest.param(
            watched(bookmark(20), event("ERROR", failure(500, "InternalError", "etcd"))),
            id="an error event",
        ),
    ],
)
def test_broken_watch_goes_on_from_the_last_bookmark(
    server: ScriptedApiServer, kubeconfig: Path, broken: Reply
) -> None:
    server.plan("list", THINGS_PATH, listed(thing("a", 1)))
    server.plan("watch", THINGS_PATH, broken, watched(event("ADDED", thing("b", 21))))
    with running_feed(kubeconfig, THINGS) as run:
        run.wait_for_told("ADDED a/a@1", "SYNCED", "ADDED a/b@21")
        run.wait_for(lambda: run.health(THINGS).error is None)
        assert run.health(THINGS).error_count == 1
    assert resumed_from(server) == ["10", "20"]
    assert len(server.asked("list", THINGS_PATH)) == 1


def test_event_split_over_pieces_is_one_event(server: ScriptedApiServer, kubeconfig: Path) -> None:
    line = event("ADDED", thing("a", 11)) + event("ADDED", thing("b", 12))
    server.plan("list", THINGS_PATH, listed())
    server.plan("watch", THINGS_PATH, watched(line[:5], line[5:40], line[40:-1], line[-1:]))
    with running_feed(kubeconfig, THINGS) as run:
        run.wait_for_told("SYNCED", "ADDED a/a@11", "ADDED a/b@12")


@pytest.mark.parametrize(
    "gone",
    [
        pytest.param(refused(410, "Expired", "too old"), id="status 410"),
        pytest.param(watched(event("ERROR", failure(410, "Expired", "too old"))), id="error event"),
    ],
)
def test_too_old_version_lists_anew_and_tells_only_differences(
    server: ScriptedApiServer, kubeconfig: Path, gone: Reply
) -> None:
    server.plan(
        "list",
        THINGS_PATH,
        listed(
            thing("same", 1), thing("changed", 2), thing("ended", 3), thing("again", 4, uid="old")
        ),
        listed(
            thing("again", 31, uid="new"),
            thing("changed", 32),
            thing("same", 1),
            thing("later", 33),
            version=40,
        ),
    )
    server.plan("watch", THINGS_PATH, gone)
    with running_feed(kubeconfig, THINGS) as run:
        run.wait_for(lambda: run.told().count("SYNCED") == 2)
        wait_for_watches(run, server, "10", "40")
        assert run.health(THINGS).list_count == 2
    assert run.told()[5:] == [
        "DELETED a/again@4",
        "ADDED a/again@31",
        "MODIFIED a/changed@32",
        "ADDED a/later@33",
        "DELETED a/ended@3",
        "SYNCED",
    ]


def test_list_that_expires_between_pages_begins_anew(
    server: ScriptedApiServer, kubeconfig: Path
) -> None:
    server.plan(
        "list",
        THINGS_PATH,
        listed(thing("a", 1), more="t1"),
        refused(410, "Expired", "the continue token is too old"),
        listed(thing("a", 1), more="t2"),
        listed(thing("b", 2)),
    )
    with running_feed(kubeconfig, THINGS) as run:
        run.wait_for_told("ADDED a/a@1", "ADDED a/b@2", "SYNCED")
    assert run.health(THINGS).list_count == 1


def test_list_cut_off_is_read_again(server: ScriptedApiServer, kubeconfig: Path) -> None:
    server.plan(
        "list", THINGS_PATH, listed(thing("a", 1), ending=Ending.CUT), listed(thing("a", 1))
    )
    with running_feed(kubeconfig, THINGS) as run:
        run.wait_for_told("ADDED a/a@1", "SYNCED")


def test_what_a_server_tells_twice_is_told_once(
    server: ScriptedApiServer, kubeconfig: Path
) -> None:
    server.plan("list", THINGS_PATH, listed(thing("a", 1)))
    server.plan(
        "watch",
        THINGS_PATH,
        watched(
            event("ADDED", thing("a", 1)),
            event("MODIFIED", thing("a", 11)),
            event("MODIFIED", thing("a", 11)),
            event("DELETED", thing("a", 12)),
            event("DELETED", thing("a", 12)),
            event("DELETED", thing("never seen", 13)),
            event("ADDED", thing("a", 14, uid="another")),
        ),
    )
    with running_feed(kubeconfig, THINGS) as run:
        run.wait_for_told(
            "ADDED a/a@1", "SYNCED", "MODIFIED a/a@11", "DELETED a/a@12", "ADDED a/a@14"
        )


def test_silent_connection_is_given_up_and_resumed(
    server: ScriptedApiServer, kubeconfig: Path
) -> None:
    server.plan("list", THINGS_PATH, listed())
    server.plan(
        "watch", THINGS_PATH, watched(bookmark(20)), watched(event("ADDED", thing("a", 21)))
    )
    impatient = replace(QUICK, silence_s=0.2)
    with running_feed(kubeconfig, THINGS, pace=impatient) as run:
        run.wait_for_told("SYNCED", "ADDED a/a@21")
        health = run.health(THINGS)
    assert health.silent_count >= 1
    assert health.error_count == 0
    assert resumed_from(server)[:2] == ["10", "20"]


def test_watch_that_does_not_even_begin_is_trouble(
    server: ScriptedApiServer, kubeconfig: Path
) -> None:
    server.plan("list", THINGS_PATH, listed())
    server.plan(
        "watch", THINGS_PATH, Reply(is_headless=True), watched(event("ADDED", thing("a", 21)))
    )
    with running_feed(kubeconfig, THINGS, pace=replace(QUICK, silence_s=0.2)) as run:
        run.wait_for_told("SYNCED", "ADDED a/a@21")
        assert run.health(THINGS).error_count >= 1


def test_repeated_trouble_lists_anew(server: ScriptedApiServer, kubeconfig: Path) -> None:
    server.plan("list", THINGS_PATH, listed(thing("a", 1)), listed(thing("a", 1), version=30))
    too_new = refused(504, "Timeout", "Too large resource version: 10, current: 3")
    server.plan("watch", THINGS_PATH, too_new, too_new, too_new)
    with running_feed(kubeconfig, THINGS) as run:
        run.wait_for_told("ADDED a/a@1", "SYNCED", "SYNCED")
        wait_for_watches(run, server, "10", "10", "10", "30")


def test_object_of_another_shape_costs_only_itself(
    server: ScriptedApiServer, kubeconfig: Path
) -> None:
    strange = {**thing("strange", 2), "spec": {"size": "large"}}
    server.plan("list", THINGS_PATH, listed(thing("a", 1), strange, thing("b", 3)))
    server.plan(
        "watch",
        THINGS_PATH,
        watched(
            event(
                "MODIFIED",
                {**strange, "metadata": {**strange["metadata"], "resourceVersion": "11"}},
            ),
            event("DELETED", strange),
            event("MODIFIED", thing("a", 12)),
        ),
    )
    with running_feed(kubeconfig, THINGS) as run:
        run.wait_for_told("ADDED a/a@1", "ADDED a/b@3", "SYNCED", "MODIFIED a/a@12")
        assert run.health(THINGS).undecodable_count == 2


def test_object_that_turns_strange_is_not_told_to_be_gone(
    server: ScriptedApiServer, kubeconfig: Path
) -> None:
    strange = {**thing("a", 31), "spec": None}
    server.plan("list", THINGS_PATH, listed(thing("a", 1)), listed(strange, version=40))
    server.plan(
        "watch", THINGS_PATH, refused(410), watched(event("DELETED", {**strange, "spec": None}))
    )
    with running_feed(kubeconfig, THINGS) as run:
        run.wait_for_told("ADDED a/a@1", "SYNCED", "SYNCED", "DELETED a/a@1")


def test_forbidden_names_the_rule_and_goes_on_once_it_is_granted(
    server: ScriptedApiServer, kubeconfig: Path
) -> None:
    said = 'things is forbidden: User "x" cannot list resource "things" at the cluster scope'
    server.plan("list", THINGS_PATH, refused(403, "Forbidden", said))
    with running_feed(kubeconfig, THINGS) as run:
        run.wait_for(lambda: run.health(THINGS).fault is ApiFault.FORBIDDEN)
        health = run.health(THINGS)
        assert health.is_permitted is False
        assert health.error is not None
        assert said in health.error
        assert health.hint is not None
        assert 'apiGroups: [""], resources: ["things"], verbs: ["list", "watch"]' in health.hint
        server.plan("list", THINGS_PATH, listed(thing("a", 1)))
        run.wait_for_told("ADDED a/a@1", "SYNCED")
        assert run.health(THINGS).is_permitted is True


def test_throttling_server_is_left_alone_as_long_as_it_asks(
    server: ScriptedApiServer, kubeconfig: Path
) -> None:
    wait = refused(429, "TooManyRequests", "slow down", retryAfterSeconds=0.3)
    server.plan("list", THINGS_PATH, wait, listed(thing("a", 1)))
    with running_feed(kubeconfig, THINGS) as run:
        run.wait_for(lambda: run.health(THINGS).fault is ApiFault.THROTTLED)
        run.wait_for_told("ADDED a/a@1", "SYNCED")
    assert len(server.asked("list", THINGS_PATH)) == 2


def starting(words: str = "storage is (re)initializing") -> Reply:
    return refused(429, "TooManyRequests", words, retryAfterSeconds=0.05)


def test_kind_whose_storage_only_starts_is_not_in_trouble(
    server: ScriptedApiServer, kubeconfig: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As for a CRD of which the API server was never asked before; see KEP 4568."""
    server.plan("list", THINGS_PATH, listed(thing("a", 1)))
    server.plan(
        "watch", THINGS_PATH, starting(), starting(), watched(event("ADDED", thing("b", 21)))
    )
    with running_feed(kubeconfig, THINGS) as run:
        seen = set()
        run.wait_for(
            lambda: seen.add(run.health(THINGS).error) or "ADDED a/b@21" in run.told()  # type: ignore[func-returns-value]  # collects on the way
        )
        health = run.health(THINGS)
    assert (seen, health.error_count, health.fault) == ({None}, 0, None)
    assert (health.list_count, resumed_from(server)) == (1, ["10", "10", "10"])
    assert not caplog.records


def test_kind_whose_storage_does_not_come_to_its_start_is_in_trouble_until_it_does(
    server: ScriptedApiServer, kubeconfig: Path
) -> None:
    server.plan("list", THINGS_PATH, listed(), starting(), listed())
    server.plan("watch", THINGS_PATH, starting(), starting(), starting())
    with running_feed(kubeconfig, THINGS) as run:
        run.wait_for(lambda: run.health(THINGS).fault is ApiFault.THROTTLED)
        hint = run.health(THINGS).hint
        run.wait_for(lambda: run.health(THINGS).error is None and len(resumed_from(server)) == 4)
        assert run.health(THINGS).error_count >= 1
    assert hint is not None
    assert "etcd" in hint


def test_storage_that_cannot_start_is_trouble_at_once(
    server: ScriptedApiServer, kubeconfig: Path
) -> None:
    server.plan("list", THINGS_PATH, listed())
    server.plan("watch", THINGS_PATH, starting("storage is (re)initializing: etcd is down"))
    with running_feed(kubeconfig, THINGS) as run:
        run.wait_for(lambda: run.health(THINGS).error_count == 1)
        run.wait_for(lambda: len(resumed_from(server)) == 2)
        run.wait_for(lambda: run.health(THINGS).error is None)


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(Reply(pieces=(b"<html>login</html>",)), id="a web page"),
        pytest.param(Reply(pieces=(b'{"items": 3}',)), id="no list"),
        pytest.param(Reply(pieces=(b"",)), id="nothing"),
    ],
)
def test_list_that_is_none_is_unreadable(
    server: ScriptedApiServer, kubeconfig: Path, reply: Reply
) -> None:
    server.plan("list", THINGS_PATH, reply)
    with running_feed(kubeconfig, THINGS) as run:
        run.wait_for(lambda: run.health(THINGS).fault is ApiFault.UNREADABLE)
        server.plan("list", THINGS_PATH, listed())
        run.wait_for_told("SYNCED")
