"""Laws of telling differences, whatever a server says twice, late or not at all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from collector.sources.kubernetes.change import ChangeType
from collector.sources.kubernetes.store import Difference, ObjectStore
from tests.support.kubernetes_feeds import Thing, ThingMetadata, ThingSpec

NAMES = ("a", "b", "c")

Known = dict[str, tuple[str, str]]
"""Uid and version by name."""


class Cluster:
    """A server's true state: writes give each object a version that was never used before."""

    def __init__(self) -> None:
        """Begin empty."""
        self.objects: dict[str, Thing] = {}
        self.revision = 0

    def write(self, name: str) -> Thing:
        self.revision += 1
        known = self.objects.get(name)
        uid = known.metadata.uid if known else f"uid-{self.revision}"
        metadata = ThingMetadata(name=name, uid=uid, resource_version=str(self.revision))
        self.objects[name] = Thing(metadata=metadata, spec=ThingSpec(size=self.revision))
        return self.objects[name]

    def state(self) -> Known:
        return {
            name: (one.metadata.uid, one.metadata.resource_version)
            for name, one in self.objects.items()
        }


def replayed(differences: Iterable[Difference]) -> Known:
    known: Known = {}
    for one in differences:
        metadata = one.object.metadata
        if one.type is ChangeType.DELETED:
            assert known.pop(metadata.name)[0] == metadata.uid
            continue
        assert (metadata.name in known) == (one.type is ChangeType.MODIFIED)
        known[metadata.name] = (metadata.uid, metadata.resource_version)
    return known


steps = st.lists(
    st.tuples(
        st.sampled_from(["write", "delete", "relist"]),
        st.sampled_from(NAMES),
        st.sampled_from(["told", "told twice", "missed"]),
    ),
    max_size=40,
)


@given(steps)
def test_differences_add_up_to_the_servers_state_and_no_version_counts_twice(
    script: list[tuple[str, str, str]],
) -> None:
    cluster, store = Cluster(), ObjectStore()
    told: list[Difference] = []
    for action, name, fate in [*script, ("relist", "a", "told")]:
        times = {"told": 1, "told twice": 2, "missed": 0}[fate]
        if action == "write":
            written = cluster.write(name)
            for _ in range(times):
                told += store.put(written)
        elif action == "delete" and name in cluster.objects:
            gone = cluster.objects.pop(name)
            for _ in range(times):
                told += store.remove(gone.metadata, gone)
        elif action == "relist":
            store.begin_list()
            for one in cluster.objects.values():
                told += store.put(one)
            told += store.end_list()
    assert replayed(told) == cluster.state()
    states = [one.object.metadata for one in told if one.type is not ChangeType.DELETED]
    counts = Counter((one.uid, one.resource_version) for one in states)
    assert set(counts.values()) <= {1}
