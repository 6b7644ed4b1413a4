"""What nobody gets at the desk: a second name, a grant nobody gave, a keep for ever, a crash."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from enforcer.desk.grants import with_grants
from enforcer.desk.model import Answer, RequestKind, State, is_in_force
from enforcer.desk.office import Desk
from enforcer.desk.rules import SHORT_AGAIN
from enforcer.desk.settling import settle_kept
from sql.auditchain import ChainState, verified
from steward.errors import InputError, UsageError
from tests.support.enforced_cluster import Log, Ticking
from tests.support.enforcer_desk import desk, opened, quota_wish, wish
from tests.support.enforcer_plan import NOON
from tests.support.enforcer_quota import quota_file

ODD_NAMES = ("", " ", "bob ", " bob", "bob\n", "bo\u202eb", "\x1b[31mbob", "bo\ud800b", "rule:any")
EVENTS = ("applied", "failed", "expired", "taken_back", "take_back_failed")
LAST = datetime(9999, 12, 31, 23, tzinfo=UTC)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    with opened(tmp_path) as found:
        yield found


@pytest.fixture
def clock() -> Ticking:
    return Ticking()


@pytest.mark.parametrize("name", ODD_NAMES)
def test_no_name_looks_like_another_persons(log: Log, clock: Ticking, name: str) -> None:
    case = desk(log, clock, "ada").submit(quota_wish(16))
    for answer in Answer:
        with pytest.raises(UsageError):
            desk(log, clock, name).answer(case.request.request_id, answer, reason="why")
    with pytest.raises(UsageError):
        desk(log, clock, "ada").submit(quota_wish(4, requester=name))
    assert [one.state for one in desk(log, clock).cases()] == [State.PENDING]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_no_odd_word_is_asked_for(log: Log, clock: Ticking, name: str) -> None:
    ada = desk(log, clock, "ada")
    odd = (
        wish(scope=("workload", name)),
        wish(RequestKind.EXEMPTION, scope=("namespace", name)),
        wish(RequestKind.PRIORITY, priority_class=name),
        replace(quota_wish(4), gpu_model=name),
        replace(quota_wish(4), cluster=name),
    )
    for one in odd:
        with pytest.raises(UsageError):
            ada.submit(one)
    assert ada.cases() == ()


def test_a_reason_that_is_no_text_is_refused_as_such(log: Log, clock: Ticking) -> None:
    with pytest.raises(UsageError, match="--reason"):
        desk(log, clock, "ada").submit(wish(reason="half a \udcff"))


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("answers", [(), (("bob", Answer.GRANTED),), (("bob", Answer.REFUSED),)])
def test_a_forged_event_grants_nothing(
    log: Log, clock: Ticking, event: str, answers: tuple[tuple[str, Answer], ...]
) -> None:
    """Who may record what was done may not thereby decide it: two people must have agreed."""
    case = desk(log, clock, "ada").submit(quota_wish(16))
    number = case.request.request_id
    for name, answer in answers:
        desk(log, clock, name).answer(number, answer, reason="so")
    before = desk(log, clock).case(number).state
    row = {"request_id": number, "event": event, "actor": "eve"}
    log.state_append([("request_event", row)], seen={})
    found = desk(log, clock).case(number)
    assert found.state is before
    assert not is_in_force(found, clock.now())
    file = quota_file()
    assert with_grants(file, desk(log, clock).cases(), now=clock.now()) == file


def test_what_is_granted_may_be_withdrawn_until_it_is_carried_out(log: Log, clock: Ticking) -> None:
    number = desk(log, clock, "ada").submit(quota_wish(4)).request.request_id
    desk(log, clock, "bob").answer(number, Answer.GRANTED, reason=None)
    found = desk(log, clock, "ada").answer(number, Answer.WITHDRAWN, reason=None)
    assert found.state is State.WITHDRAWN
    assert not is_in_force(found, clock.now())


def test_a_short_keep_is_the_first_one_in_no_other_cluster(log: Log, clock: Ticking) -> None:
    """An exemption names no cluster: another cluster's name would renew it for ever."""
    ada = desk(log, clock, "ada")
    ada.submit(wish())
    again = ada.submit(replace(wish(), cluster="elsewhere"))
    assert (again.state, again.needed_reasons) == (State.PENDING, (SHORT_AGAIN,))


def test_two_that_settle_at_once_record_it_once(log: Log, clock: Ticking) -> None:
    ada = desk(log, clock, "ada")
    ada.submit(wish())
    clock.pass_(timedelta(hours=5))
    seen = ada.cases()
    first, second = desk(log, clock, "one"), desk(log, clock, "two")
    settle_kept(first)
    second.record(seen[0], "expired", before=None, detail=None)
    assert [one.event for one in ada.cases()[0].events] == ["applied", "expired"]
    assert verified(ChainState(), log.state_after("audit", 0)).fault is None


@pytest.mark.parametrize(
    ("from_at", "hours"),
    [
        (LAST, 2),
        (LAST.replace(tzinfo=NOON.tzinfo), 24 * 366),
        (datetime.fromisoformat("9999-12-31T20:00:00-12:00"), 1),
    ],
)
def test_a_time_beyond_the_calendar_is_refused(
    log: Log, clock: Ticking, from_at: datetime, hours: float
) -> None:
    with pytest.raises(UsageError, match="calendar"):
        desk(log, clock, "ada").submit(replace(quota_wish(4, hours=hours), from_at=from_at))


def test_the_same_wish_is_told_from_a_faulty_one(log: Log, clock: Ticking) -> None:
    ada: Desk = desk(log, clock, "ada")
    ada.submit(quota_wish(4))
    with pytest.raises(InputError, match="is there already"):
        ada.submit(quota_wish(4))
