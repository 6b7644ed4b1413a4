"""The quota desk: who must agree, who may answer, when it ends, and what it adds meanwhile."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from enforcer.desk.grants import with_grants
from enforcer.desk.model import Answer, RequestKind, State, is_in_force
from enforcer.desk.office import Desk
from enforcer.desk.rules import BY_RULE, MANY_GPUS, SHORT_AGAIN, SHORT_AND_FIRST
from steward.errors import InputError, UsageError
from tests.support.enforced_cluster import Log, Ticking
from tests.support.enforcer_desk import desk, opened, quota_wish, wish
from tests.support.enforcer_plan import NOON
from tests.support.enforcer_quota import H100, quota_file

HOUR = timedelta(hours=1)
TICK_HOURS = 1 / 3_600


@pytest.fixture
def state_log(tmp_path: Path) -> Iterator[Log]:
    with opened(tmp_path) as found:
        yield found


@pytest.fixture
def clock() -> Ticking:
    return Ticking()


@pytest.fixture
def ada(state_log: Log, clock: Ticking) -> Desk:
    return desk(state_log, clock, "ada")


@pytest.fixture
def bob(state_log: Log, clock: Ticking) -> Desk:
    return desk(state_log, clock, "bob")


def test_scenario_22_the_first_short_keep_is_granted_and_the_second_waits(
    ada: Desk, clock: Ticking
) -> None:
    first = ada.submit(wish())
    assert (first.state, first.needed_reasons) == (State.APPLIED, (SHORT_AND_FIRST,))
    assert [one.approver for one in first.rulings] == [BY_RULE]
    clock.pass_(HOUR)
    second = ada.submit(wish(from_at=clock.now()))
    assert (second.state, second.needed_reasons) == (State.PENDING, (SHORT_AGAIN,))


@pytest.mark.parametrize(
    ("hours", "state"),
    [
        pytest.param(12 - TICK_HOURS, State.APPLIED, id="just under twelve hours"),
        pytest.param(12, State.PENDING, id="twelve hours"),
        pytest.param(12 + TICK_HOURS, State.PENDING, id="just over"),
    ],
)
def test_a_keep_of_twelve_hours_asks_a_person(ada: Desk, hours: float, state: State) -> None:
    assert ada.submit(wish(hours=hours)).state is state


@pytest.mark.parametrize(
    ("pause", "state"),
    [
        pytest.param(48 * HOUR - timedelta(seconds=1), State.PENDING, id="just within"),
        pytest.param(48 * HOUR, State.APPLIED, id="48 hours later"),
        pytest.param(49 * HOUR, State.APPLIED, id="later still"),
    ],
)
def test_after_two_days_a_short_keep_is_a_first_one_again(
    ada: Desk, clock: Ticking, pause: timedelta, state: State
) -> None:
    ada.submit(wish())
    clock.pass_(pause)
    assert ada.submit(wish(from_at=clock.now())).state is state


def test_a_refused_keep_does_not_count_against_the_next(
    ada: Desk, bob: Desk, clock: Ticking
) -> None:
    refused = ada.submit(wish(hours=24))
    assert bob.answer(refused.request.request_id, Answer.REFUSED, reason="no").state is (
        State.REFUSED
    )
    clock.pass_(HOUR)
    assert ada.submit(wish(from_at=clock.now())).state is State.APPLIED


def test_a_whole_team_is_never_spared_without_a_person(ada: Desk) -> None:
    found = ada.submit(wish(RequestKind.EXEMPTION, scope=("tenant", "vision"), hours=1))
    assert (found.state, found.needed_count) == (State.PENDING, 1)


@pytest.mark.parametrize(
    ("gpu_count", "needed"),
    [
        pytest.param(15, 1, id="fifteen"),
        pytest.param(16, 2, id="sixteen"),
        pytest.param(17, 2, id="seventeen"),
    ],
)
def test_a_large_quota_needs_two_people(ada: Desk, gpu_count: int, needed: int) -> None:
    found = ada.submit(quota_wish(gpu_count))
    assert found.needed_count == needed
    assert (MANY_GPUS in found.needed_reasons) == (needed == 2)


def test_two_people_are_two_and_neither_is_the_requester(
    ada: Desk, bob: Desk, state_log: Log, clock: Ticking
) -> None:
    number = ada.submit(quota_wish(16)).request.request_id
    with pytest.raises(UsageError, match="is your own"):
        ada.answer(number, Answer.GRANTED, reason=None)
    assert bob.answer(number, Answer.GRANTED, reason="ok").state is State.PENDING
    with pytest.raises(UsageError, match="agreed to request 1 already"):
        bob.answer(number, Answer.GRANTED, reason="ok")
    eve = desk(state_log, clock, "eve")
    granted = eve.answer(number, Answer.GRANTED, reason=None)
    assert (granted.state, granted.approvers) == (State.GRANTED, ("bob", "eve"))
    with pytest.raises(UsageError, match="request 1 is granted"):
        eve.answer(number, Answer.REFUSED, reason="too late")


def test_only_the_requester_withdraws(ada: Desk, bob: Desk) -> None:
    number = ada.submit(quota_wish()).request.request_id
    with pytest.raises(UsageError, match="ada's to withdraw"):
        bob.answer(number, Answer.WITHDRAWN, reason=None)
    assert ada.answer(number, Answer.WITHDRAWN, reason=None).state is State.WITHDRAWN


@pytest.mark.parametrize(
    ("later", "state"),
    [
        pytest.param(24 * HOUR - timedelta(seconds=1), State.PENDING, id="just before its end"),
        pytest.param(24 * HOUR, State.LAPSED, id="at its end"),
        pytest.param(25 * HOUR, State.LAPSED, id="after it"),
    ],
)
def test_what_nobody_answers_lapses(
    ada: Desk, clock: Ticking, later: timedelta, state: State
) -> None:
    number = ada.submit(quota_wish()).request.request_id
    clock.pass_(later)
    assert ada.case(number).state is state


def test_the_same_wish_is_recorded_once(ada: Desk) -> None:
    ada.submit(quota_wish())
    with pytest.raises(InputError, match="the same request of ada is there already"):
        ada.submit(quota_wish())
    assert len(ada.cases()) == 1


def test_scenario_19_a_granted_wish_holds_until_it_ends_and_then_no_more(
    ada: Desk, bob: Desk, clock: Ticking
) -> None:
    number = ada.submit(quota_wish(4)).request.request_id
    assert guaranteed(ada, clock) == 8
    bob.answer(number, Answer.GRANTED, reason=None)
    assert guaranteed(ada, clock) == 12
    bob.record(ada.case(number), "applied", before=None, detail=None)
    clock.pass_(24 * HOUR - timedelta(seconds=1))
    assert guaranteed(ada, clock) == 12
    clock.pass_(timedelta(seconds=1))
    assert guaranteed(ada, clock) == 8
    assert not is_in_force(ada.case(number), clock.now())


def guaranteed(found: Desk, clock: Ticking) -> int:
    (team,) = with_grants(quota_file(), found.cases(), now=clock.now()).teams
    (share,) = team.shares
    assert share.gpu_model == H100
    return share.guaranteed_gpu_count


def test_every_step_is_in_the_audit(ada: Desk, bob: Desk, state_log: Log) -> None:
    number = ada.submit(quota_wish()).request.request_id
    bob.answer(number, Answer.GRANTED, reason="fine")
    bob.record(ada.case(number), "applied", before="{}", detail=None)
    words = [(row["actor"], row["action"]) for row in reversed(state_log.state_rows("audit"))]
    assert words == [
        ("ada", "request.submitted"),
        ("bob", "request.granted"),
        ("bob", "request.applied"),
    ]
    assert json.loads(str(state_log.state_rows("audit")[1]["body_json"]))["reason"] == "fine"


@pytest.mark.parametrize(
    ("faulty", "words"),
    [
        pytest.param(wish(reason=" "), "--reason is empty", id="no reason"),
        pytest.param(wish(hours=0), "no time at all", id="no time"),
        pytest.param(wish(hours=24 * 8), "longer than a request may be", id="too long"),
        pytest.param(wish(from_at=NOON - 5 * HOUR), "is over", id="over already"),
        pytest.param(wish(scope=("tenant", "x")), "not about a tenant", id="wrong scope"),
        pytest.param(
            wish(RequestKind.QUOTA, scope=("tenant", "x")), "a model and a number", id="no number"
        ),
        pytest.param(quota_wish(0), "--gpus 0 is out of range", id="zero"),
        pytest.param(quota_wish(-1), "--gpus -1 is out of range", id="less than nothing"),
        pytest.param(wish(RequestKind.PRIORITY), "needs its class", id="no class"),
    ],
)
def test_a_wish_that_is_none_is_refused_and_not_recorded(
    ada: Desk, faulty: object, words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        ada.submit(faulty)  # type: ignore[arg-type]  # parametrised
    assert ada.cases() == ()
