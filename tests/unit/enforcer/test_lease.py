"""One leader at a time, told by one's own steady clock, numbered without end."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

import pytest

from enforcer.calls import CountedGateway
from enforcer.gateway.memory import Call, MemoryGateway
from enforcer.gateway.port import Target
from enforcer.lease import Elector, LeaseTerms
from steward.errors import ClusterError, ConflictError
from tests.support.enforcer_plan import NOON

LENGTH_S = 15.0
TRUST_S = 10.0
TICK_S = 0.001


@dataclass(slots=True)
class Steady:
    """Seconds that a test moves."""

    s: float = 100.0

    def __call__(self) -> float:
        """Return them."""
        return self.s


@dataclass(slots=True)
class Shown:
    """A clock that goes with the seconds, from a time of its own."""

    steady: Steady
    start: datetime = NOON

    def now(self) -> datetime:
        """Return its time."""
        return self.start + timedelta(seconds=self.steady.s)


def elector(gateway: MemoryGateway, identity: str, steady: Steady, *, above: int = 0) -> Elector:
    terms = LeaseTerms(
        namespace="steward", name="lease", identity=identity, length=timedelta(seconds=LENGTH_S)
    )
    return Elector(gateway, terms, clock=Shown(steady), monotonic=steady, above=lambda: above)


def lease(gateway: MemoryGateway) -> Target:
    del gateway
    return Target(
        api_version="coordination.k8s.io/v1",
        kind="Lease",
        namespace="steward",
        name="lease",
        uid=None,
    )


def test_the_first_to_ask_leads_and_the_second_waits() -> None:
    gateway, steady = MemoryGateway(), Steady()
    first, second = elector(gateway, "a", steady), elector(gateway, "b", steady)
    assert first.step()
    assert not second.step()
    assert (first.fence(), second.fence()) == ("1:a", None)


@pytest.mark.parametrize(
    ("after_s", "leads"),
    [
        pytest.param(TRUST_S - TICK_S, True, id="just within its trust"),
        pytest.param(TRUST_S, False, id="exactly at its end"),
        pytest.param(TRUST_S + TICK_S, False, id="just past it"),
    ],
)
def test_a_leader_that_cannot_renew_stops_believing_in_itself(after_s: float, leads: bool) -> None:
    gateway, steady = MemoryGateway(), Steady()
    first = elector(gateway, "a", steady)
    first.step()

    def fail(_call: Call) -> None:
        raise ClusterError("away", hint="")

    gateway.on_call = fail
    steady.s += after_s
    assert first.step() is leads


@pytest.mark.parametrize(
    ("after_s", "takes"),
    [
        pytest.param(LENGTH_S - TICK_S, False, id="just within the lease"),
        pytest.param(LENGTH_S, False, id="exactly at its end"),
        pytest.param(LENGTH_S + TICK_S, True, id="just past it"),
    ],
)
def test_a_lease_that_is_not_moved_for_its_length_is_taken_over(
    after_s: float, takes: bool
) -> None:
    gateway, steady = MemoryGateway(), Steady()
    first, second = elector(gateway, "a", steady), elector(gateway, "b", steady)
    first.step()
    second.step()
    steady.s += after_s
    assert second.step() is takes
    assert not first.is_leading()


def test_two_never_lead_at_once_however_late_each_looks() -> None:
    gateway, steady = MemoryGateway(), Steady()
    three = [elector(gateway, name, steady) for name in "abc"]
    for number in range(400):
        steady.s += (number * 7919 % 97) / 7
        three[number * 31 % 3].step()
        assert sum(one.is_leading() for one in three) <= 1


def test_a_clock_that_is_wrong_elsewhere_does_not_matter() -> None:
    gateway, steady = MemoryGateway(), Steady()
    first, second = elector(gateway, "a", steady), elector(gateway, "b", steady)
    first._clock = Shown(steady, start=NOON - timedelta(days=400))
    first.step()
    assert not second.step()


def test_numbers_grow_with_every_leader_also_when_the_lease_was_deleted() -> None:
    gateway, steady = MemoryGateway(), Steady()
    first = elector(gateway, "a", steady)
    first.step()
    gateway.remove(lease(gateway))
    second = elector(gateway, "b", steady, above=7)
    assert second.step()
    assert second.fence() == "8:b"


def test_a_lease_that_was_let_go_is_free_at_once() -> None:
    gateway, steady = MemoryGateway(), Steady()
    first, second = elector(gateway, "a", steady), elector(gateway, "b", steady)
    first.step()
    first.release()
    assert (first.is_leading(), second.step(), second.fence()) == (False, True, "2:b")


def test_one_that_is_overtaken_between_reading_and_writing_does_not_lead() -> None:
    gateway, steady = MemoryGateway(), Steady()
    first, second = elector(gateway, "a", steady), elector(gateway, "b", steady)

    def be_quicker(call: Call) -> None:
        if call.name == "write" and not call.is_done:
            gateway.on_call = lambda _call: None
            second.step()

    gateway.on_call = be_quicker
    assert not first.step()
    assert second.is_leading()


def test_the_share_of_failed_calls_is_of_the_last_ten_minutes_and_a_no_is_an_answer() -> None:
    gateway, steady = MemoryGateway(), Steady()
    counted = CountedGateway(gateway, monotonic=steady)
    assert counted.error_ratio() == 0.0
    counted.read(lease(gateway))

    def fail(_call: Call) -> None:
        raise ClusterError("away", hint="")

    gateway.on_call = fail
    with pytest.raises(ClusterError):
        counted.read(lease(gateway))
    assert counted.error_ratio() == 0.5

    def refuse(_call: Call) -> None:
        raise ConflictError("changed", hint="")

    gateway.on_call = refuse
    with pytest.raises(ConflictError):
        counted.read(lease(gateway))
    assert counted.error_ratio() == pytest.approx(1 / 3)
    steady.s += 600
    assert counted.error_ratio() == pytest.approx(1 / 3)
    steady.s += TICK_S
    assert counted.error_ratio() == 0.0
