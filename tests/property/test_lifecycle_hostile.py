"""Objects as no honest API server writes them: they cost themselves, never the collector.

Real objects are changed at random places into what a hostile user, a strange controller or a broken
server might write; every row must fit the warehouse's own tables.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from collector.lifecycle import Lifecycle, Output
from collector.sources.kubernetes.change import Change, ChangeType, ObjectKey
from collector.sources.kubernetes.resource import KubernetesObject, Resource
from collector.sources.kubernetes.resources import RESOURCES
from collector.sources.kubernetes.store import Difference, ObjectStore
from collector.sources.kubernetes.wire_objects import Event, ObjectDecoder
from collector.tables import rows_table
from sql.rows import fit
from sql.tables import TableShape
from sql.warehouse import open_embedded
from tests.support import kubernetes_objects
from tests.support.kubernetes_objects import NOON
from tests.support.lifecycle_drive import NO_KEY

CAPTURED: dict[str, Any] = json.loads(
    Path(kubernetes_objects.__file__).with_name("kubernetes_captured.json").read_text("utf-8")
)
BY_NAME = {each.name: each for each in RESOURCES}
DECODERS = {each.name: ObjectDecoder(each) for each in RESOURCES}
NUMBERS = (-1, 0, 1, 2**31, 2**63, 2**70, 1e308, -0.5)
QUANTITIES = ("1e3", "0.5", "-1", "1e400", "NaN", "Inf", "9" * 30 + "Ei", "9223372036854775807")
TEXTS = ("", " 1 ", "x" * 70_000, "\0", "\U0010ffff", "a/b/../c", "\ud800", "True", "False")
INSTANTS = (
    "9999-12-31T23:59:59-14:00",
    "9999-12-31T23:59:59Z",
    "0001-01-01T00:00:00+14:00",
    "0001-01-01T00:00:00Z",
    "1969-12-31T23:59:59Z",
    "2026-01-01T00:00:00",
    "2026-11-30T12:00:00.123456789Z",
    "no instant",
)
SHAPES: tuple[object, ...] = (None, True, [], {}, [None], {"": ""})
HOSTILE = (*NUMBERS, *QUANTITIES, *TEXTS, *INSTANTS, *SHAPES)


@pytest.fixture(scope="module")
def shapes(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, TableShape]:
    """Return the warehouse's own tables."""
    with closing(open_embedded(tmp_path_factory.mktemp("shapes"))) as warehouse:
        return dict(warehouse.shapes)


class Cluster:
    """An API server whose objects are strange, and the collector that follows it."""

    def __init__(self, seed: int, shapes: Mapping[str, TableShape]) -> None:
        """Start with nothing."""
        self.dice = random.Random(seed)  # noqa: S311 - repeatable test input
        self._shapes = shapes
        self._stores = {each.name: ObjectStore() for each in RESOURCES}
        self._memory: dict[str, bytes] = {}
        self._now = NOON
        self._lifecycle = Lifecycle(cluster="c1")

    def show(self, name: str) -> None:
        """Let one real object be there in a strange state, if it can be read at all."""
        each = CAPTURED[name]
        body = changed(each["object"], self.dice)
        if isinstance(body.get("metadata"), dict) and self.dice.random() < 0.7:
            body["metadata"]["resourceVersion"] = str(self.dice.random())
        line = json.dumps({"type": "MODIFIED", "object": body}).encode()
        try:
            event = DECODERS[each["resource"]].event(line)
        except msgspec.DecodeError:
            return
        if isinstance(event, Event) and event.object is not None:
            self.tell(each["resource"], self._stores[each["resource"]].put(event.object))

    def sync(self) -> None:
        """Complete all lists."""
        for each in RESOURCES:
            self._apply(each, ChangeType.SYNCED, None)

    def restart(self) -> None:
        """Let the collector start again with what it remembers, then let everything end."""
        self._lifecycle = Lifecycle(cluster="c1", memory=dict(self._memory))
        for name, store in self._stores.items():
            known = [difference.object for difference in store.clear()]
            self.tell(name, (one for found in known for one in store.put(found)))
        self.sync()
        for name, store in self._stores.items():
            self.tell(name, store.clear())
        self._keep(self._lifecycle.advance(self._now + timedelta(days=9)))

    def tell(self, name: str, differences: Iterator[Difference]) -> None:
        """Tell what changed of the objects of a kind."""
        for difference in differences:
            self._apply(BY_NAME[name], difference.type, difference.object)

    def _apply(self, resource: Resource, kind: ChangeType, found: KubernetesObject | None) -> None:
        key = NO_KEY
        if found is not None:
            meta = found.metadata
            key = ObjectKey(namespace=meta.namespace or None, name=meta.name, uid=meta.uid)
        self._now += timedelta(seconds=self.dice.choice((0, 1, 10)))
        change = Change(resource=resource, type=kind, key=key, object=found, observed_at=self._now)
        self._keep(self._lifecycle.apply(change))
        while self._lifecycle.has_more:
            self._keep(self._lifecycle.advance(self._now))

    def _keep(self, output: Output) -> None:
        for name, row in output.rows:
            fit(rows_table(name, [row]), shape=self._shapes[name])
        for key, entry in output.remember.items():
            if entry is None:
                self._memory.pop(key, None)
            else:
                self._memory[key] = entry


