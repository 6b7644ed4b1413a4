"""Every kind of the catalogue through apply, ledger and undo: the spec is what it was."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from enforcer.actuators.fields import target_of
from enforcer.actuators.kinds import CATALOGUE, Actuator, Means
from enforcer.apply import Result, apply
from enforcer.entries import Outcome
from enforcer.facts import Workload
from enforcer.gateway.memory import MemoryGateway
from enforcer.gateway.port import KubernetesObject, Verb
from enforcer.hands import Reach
from enforcer.settling import settle
from enforcer.undo import Undoing, undo, undoable
from tests.support.enforced_cluster import TEAM, Enforced, enforced
from tests.support.enforcer_objects import VERSIONS, Json
from tests.support.enforcer_plan import HOUR, holder

NAME = "one"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Enforced]:
    with enforced(tmp_path) as opened:
        opened.gateway.controllers.clear()
        opened.reach = Reach(kinds=frozenset(each.kind for each in CATALOGUE))
        yield opened


def started(actuator: Actuator) -> Json:
    """Return an object of the kind that runs, with the field where people leave it."""
    spec: Json = {"selector": {"matchLabels": {"app": NAME}}, "template": {"kept": ["as", "is"]}}
    if actuator.means is Means.SCALE:
        spec["replicas"] = 3
    if actuator.kind == "RayJob":
        spec["shutdownAfterJobFinishes"] = True
    return {
        "apiVersion": VERSIONS[actuator.group],
        "kind": actuator.kind,
        "metadata": {"name": NAME, "namespace": TEAM, "uid": "uid-one", "annotations": {"a": "b"}},
        "spec": spec,
        "status": {"rayClusterName": NAME, "activeServiceStatus": {"rayClusterName": NAME}},
    }


def workload_of(thing: KubernetesObject) -> Workload:
    target = target_of(thing)
    return replace(
        holder("w"),
        api_version=target.api_version,
        kind=target.kind,
        namespace=target.namespace or "",
        name=target.name,
        object_uid=target.uid or "",
    )


def volcano(gateway: MemoryGateway) -> None:
    """Obey commands as Volcano does, and take them away."""
    for command in gateway.list(
        api_version="bus.volcano.sh/v1alpha1", kind="Command", namespace=TEAM
    ):
        job = gateway._objects["batch.volcano.sh", "Job", TEAM, NAME]
        phase = "Aborted" if command["action"] == "AbortJob" else "Running"
        gateway.put({**job, "status": {"state": {"phase": phase}}})
        gateway.remove(target_of(command))


@pytest.mark.parametrize("actuator", CATALOGUE, ids=lambda each: each.resource)
def test_what_was_taken_is_given_back_as_it_was(world: Enforced, actuator: Actuator) -> None:
    before = world.gateway.put(started(actuator))
    if actuator.means is Means.COMMAND:
        world.gateway.controllers.append(volcano)
    hands = world.hands()
    (applied,) = apply(world.round(workload_of(before)), hands)
    assert (applied.result, applied.detail) == (Result.OPEN, None)
    (settled,) = settle(hands)
    assert settled.outcome is Outcome.DONE
    taken = hands.gateway.read(target_of(before))
    assert taken is not None

    (entry,) = undoable(hands.ledger.entries().all())
    assert undo(entry, hands).result is Undoing.OPEN
    world.clock.pass_(HOUR)
    settle(hands)
    settle(hands)
    assert hands.ledger.entries().open() == ()
    after = hands.gateway.read(target_of(before))
    assert after is not None
    assert (after["spec"], annotations(after)) == (before["spec"], annotations(before))
    if actuator.means is not Means.COMMAND:
        assert (taken["spec"], annotations(taken)) != (before["spec"], annotations(before))


def annotations(thing: KubernetesObject) -> object:
    metadata = thing["metadata"]
    assert isinstance(metadata, dict)
    return metadata.get("annotations")


def test_scenario_26_of_what_kueue_manages_only_its_workload_is_written(world: Enforced) -> None:
    ray = next(each for each in CATALOGUE if each.kind == "RayCluster")
    thing = started(ray)
    metadata = {
        "name": NAME,
        "namespace": TEAM,
        "uid": "uid-one",
        "labels": {"kueue.x-k8s.io/queue-name": "gpus"},
    }
    before = world.gateway.put({**thing, "metadata": metadata})
    entry_metadata = {
        "name": "entry",
        "namespace": TEAM,
        "ownerReferences": [
            {"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": NAME, "uid": "uid-one"}
        ],
    }
    world.gateway.put(
        {
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": "Workload",
            "metadata": entry_metadata,
            "spec": {"active": True},
            "status": {},
        }
    )
    hands = world.hands()
    apply(world.round(workload_of(before)), hands)
    settle(hands)
    (entry,) = undoable(hands.ledger.entries().all())
    undo(entry, hands)
    settle(hands)
    written = [(write.verb, write.target.kind, write.body) for write in world.gateway.writes]
    assert written == [
        (Verb.PATCH, "Workload", {"spec": {"active": False}}),
        (Verb.PATCH, "Workload", {"spec": {"active": True}}),
    ]
