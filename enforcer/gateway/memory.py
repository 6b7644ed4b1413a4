"""A cluster in memory: the same answers and refusals as an API server's, without one.

It serves tests, demonstrations and rehearsals. Controllers are played by functions that look at the
gateway after each write; a watcher may raise at any call, to play a broken connection or a crash.
"""

from __future__ import annotations

import copy
import itertools
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from threading import RLock
from typing import Final

from enforcer.gateway.merging import is_selected, merged_object
from enforcer.gateway.places import Place, group_of, metadata_of, place, place_of
from enforcer.gateway.port import JsonValue, KubernetesObject, Target, Verb, Write
from steward.errors import ConflictError, DeniedError, FencedError, RefusedError

Json = dict[str, JsonValue]
SCALED_KINDS: Final = frozenset({"Deployment", "ReplicaSet", "StatefulSet", "LeaderWorkerSet"})
EPOCH: Final = datetime(2026, 1, 1, tzinfo=UTC)
"""Creation time of objects that bring none."""
_PERMISSIONS: Final = {
    Verb.PATCH: "patch",
    Verb.SCALE: "patch/scale",
    Verb.EVICT: "create/eviction",
    Verb.CREATE: "create",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of a gateway, as a watcher sees it."""

    name: str
    """read, list, rehearse, write or may."""
    write: Write | None
    is_done: bool
    """False before anything happened, True when it has and only the answer is missing."""


def _nothing(_call: Call) -> None:
    pass


def _always() -> bool:
    return True


class MemoryGateway:
    """Objects in a dictionary; safe for several threads.

    Args:
        objects: what the cluster holds; uid, version and creation time are given where missing.
        is_leading: asked before each write; False raises ``FencedError``.
        denied: pairs of verb and kind that the account may not do, such as ``("patch", "Job")``.
        on_call: sees each call before and after; what it raises is what the caller gets.
    """

    def __init__(
        self,
        objects: Iterable[KubernetesObject] = (),
        *,
        is_leading: Callable[[], bool] = _always,
        denied: Iterable[tuple[str, str]] = (),
        on_call: Callable[[Call], None] = _nothing,
    ) -> None:
        """Store the objects."""
        self.is_leading = is_leading
        self.denied = set(denied)
        self.on_call = on_call
        self.controllers: list[Callable[[MemoryGateway], None]] = []
        """Called after each stored write, in this order."""
        self.refusals: list[Callable[[Write], str | None]] = []
        """Admission: words instead of None refuse a write."""
        self.writes: list[Write] = []
        """What was stored, in order."""
        self.call_count = 0
        self._objects: dict[Place, Json] = {}
        self._versions = itertools.count(1)
        self._uids = itertools.count(1)
        self._lock = RLock()
        for each in objects:
            self.put(each)

    def read(self, target: Target) -> KubernetesObject | None:
        """Return a copy of the object."""
        with self._called("read", verb="get", kind=target.kind):
            found = self._objects.get(place(target))
            if found is None or target.uid not in {None, metadata_of(found).get("uid")}:
                return None
            return _as_asked(found, target.api_version)

    def list(
        self, *, api_version: str, kind: str, namespace: str | None, labels: str = ""
    ) -> Sequence[KubernetesObject]:
        """Return copies of the objects, ascending by namespace and name."""
        group = group_of(api_version)
        with self._called("list", verb="list", kind=kind):
            return [
                _as_asked(found, api_version)
                for key, found in self._ordered()
                if key[:2] == (group, kind)
                and namespace in {None, key[2]}
                and is_selected(_labels(found), labels)
            ]

    def rehearse(self, write: Write) -> None:
        """Check the write; nothing is stored."""
        with self._asked("rehearse", write):
            self._check(write)

    def write(self, write: Write) -> KubernetesObject:
        """Store the write; controllers act before it returns."""
        with self._asked("write", write):
            if not self.is_leading():
                raise FencedError(
                    f"{_name(write.target)} was not written: another replica leads now",
                    hint="nothing to do: the leader goes on",
                )
            self._check(write)
            result = self._stored(write)
            self.writes.append(write)
            for controller in self.controllers:
                controller(self)
        return result

    def may(self, *, verb: str, api_version: str, kind: str, namespace: str | None) -> bool:
        """Return whether the account may do this: all that is not denied."""
        del api_version, namespace
        self.call_count += 1
        self.on_call(Call(name="may", write=None, is_done=False))
        return (verb, kind) not in self.denied

    def put(self, thing: KubernetesObject) -> KubernetesObject:
        """Create or replace an object as somebody else would; return a copy."""
        with self._lock:
            key = place_of(thing)
            old = self._objects.get(key)
            metadata = metadata_of(thing)
            given: Json = {
                "uid": metadata_of(old).get("uid") if old else f"uid-{next(self._uids)}",
                "creationTimestamp": EPOCH.strftime("%Y-%m-%dT%H:%M:%SZ"),
                "generation": 1,
            }
            version: Json = {"resourceVersion": str(next(self._versions))}
            self._objects[key] = {
                **copy.deepcopy(dict(thing)),
                "metadata": {**given, **metadata, **version},
            }
            return copy.deepcopy(self._objects[key])

    def remove(self, target: Target) -> None:
        """Take an object away as somebody else would; one that is not there does no harm."""
        with self._lock:
            self._objects.pop(place(target), None)

    def _check(self, write: Write) -> None:
        held = self._objects.get(place(write.target))
        if write.verb is Verb.CREATE:
            if held is not None:
                raise _conflict(write, "exists already")
        elif held is None:
            raise _conflict(write, "is gone")
        else:
            _check_preconditions(write, metadata_of(held))
        reason = self._reason_to_refuse(write, held)
        if reason is not None:
            raise RefusedError(
                f"{_name(write.target)} may not be written: {reason}",
                hint="see what the server says; the object stays as it is",
            )

    def _reason_to_refuse(self, write: Write, held: Json | None) -> str | None:
        if write.verb is Verb.SCALE and write.target.kind not in SCALED_KINDS:
            return "the kind has no scale"
        if write.verb is Verb.EVICT and held is not None:
            for budget in self._budgets(held):
                if _allowed(budget) < 1:
                    return f"disruption budget {metadata_of(budget).get('name')} allows no eviction"
        found = (refuse(write) for refuse in self.refusals)
        return next((reason for reason in found if reason is not None), None)

    def _stored(self, write: Write) -> KubernetesObject:
        key = place(write.target)
        if write.verb is Verb.CREATE:
            return self.put(write.body)
        if write.verb is Verb.EVICT:
            for budget in self._budgets(self._objects[key]):
                status: Json = {"status": {"disruptionsAllowed": _allowed(budget) - 1}}
                self.put(merged_object(budget, status))
            return self._objects.pop(key)
        old = self._objects[key]
        new = merged_object(old, write.body)
        if new == old:
            return dict(old)
        generation = metadata_of(old).get("generation")
        if isinstance(generation, int) and new.get("spec") != old.get("spec"):
            new["metadata"] = {**metadata_of(new), "generation": generation + 1}
        return self.put(new)

    def _ordered(self) -> Sequence[tuple[Place, Json]]:
        return sorted(self._objects.items(), key=operator.itemgetter(0))

    def _budgets(self, pod: Json) -> Iterable[Json]:
        namespace = metadata_of(pod).get("namespace")
        for key, found in self._ordered():
            if key[:3] != ("policy", "PodDisruptionBudget", namespace):
                continue
            spec = found.get("spec")
            selector = spec.get("selector") if isinstance(spec, Mapping) else None
            wanted = selector.get("matchLabels") if isinstance(selector, Mapping) else None
            pairs = wanted.items() if isinstance(wanted, Mapping) else ()
            if all(_labels(pod).get(name) == text for name, text in pairs):
                yield found

    def _asked(self, name: str, write: Write) -> AbstractContextManager[None]:
        verb, kind = _PERMISSIONS[write.verb], write.target.kind
        return self._called(name, verb=verb, kind=kind, write=write)

    @contextmanager
    def _called(
        self, name: str, *, verb: str, kind: str, write: Write | None = None
    ) -> Iterator[None]:
        """Let the watcher see a call before and after, and hold the objects still meanwhile."""
        with self._lock:
            self.call_count += 1
            self.on_call(Call(name=name, write=write, is_done=False))
            if (verb, kind) in self.denied:
                raise DeniedError(
                    f"the account may not {verb} {kind}",
                    hint=f"grant it {verb} on {kind}, or leave this kind out",
                )
            yield
            self.on_call(Call(name=name, write=write, is_done=True))


def _check_preconditions(write: Write, held: KubernetesObject) -> None:
    if write.target.uid not in {None, held.get("uid")}:
        raise _conflict(write, "is another object of the same name")
    if write.resource_version not in {None, held.get("resourceVersion")}:
        raise _conflict(write, "was changed since it was read")


def _conflict(write: Write, what: str) -> ConflictError:
    return ConflictError(f"{_name(write.target)} {what}", hint="read it anew and decide again")


def _labels(thing: KubernetesObject) -> dict[str, str]:
    found = metadata_of(thing).get("labels")
    pairs = found.items() if isinstance(found, Mapping) else ()
    return {key: text for key, text in pairs if isinstance(text, str)}


def _allowed(budget: KubernetesObject) -> int:
    """Return how many evictions a disruption budget allows; none where it does not tell."""
    status = budget.get("status")
    found = status.get("disruptionsAllowed") if isinstance(status, Mapping) else None
    return found if isinstance(found, int) else 0


def _as_asked(thing: Json, api_version: str) -> KubernetesObject:
    """Return a copy in the version that was asked for, as a server converts."""
    return {**copy.deepcopy(thing), "apiVersion": api_version}


def _name(target: Target) -> str:
    return f"{target.kind} {target.namespace or ''}/{target.name}"
