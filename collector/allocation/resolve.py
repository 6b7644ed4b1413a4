"""Which of several statements about a device counts, and what the others say against it.

The most trusted source that is heard decides; a disagreement is kept as a word in ``conflict``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from collector.allocation.placement import devices_in_use
from collector.allocation.pods import Pods, is_reservation
from collector.allocation.polls import Holder
from collector.allocation.state import COMPLETE, MISSED_POLLS, PRECEDENCE, NodeState, Statement
from collector.holdings import DeviceKey, HoldingSource

NOBODY: Final = "none"
"""``attribution_source`` of device-time that no source attributes to anybody."""
UNKNOWN: Final = "unknown"
"""Two polls or more said nothing of the holding: it is neither confirmed nor released."""
INDIRECT: Final = "indirect"
"""The pod reserves the GPU for others, which are not told."""
SEVERAL_HOLDERS: Final = "several_holders"
"""A device that is not shared is listed for several pods since the same poll."""
BUSY: Final = "busy_without_holder"
"""The device works and nobody is stated to hold it: an init container, a process of the host."""
UNOBSERVED: Final = "unobserved"
"""The device exists and nothing shows what became of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A holder of a device as it counts; a holder that is None is nobody."""

    holder: Holder | None
    source: str
    replica: int | None = None
    claim: str | None = None
    resource: str | None = None
    pod_uid: str | None = None
    is_attributed: bool = True
    unresolved: str | None = None
    """The name of a device that could not be told."""
    conflicts: tuple[str, ...] = ()
    since_us: int | None = None
    """From when on, where that is before the poll that tells."""


def parts_by_device(node: NodeState, pods: Pods) -> dict[DeviceKey, list[Part]]:
    """Return who holds each device of a node, each list in the order of its holders."""
    stated: dict[DeviceKey, list[Statement]] = {}
    for statement in sorted(node.statements.values(), key=_order):
        if not pods.is_over(statement.holding):
            for device in statement.devices:
                stated.setdefault(device, []).append(statement)
    found = {
        device: _device_parts(node, device, statements=statements, pods=pods)
        for device, statements in stated.items()
    }
    _add_nobody(node, found, stated=stated)
    return {device: parts for device, parts in found.items() if parts}


def _device_parts(
    node: NodeState, device: DeviceKey, *, statements: list[Statement], pods: Pods
) -> list[Part]:
    direct = [each for each in statements if not is_reservation(each.holding)] or statements
    heard = [each for each in direct if not node.is_unknown(each)]
    if device in node.alternating or not heard:
        heard = heard and direct
    candidates = heard or direct
    top = min((each.holding.source for each in candidates), key=PRECEDENCE.__getitem__)
    chosen = [each for each in candidates if each.holding.source is top]
    if top is HoldingSource.EXPORTER_LABEL:
        chosen = [each for each in chosen if not _is_denied(node, each, device=device)]
    chosen, words = _present(node, device, chosen=chosen)
    if not chosen:
        return []
    words += _disagreement(chosen, others=heard)
    return _parts(node, chosen=chosen, words=words, pods=pods)


def _is_denied(node: NodeState, statement: Statement, *, device: DeviceKey) -> bool:
    """Return whether the kubelet, which lists every holder, lists none here.

    Where it lists the pod on a device that could not be told, the label may be right.
    """
    kubelet = node.sources.get(HoldingSource.PODRESOURCES)
    if kubelet is None or kubelet.is_silent or not kubelet.covers(device):
        return False
    said = statement.holding
    return not any(
        other.holding.unresolved is not None
        and (other.holding.namespace, other.holding.pod) == (said.namespace, said.pod)
        for other in node.statements.values()
    )


def _present(
    node: NodeState, device: DeviceKey, *, chosen: list[Statement]
) -> tuple[list[Statement], list[str]]:
    """Leave out who held a share before its present holder."""
    found: list[Statement] = []
    words: list[str] = []
    by_replica: dict[int | None, list[Statement]] = {}
    for each in chosen:
        by_replica.setdefault(each.holding.replica, []).append(each)
    for statements in by_replica.values():
        is_shared = statements[0].holding.replica is None and any(
            each.holding.claim for each in statements
        )
        if is_shared or len({_pod(each) for each in statements}) < 2:
            found += statements
            continue
        kept, said = _newest(node, device, statements=statements)
        found += kept
        words += said
    return found, words


def _newest(
    node: NodeState, device: DeviceKey, *, statements: list[Statement]
) -> tuple[list[Statement], list[str]]:
    """Return the present ones of several holders of one share, and what is to be said of it."""
    source = statements[0].holding.source
    if source is HoldingSource.PODRESOURCES:
        newest_us = max(each.since_us for each in statements)
        newest = {_pod(each) for each in statements if each.since_us == newest_us}
        gone = sorted({_pod(each) for each in statements} - newest)
        words = [f"stale_holder={pod}" for pod in gone]
        words += [SEVERAL_HOLDERS] if len(newest) > 1 else []
        return [each for each in statements if _pod(each) in newest], words
    if source in COMPLETE or device in node.alternating:
        return statements, []
    last = [each for each in statements if not each.missed_count]
    return last or statements, []


def _pod(statement: Statement) -> str:
    said = statement.holding
    return f"{said.namespace or ''}/{said.pod}"


def _disagreement(chosen: list[Statement], *, others: list[Statement]) -> list[str]:
    """Return what less trusted sources say of this device that the chosen one does not."""
    pods = {_pod(each) for each in chosen}
    words = {
        f"{each.holding.source}={_pod(each)}"
        for each in others
        if each.holding.source is not chosen[0].holding.source and _pod(each) not in pods
    }
    return sorted(words)


def _parts(node: NodeState, *, chosen: list[Statement], words: list[str], pods: Pods) -> list[Part]:
    numbered = {each.holder for each in chosen if each.holding.replica is not None}
    parts: dict[tuple[Holder, int | None], Part] = {}
    for each in chosen:
        said, holder = each.holding, each.holder
        if said.replica is None and holder in numbered:
            continue
        own = [*words, *_own_words(node, each, pods=pods)]
        parts.setdefault(
            (holder, said.replica),
            Part(
                holder=holder,
                source=NOBODY if said.unresolved else said.source,
                replica=said.replica,
                claim=said.claim,
                resource=said.resource,
                pod_uid=pods.uid(said),
                unresolved=said.unresolved,
                is_attributed=said.unresolved is None and not is_reservation(said),
                conflicts=tuple(own),
            ),
        )
    return list(parts.values())


def _own_words(node: NodeState, each: Statement, *, pods: Pods) -> list[str]:
    """Return what is to be said of one holder's statement."""
    said = each.holding
    words = [f"unresolved={said.unresolved}"] if said.unresolved else []
    if is_reservation(said):
        words.append(INDIRECT)
    if node.is_unknown(each):
        words.append(UNKNOWN)
    if each.moved_to:
        words.append(f"{said.source}_device={said.device_uuid}")
    elif said.source in COMPLETE:
        words += _unstated_processes(node, each, used=devices_in_use(node, pods.uid(said)))
    return words


