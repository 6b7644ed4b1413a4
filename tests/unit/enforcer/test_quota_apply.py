"""Quota and priority carried out on a cluster in memory: recorded first, seen, undone, in time."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from enforcer.actuators.fields import items_at, texts_at
from enforcer.desk.grants import with_grants
from enforcer.desk.model import Answer, RequestKind, State
from enforcer.desk.office import Desk
from enforcer.desk.rules import BY_RULE
from enforcer.desk.settling import settle_kept, settle_priorities, settle_quotas
from enforcer.entries import Outcome
from enforcer.gateway.port import KubernetesObject, Target
from enforcer.quota.applying import BY_FILE, carry_out
from enforcer.quota.comparing import compared
from enforcer.quota.model import Scheduler
from enforcer.quota.quantity import number_text, quantity
from enforcer.settling import settle
from enforcer.undo import Undoing, undo, undo_due, undoable
from tests.support.enforced_cluster import Enforced, Killed, Log, enforced, job_target
from tests.support.enforcer_desk import quota_wish, wish
from tests.support.enforcer_quota import cluster_queue, quota_file

QUEUE = Target(
    api_version="kueue.x-k8s.io/v1beta2",
    kind="ClusterQueue",
    namespace=None,
    name="vision",
    uid=None,
)
PRIORITY = "kueue.x-k8s.io/priority-class"
DAY = timedelta(days=1)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Enforced]:
    with enforced(tmp_path) as found:
        found.gateway.put(cluster_queue(nominalQuota="2", borrowingLimit="4"))
        yield found


def desk(world: Enforced, actor: str = "bob") -> Desk:
    return Desk(state=Log(world.store, world.killer), clock=world.clock, actor=actor)


def queue(world: Enforced) -> KubernetesObject:
    found = world.gateway.read(QUEUE)
    assert found is not None
    return found


def nominal(world: Enforced) -> object:
    (group,) = items_at(queue(world), "spec", "resourceGroups")
    (flavor,) = items_at(group, "flavors")
    return items_at(flavor, "resources")[1]["nominalQuota"]


def apply_file(world: Enforced, found: Desk | None = None) -> list[bool]:
    """Write what differs from the file and the grants in force."""
    now = world.clock.now()
    cases = () if found is None else found.cases()
    comparison = compared(with_grants(quota_file(), cases, now=now), world.gateway)
    hands = world.hands("ada")
    return [
        carry_out(one, hands, reasons=(BY_FILE,), facts_at=now).is_done
        for one in comparison.changes
    ]


def test_a_quota_is_recorded_before_it_is_written_and_done_once_it_is_seen(
    world: Enforced,
) -> None:
    assert apply_file(world) == [True]
    assert nominal(world) == "8"
    assert apply_file(world) == []
    rows = world.rows("action")
    assert [(row["kind"], row["outcome"]) for row in rows] == [
        ("set_quota", "planned"),
        ("set_quota", "done"),
    ]
    assert {row["subject_kind"] for row in rows} == {"queue"}
    assert {row["subject_uid"] for row in rows} == {"ClusterQueue/vision"}


def test_undoing_a_quota_puts_every_number_back(world: Enforced) -> None:
    before = queue(world)["spec"]
    apply_file(world)
    (entry,) = undoable(world.hands().ledger.entries().all())
    assert undo(entry, world.hands()).result is Undoing.OPEN
    settle(world.hands())
    assert queue(world)["spec"] == before
    assert world.hands().ledger.entries().open() == ()


def test_a_quota_changed_by_hand_meanwhile_is_not_overwritten_by_undo(world: Enforced) -> None:
    apply_file(world)
    world.gateway.put({**cluster_queue(nominalQuota="9", borrowingLimit="4")})
    (entry,) = undoable(world.hands().ledger.entries().all())
    assert undo(entry, world.hands()).result is Undoing.DONE
    assert nominal(world) == "9"


def test_a_refused_quota_has_failed_and_nothing_stays_open(world: Enforced) -> None:
    world.gateway.refusals.append(lambda _write: "no such flavor")
    assert apply_file(world) == [False]
    assert nominal(world) == "2"
    assert [row["outcome"] for row in world.rows("action")] == ["planned", "failed"]


def test_the_account_that_may_not_write_quotas_changes_nothing(world: Enforced) -> None:
    world.gateway.denied.add(("patch", "ClusterQueue"))
    assert apply_file(world) == [False]
    assert nominal(world) == "2"


def test_a_queue_changed_between_reading_and_writing_is_left_alone(world: Enforced) -> None:
    (change,) = compared(quota_file(), world.gateway).changes
    world.gateway.put(cluster_queue(nominalQuota="5"))
    done = carry_out(change, world.hands("ada"), reasons=(BY_FILE,), facts_at=world.clock.now())
    assert not done.is_done
    assert nominal(world) == "5"


def test_kueue_of_an_older_version_is_found_too(world: Enforced) -> None:
    older = {**cluster_queue("sound", nominalQuota="1"), "apiVersion": "kueue.x-k8s.io/v1beta1"}
    world.gateway.put(older)
    assert not compared(quota_file(), world.gateway).is_in_order


def test_a_resource_quota_is_made_recorded_and_undone(world: Enforced) -> None:
    file = quota_file(scheduler=Scheduler.RESOURCE_QUOTA)
    (change,) = compared(file, world.gateway).changes
    hands = world.hands("ada")
    assert carry_out(change, hands, reasons=(BY_FILE,), facts_at=world.clock.now()).is_done
    assert compared(file, world.gateway).is_in_order
    (entry,) = undoable(hands.ledger.entries().all())
    undo(entry, hands)
    settle(hands)
    live = world.gateway.read(change.holder)
    assert live is not None
    assert live["spec"] == {"hard": {}}


def test_a_granted_quota_is_applied_and_taken_back_in_time(world: Enforced) -> None:
    ada, bob = desk(world, "ada"), desk(world)
    apply_file(world)
    number = ada.submit(quota_wish(4)).request.request_id
    bob.answer(number, Answer.GRANTED, reason=None)
    assert apply_file(world, bob) == [True]
    assert nominal(world) == "12"
    assert [one.event for one in settle_quotas(bob, ["vision"])] == ["applied"]
    assert settle_quotas(bob, ["vision"]) == ()
    world.clock.pass_(DAY)
    assert apply_file(world, bob) == [True]
    assert nominal(world) == "8"
    assert [one.event for one in settle_quotas(bob, ["vision"])] == ["taken_back"]
    assert bob.case(number).state is State.EXPIRED


def test_a_quota_that_the_cluster_does_not_have_yet_is_not_called_applied(
    world: Enforced,
) -> None:
    ada, bob = desk(world, "ada"), desk(world)
    number = ada.submit(quota_wish(4)).request.request_id
    bob.answer(number, Answer.GRANTED, reason=None)
    assert settle_quotas(bob, ["audio"]) == ()
    assert bob.case(number).state is State.GRANTED


def test_an_exemption_holds_in_its_time_and_is_over_by_itself(world: Enforced) -> None:
    ada = desk(world, "ada")
    assert ada.submit(wish(RequestKind.KEEP_ALIVE, hours=4)).state is State.APPLIED
    assert settle_kept(ada) == ()
    (row,) = world.rows("exemption")
    assert row["approver"] == BY_RULE
    assert (row["scope_kind"], row["scope_key"], row["policy"]) == ("workload", "w-1", "*")
    world.clock.pass_(timedelta(hours=4))
    assert [one.event for one in settle_kept(ada)] == ["expired"]


def queued_job(world: Enforced, name: str = "w-1") -> None:
    """Start a job that Kueue queues, with its entry there."""
    world.add_job(name)
    live = dict(world.live(name))
    metadata = live["metadata"]
    assert isinstance(metadata, dict)
    labels = {"kueue.x-k8s.io/queue-name": "vision", PRIORITY: "low"}
    world.gateway.put({**live, "metadata": {**metadata, "labels": labels}})


def priority(world: Enforced) -> str | None:
    return texts_at(world.live("w-1"), "metadata", "labels").get(PRIORITY)


def test_a_granted_priority_is_set_and_the_timer_takes_it_back(world: Enforced) -> None:
    queued_job(world)
    number = granted_at(world)
    hands = world.hands()
    (done,) = settle_priorities(desk(world), hands, job_target)
    assert (done.event, done.detail, priority(world)) == ("applied", None, "high")
    assert settle_priorities(desk(world), hands, job_target) == ()
    world.clock.pass_(DAY)
    undo_due(hands)
    settle(hands)
    assert priority(world) == "low"
    (over,) = settle_priorities(desk(world), hands, job_target)
    assert over.event == "taken_back"
    assert desk(world).case(number).state is State.EXPIRED


def test_a_priority_of_a_workload_that_is_gone_has_failed_and_is_said_once(
    world: Enforced,
) -> None:
    number = granted_at(world)
    for _ in range(2):
        (done,) = settle_priorities(desk(world), world.hands(), lambda _uid: None)
        assert done.event == "failed"
    assert [row["event"] for row in world.rows("request_event")] == ["failed"]
    assert desk(world).case(number).state is State.FAILED


def test_a_priority_is_set_once_wherever_the_process_is_killed(tmp_path: Path) -> None:
    deaths = 0
    for at in range(1, 40):
        with enforced(tmp_path) as world:
            world.clock.pass_(at * timedelta(days=3))
            queued_job(world)
            number = granted_at(world)
            world.killer.count, world.killer.at = 0, at
            try:
                settle_priorities(desk(world), world.hands(), job_target)
            except Killed:
                deaths += 1
            world.killer.at = None
            world.clock.pass_(timedelta(minutes=2))
            settle(world.hands())
            settle_priorities(desk(world), world.hands(), job_target)
            assert priority(world) == "high"
            assert desk(world).case(number).state is State.APPLIED
            acts = world.hands().ledger.entries().all()
            own = [one for one in acts if one.plan_id.startswith(f"request-{number}-")]
            assert [one.outcome for one in own].count(Outcome.DONE) == 1
    assert 5 <= deaths < 39


def granted_at(world: Enforced) -> int:
    """Grant a priority that is asked for now; each asking is a request of its own."""
    asked = wish(RequestKind.PRIORITY, hours=24, priority_class="high", from_at=world.clock.now())
    number = desk(world, "ada").submit(asked).request.request_id
    desk(world).answer(number, Answer.GRANTED, reason=None)
    return number


@pytest.mark.parametrize(
    ("count", "text"),
    [
        pytest.param(0, "0", id="none"),
        pytest.param(999, "999", id="just below a thousand"),
        pytest.param(1000, "1k", id="a thousand"),
        pytest.param(1001, "1001", id="just above"),
        pytest.param(1500, "1500", id="no whole thousands"),
        pytest.param(2_000_000, "2M", id="two million"),
    ],
)
def test_numbers_are_written_as_the_server_keeps_them(count: int, text: str) -> None:
    assert quantity(count) == text
    assert number_text(text) == str(count)


@pytest.mark.parametrize(
    ("written", "number"),
    [
        pytest.param("8", "8", id="a number"),
        pytest.param(8, "8", id="an integer"),
        pytest.param(8.0, "8", id="a float"),
        pytest.param("1k", "1000", id="thousands"),
        pytest.param("1Ki", "1024", id="binary thousands"),
        pytest.param("500m", "0.5", id="thousandths"),
        pytest.param("1e3", "1000", id="an exponent"),
        pytest.param("-1", "-1", id="no limit"),
        pytest.param("many", "many", id="no quantity"),
        pytest.param(None, None, id="nothing"),
        pytest.param(True, None, id="a truth"),
    ],
)
def test_quantities_are_compared_as_numbers(written: str | float | None, number: str) -> None:
    assert number_text(written) == number
