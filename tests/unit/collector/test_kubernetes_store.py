"""What counts as a difference."""

from __future__ import annotations

from collections.abc import Iterable

from collector.sources.kubernetes.store import Difference, ObjectStore
from tests.support.kubernetes_feeds import Thing, ThingMetadata, ThingSpec


def thing(name: str, version: int, *, uid: str = "u", namespace: str | None = "a") -> Thing:
    metadata = ThingMetadata(name=name, uid=uid, resource_version=str(version), namespace=namespace)
    return Thing(metadata=metadata, spec=ThingSpec(size=version))


def told(differences: Iterable[Difference]) -> list[str]:
    return [
        f"{one.type} {one.object.metadata.name}@{one.object.metadata.resource_version}"
        for one in differences
    ]


def test_first_sight_is_added_the_same_version_is_nothing_another_is_modified() -> None:
    store = ObjectStore()
    assert told(store.put(thing("x", 1))) == ["ADDED x@1"]
    assert told(store.put(thing("x", 1))) == []
    assert told(store.put(thing("x", 2))) == ["MODIFIED x@2"]


def test_version_that_goes_back_is_a_difference_too() -> None:
    """As after a restore of the server's own store from a backup."""
    store = ObjectStore()
    told(store.put(thing("x", 9)))
    assert told(store.put(thing("x", 3))) == ["MODIFIED x@3"]


def test_new_object_of_an_old_name_ends_the_old_one_first() -> None:
    store = ObjectStore()
    told(store.put(thing("x", 1, uid="old")))
    assert told(store.put(thing("x", 2, uid="new"))) == ["DELETED x@1", "ADDED x@2"]
    assert len(store) == 1


def test_same_name_in_two_namespaces_is_two_objects() -> None:
    store = ObjectStore()
    assert told(store.put(thing("x", 1, uid="1"))) == ["ADDED x@1"]
    assert told(store.put(thing("x", 1, uid="2", namespace="b"))) == ["ADDED x@1"]
    assert told(store.put(thing("x", 1, uid="3", namespace=None))) == ["ADDED x@1"]
    assert len(store) == 3


def test_complete_list_ends_what_it_does_not_have_in_order_of_name() -> None:
    store = ObjectStore()
    for name in ("c", "a", "b"):
        told(store.put(thing(name, 1, uid=name)))
    store.begin_list()
    told(store.put(thing("b", 1, uid="b")))
    assert told(store.end_list()) == ["DELETED a@1", "DELETED c@1"]
    assert told(store.end_list()) == []


def test_list_given_up_ends_nothing() -> None:
    store = ObjectStore()
    told(store.put(thing("a", 1, uid="a")))
    store.begin_list()
    store.begin_list()
    told(store.put(thing("a", 1, uid="a")))
    assert told(store.end_list()) == []


def test_end_of_an_object_has_its_last_state() -> None:
    store = ObjectStore()
    told(store.put(thing("x", 1)))
    last = thing("x", 5)
    assert told(store.remove(last.metadata, last)) == ["DELETED x@5"]
    assert told(store.remove(last.metadata, last)) == []


def test_end_without_a_readable_state_has_the_last_known_one() -> None:
    store = ObjectStore()
    told(store.put(thing("x", 1)))
    assert told(store.remove(thing("x", 5).metadata, None)) == ["DELETED x@1"]


def test_end_of_an_older_object_of_that_name_is_nothing() -> None:
    store = ObjectStore()
    told(store.put(thing("x", 7, uid="new")))
    old = thing("x", 5, uid="old")
    assert told(store.remove(old.metadata, old)) == []
    assert len(store) == 1


def test_unreadable_object_is_kept_only_while_it_is_the_same() -> None:
    store = ObjectStore()
    told(store.put(thing("x", 1, uid="same")))
    told(store.put(thing("y", 1, uid="old")))
    store.begin_list()
    store.keep([thing("x", 2, uid="same").metadata, thing("y", 2, uid="new").metadata])
    store.keep([thing("z", 2, uid="never seen").metadata])
    assert told(store.end_list()) == ["DELETED y@1"]


def test_kind_that_is_gone_ends_everything() -> None:
    store = ObjectStore()
    told(store.put(thing("x", 1)))
    assert told(store.clear()) == ["DELETED x@1"]
    assert len(store) == 0