def _stated_boards(node: NodeState, statement: Statement) -> set[str]:
    """Return the boards on which the same source states the same pod."""
    said = statement.holding
    return {
        other.holding.device_uuid
        for other in node.statements.values()
        if other.holding.source is said.source
        and (other.holding.namespace, other.holding.pod) == (said.namespace, said.pod)
    }


def _unstated_processes(
    node: NodeState, statement: Statement, *, used: tuple[DeviceKey, ...]
) -> list[str]:
    """Return the first board that the pod works on and is not stated to hold."""
    stated = _stated_boards(node, statement) if used else set()
    return [f"process_device={uuid}" for uuid, _ in used if uuid not in stated][:1]


def _order(statement: Statement) -> tuple[str, str, str, int]:
    said = statement.holding
    replica = -1 if said.replica is None else said.replica
    return said.namespace or "", said.pod, said.container or "", replica


def _add_nobody(
    node: NodeState,
    found: dict[DeviceKey, list[Part]],
    *,
    stated: dict[DeviceKey, list[Statement]],
) -> None:
    """Add devices that work, exist or went dark while nobody is known to hold them."""
    sliced = {uuid for uuid, instance in (*found, *node.busy) if instance is not None}
    for device in node.busy:
        is_board_of_instances = device[1] is None and device[0] in sliced
        if can_tell(node, device) and not found.get(device) and not is_board_of_instances:
            said = {f"{each.holding.source}={_pod(each)}" for each in stated.get(device, ())}
            found[device] = [nobody(BUSY, *sorted(said))]
    for device, trace in node.missing.items():
        if trace.missed_count >= MISSED_POLLS and not found.get(device):
            found[device] = [nobody(UNOBSERVED, since_us=trace.since_us)]
    for device, since_us in node.dark.items():
        if not found.get(device):
            found[device] = [nobody(UNOBSERVED, since_us=since_us)]


def nobody(*words: str, since_us: int | None = None) -> Part:
    """Return device-time that nobody is known to hold, and why it is told."""
    return Part(holder=None, source=NOBODY, is_attributed=False, conflicts=words, since_us=since_us)


def can_tell(node: NodeState, device: DeviceKey) -> bool:
    """Return whether any source that is heard would name a holder if there were one."""
    for source, state in node.sources.items():
        if state.is_silent or not state.covers(device):
            continue
        is_complete = source is HoldingSource.PODRESOURCES or (
            source is HoldingSource.DRA and device in node.listed
        )
        if is_complete or state.has_named:
            return True
    return False


def conflict_text(words: Iterable[str]) -> str | None:
    """Return the words as stored: separated by semicolons, each once; None where there are none."""
    return ";".join(dict.fromkeys(words)) or None