@pytest.mark.parametrize("seed", range(40))
def test_no_object_ends_the_collector_or_a_batch(
    seed: int, shapes: Mapping[str, TableShape]
) -> None:
    cluster = Cluster(seed, shapes)
    names = sorted(CAPTURED)
    if cluster.dice.random() < 0.5:
        cluster.sync()
    for _ in range(12):
        cluster.show(cluster.dice.choice(names))
    cluster.sync()
    for _ in range(6):
        cluster.show(cluster.dice.choice(names))
    cluster.restart()


@pytest.mark.parametrize("field", ["requests", "limits"])
@pytest.mark.parametrize("amount", [*NUMBERS, *QUANTITIES])
@pytest.mark.parametrize("resource", ["cpu", "memory", "nvidia.com/gpu", "nvidia.com/mig-1g.5gb"])
def test_no_amount_ends_the_collector(
    field: str, amount: object, resource: str, shapes: Mapping[str, TableShape]
) -> None:
    for name in ("pending pod", "first workload v1beta2", "job"):
        body = copy.deepcopy(CAPTURED[name]["object"])
        for container in containers(body):
            container["resources"] = {field: {resource: amount}}
        raw = json.dumps({"type": "ADDED", "object": body}).encode()
        event = DECODERS[CAPTURED[name]["resource"]].event(raw)
        assert isinstance(event, Event)
        assert event.object is not None
        cluster = Cluster(0, shapes)
        cluster.sync()
        cluster.tell(
            CAPTURED[name]["resource"],
            iter([Difference(ChangeType.ADDED, event.object)]),
        )


def containers(found: object) -> Iterator[dict[str, Any]]:
    """Yield the containers of every pod template in an object."""
    if isinstance(found, dict):
        for key, value in found.items():
            if key == "containers" and isinstance(value, list):
                yield from (one for one in value if isinstance(one, dict))
            else:
                yield from containers(value)
    elif isinstance(found, list):
        for one in found:
            yield from containers(one)


def changed(body: dict[str, Any], dice: random.Random) -> dict[str, Any]:
    """Return a copy with one to four places changed, copied over or gone."""
    found = copy.deepcopy(body)
    for _ in range(dice.choice((1, 1, 2, 4))):
        place = dice.choice([path for path in paths(found) if path] or [()])
        if not place:
            break
        parent = at_path(found, place[:-1])
        fate = dice.random()
        if fate < 0.2:
            del parent[place[-1]]
        elif fate < 0.3:
            parent[place[-1]] = copy.deepcopy(at_path(found, dice.choice(list(paths(found)))))
        else:
            parent[place[-1]] = copy.deepcopy(dice.choice(HOSTILE))
    return found


def paths(found: object, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the way to every place in an object."""
    yield before
    if isinstance(found, dict):
        for key, value in found.items():
            yield from paths(value, (*before, key))
    elif isinstance(found, list):
        for index, value in enumerate(found):
            yield from paths(value, (*before, index))


def at_path(found: Any, place: tuple[Any, ...]) -> Any:  # noqa: ANN401 - JSON of any shape
    """Return what is at a place."""
    for step in place:
        found = found[step]
    return found
