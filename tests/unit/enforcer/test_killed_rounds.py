"""A round that ends anywhere is brought to its end by the next one: never twice, never unseen.

Each case ends the process at one point where it reaches outside: before or after a call of the
cluster, before or after a write of the ledger.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from enforcer.apply import apply
from enforcer.decisions import Step
from enforcer.entries import Entry, Outcome
from enforcer.gateway.port import Verb
from enforcer.settling import settle
from enforcer.undo import undo, undoable
from sql.auditchain import ChainState, verified
from tests.support.enforced_cluster import TEAM, Enforced, Killed, enforced
from tests.support.enforcer_plan import HOUR

POINTS = 52
"""More than a round of two acts, or of an act and its undoing, has."""


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Enforced]:
    with enforced(tmp_path) as opened:
        yield opened


def killed_at(world: Enforced, point: int, work: Callable[[], object]) -> bool:
    """Do the work in a process that ends at one point; return whether it came so far."""
    world.killer.count, world.killer.at = 0, point
    try:
        work()
    except Killed:
        return True
    finally:
        world.killer.at = None
    return False


def suspensions(world: Enforced, name: str) -> int:
    found = [write for write in world.gateway.writes if write.verb is Verb.PATCH]
    return sum(
        write.target.name == name and write.body == {"spec": {"suspend": True}} for write in found
    )


def act_on(world: Enforced, name: str) -> Entry | None:
    acts = world.hands().ledger.entries().of_workload(name)
    return next((one for one in acts if not one.is_undo), None)


@pytest.mark.parametrize("point", range(1, POINTS))
def test_a_killed_round_is_ended_by_the_next_leader(world: Enforced, point: int) -> None:
    workloads = [world.add_job("v"), world.add_job("w")]
    specs = {name: world.spec(name) for name in ("v", "w")}
    round_ = world.round(*workloads)
    hands = world.hands()
    killed_at(world, point, lambda: (apply(round_, hands), settle(hands)))

    successor = world.hands("replica-2", fence=lambda: "2:replica-2")
    world.clock.pass_(world.reach.interrupted_after)
    settle(successor)
    apply(round_, successor)
    settle(successor)

    assert successor.ledger.entries().open() == ()
    for name in ("v", "w"):
        entry = act_on(world, name)
        assert entry is not None
        is_taken = world.spec(name) != specs[name]
        assert (entry.outcome is Outcome.DONE) is is_taken
        assert suspensions(world, name) == int(is_taken)
    for entry in undoable(successor.ledger.entries().all()):
        undo(entry, successor)
    settle(successor)
    assert {name: world.spec(name) for name in specs} == specs
    assert verified(ChainState(), world.rows("audit")).fault is None


@pytest.mark.parametrize("point", range(1, POINTS, 2))
def test_a_killed_undoing_is_ended_by_the_next_leader(world: Enforced, point: int) -> None:
    workload = world.add_job("w")
    before = world.spec("w")
    hands = world.hands()
    apply(world.round(workload), hands)
    settle(hands)
    (entry,) = undoable(hands.ledger.entries().all())
    killed_at(world, point, lambda: (undo(entry, hands), settle(hands)))

    successor = world.hands("replica-2", fence=lambda: "2:replica-2")
    world.clock.pass_(world.reach.interrupted_after)
    settle(successor)
    for again in undoable(successor.ledger.entries().all()):
        undo(again, successor)
    settle(successor)
    assert successor.ledger.entries().open() == ()
    assert world.spec("w") == before
    restores = [
        write for write in world.gateway.writes if write.body == {"spec": {"suspend": False}}
    ]
    assert len(restores) == 1


@pytest.mark.parametrize("point", range(1, 14))
def test_a_killed_notice_counts_only_where_it_is_known_to_have_arrived(
    world: Enforced, point: int
) -> None:
    round_ = world.round(world.add_job("w"), step=Step.NOTIFY)
    hands = world.hands()
    killed_at(world, point, lambda: apply(round_, hands))
    world.clock.pass_(HOUR)
    settle(world.hands("replica-2"))
    events = world.gateway.list(api_version="v1", kind="Event", namespace=TEAM)
    delivered = [row for row in world.rows("notice") if row["is_delivered"] == 1]
    assert len(events) == len(delivered) <= 1
    assert world.hands().ledger.entries().open() == ()


@pytest.mark.parametrize("point", range(1, POINTS, 4))
def test_no_write_to_the_cluster_is_without_a_row_that_came_before_it(
    world: Enforced, point: int
) -> None:
    round_ = world.round(world.add_job("v"), world.add_job("w"))
    hands = world.hands()
    killed_at(world, point, lambda: (apply(round_, hands), settle(hands)))
    written = {write.target.name for write in world.gateway.writes}
    assert written <= {str(row["name"]) for row in world.rows("action")}
