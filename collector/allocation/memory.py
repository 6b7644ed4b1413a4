"""The durable memory of a node as compact JSON: what a restart must not forget.

Of the keys, all under ``allocation/``, ``seen/<node>`` holds the time of each source's last poll
and is written with every poll; ``node/<node>`` holds the rest and is written when it changes;
``finished/<namespace>/<pod>`` holds the end of a pod that a source may still list; ``now`` is the
latest instant heard of.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, Final, TypeVar

from collector.allocation.pods import Finished
from collector.allocation.polls import PodKey
from collector.allocation.state import Interval, NodeState, SourceState, Statement, Trace
from collector.allocation.statements import statement_key
from collector.holdings import DeviceKey, Holding, HoldingSource
from collector.ownership import Owner, OwnershipLevel
from collector.remembered import unreadable

SEEN: Final = "allocation/seen/"
NODE: Final = "allocation/node/"
FINISHED: Final = "allocation/finished/"
NOW: Final = "allocation/now"

_Json = dict[str, Any]
_Record = TypeVar("_Record", Statement, Interval, Trace, Holding, Owner)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """All that was remembered."""

    finished: dict[PodKey, Finished]
    nodes: dict[str, NodeState]
    now_us: int
    """The latest instant heard of; 0 where none was."""


def recalled(memory: Mapping[str, bytes]) -> Recalled:
    """Return what was remembered; keys of others are passed over.

    Raises:
        InputError: it is damaged, or of another version.
    """
    names = [key.removeprefix(NODE) for key in memory if key.startswith(NODE)]
    try:
        return Recalled(
            finished=_decoded_finished(memory),
            nodes={
                name: _decoded_node(name, memory[NODE + name], seen=memory.get(SEEN + name))
                for name in names
            },
            now_us=int(memory.get(NOW, b"0")),
        )
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise unreadable("who held what", error) from error


def encoded_seen(node: NodeState) -> bytes:
    """Return the times of the last polls."""
    return _bytes({source: state.at_us for source, state in node.sources.items()})


def encoded_node(node: NodeState) -> bytes:
    """Return everything else that is remembered of a node."""
    statements = [
        _plain(each) | {"holding": _plain(each.holding)} for each in node.statements.values()
    ]
    return _bytes(
        {
            "sources": {
                source: {
                    "silent": state.is_silent,
                    "named": state.has_named,
                    "devices": None if state.devices is None else sorted(state.devices, key=str),
                }
                for source, state in node.sources.items()
            },
            "statements": statements,
            "open": [_interval(each) for each in node.open.values()],
            "recent": [_interval(each) for each in node.recent],
            "floors": _pairs(node.floors),
            "sm_shares": _pairs(node.sm_shares),
            "uses": _pairs({key: sorted(uids) for key, uids in node.uses.items()}),
            "busy": _pairs({key: _plain(each) for key, each in node.busy.items()}),
            "listed": sorted(node.listed, key=str),
            "missing": _pairs({key: _plain(each) for key, each in node.missing.items()}),
            "dark": _pairs(node.dark),
            "alternating": sorted(node.alternating, key=str),
        }
    )


def _decoded_node(name: str, node: bytes, *, seen: bytes | None) -> NodeState:
    """Return what was remembered of a node."""
    said: _Json = json.loads(node)
    at_us: dict[str, int] = json.loads(seen) if seen is not None else {}
    statements = [
        _record(Statement, each | {"holding": _holding(each["holding"])})
        for each in said["statements"]
    ]
    for statement in statements:
        statement.moved_to = tuple(_key(each) for each in statement.moved_to)
    state = NodeState(
        node=name,
        sources={
            HoldingSource(source): _source(each, at_us=at_us.get(source, 0))
            for source, each in said["sources"].items()
        },
        statements={statement_key(each.holding): each for each in statements},
        open={each.key: each for each in map(_decoded_interval, said["open"])},
        recent=[_decoded_interval(each) for each in said["recent"]],
        floors=dict(_unpaired(said["floors"])),
        sm_shares=dict(_unpaired(said["sm_shares"])),
        uses={key: frozenset(uids) for key, uids in _unpaired(said["uses"])},
        busy={key: _record(Trace, each) for key, each in _unpaired(said["busy"])},
        listed=frozenset(_key(each) for each in said["listed"]),
        missing={key: _record(Trace, each) for key, each in _unpaired(said["missing"])},
        dark=dict(_unpaired(said["dark"])),
        alternating={_key(each) for each in said["alternating"]},
    )
    state.told_memory = node
    return state


def _source(said: _Json, *, at_us: int) -> SourceState:
    devices = said["devices"]
    return SourceState(
        at_us=at_us,
        devices=None if devices is None else frozenset(_key(each) for each in devices),
        is_silent=said["silent"],
        has_named=said["named"],
    )


def finished_key(pod: PodKey) -> str:
    """Return the key under which a pod's end is remembered."""
    return f"{FINISHED}{pod[0] or ''}/{pod[1]}"


def encoded_finished(end: Finished) -> bytes:
    """Return a pod's end."""
    return _bytes({"pod_uid": end.pod_uid, "finished_us": end.finished_us, "told_us": end.told_us})


def _decoded_finished(memory: Mapping[str, bytes]) -> dict[PodKey, Finished]:
    """Return the remembered ends of pods."""
    found: dict[PodKey, Finished] = {}
    for key, content in memory.items():
        if key.startswith(FINISHED):
            namespace, _, pod = key.removeprefix(FINISHED).partition("/")
            found[namespace or None, pod] = Finished(**json.loads(content))
    return found


def _interval(interval: Interval) -> _Json:
    owner = interval.owner
    return _plain(interval) | ({} if owner is None else {"owner": _plain(owner)})


def _decoded_interval(said: _Json) -> Interval:
    owner = said.get("owner")
    if owner is not None:
        owner = _record(Owner, owner | {"level": OwnershipLevel(owner["level"])})
    return _record(Interval, said | {"owner": owner})


def _holding(said: _Json) -> Holding:
    return _record(Holding, said | {"source": HoldingSource(said["source"])})


def _plain(record: Statement | Interval | Trace | Holding | Owner) -> _Json:
    """Return a record's fields that are known."""
    return {
        name: value for name in _NAMES[type(record)] if (value := getattr(record, name)) is not None
    }


_NAMES: Final = {
    kind: tuple(each.name for each in fields(kind))
    for kind in (Statement, Interval, Trace, Holding, Owner)
}


def _record(kind: type[_Record], said: _Json) -> _Record:
    """Return a record; fields that were left out are their defaults, or None without one."""
    arguments: _Json = {}
    for each in fields(kind):
        if each.name in said:
            arguments[each.name] = said[each.name]
        elif each.default is MISSING:
            arguments[each.name] = None
    return kind(**arguments)


def _pairs(mapping: Mapping[DeviceKey, Any]) -> list[list[Any]]:
    return [[*key, value] for key, value in mapping.items()]


def _unpaired(pairs: Iterable[list[Any]]) -> Iterable[tuple[DeviceKey, Any]]:
    return (((uuid, instance), value) for uuid, instance, value in pairs)


def _key(said: Iterable[Any]) -> DeviceKey:
    uuid, instance = said
    return uuid, instance


def _bytes(content: _Json) -> bytes:
    return json.dumps(content, separators=(",", ":")).encode()
