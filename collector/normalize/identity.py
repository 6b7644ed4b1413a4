"""Which device, on which node, a label set speaks of.

A device is its UUID, or ``node/index`` where the exporter gives none; a MIG instance is the board's
UUID and the GPU instance id. A node is the scraped target's where discovery knows it, else the one
that the exporter names, else the host of the address.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from collector.holdings import DeviceKey, Holding
from collector.normalize.dialects import MAKERS, Dialect
from collector.normalize.mig import mig_share
from collector.normalize.pods import EXPORTER_NAME, Holder, first_meaning, holder
from collector.normalize.sentinels import meaning

_NO_UUID: Final = re.compile(r"[0-]*")
_BARE_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_SMALL_NUMBER: Final = re.compile(r"[0-9]{1,9}")
_CONTAINER_ID: Final = re.compile(r"[0-9a-f]{12}")
_LOOPBACK: Final = re.compile(r"localhost|127\.[0-9.]+|\[?::1\]?|0\.0\.0\.0")
_GUEST: Final = re.compile(r"\bVF\b")
_SHARE: Final = re.compile(r"0?\.[0-9]{1,12}|1(?:\.0*)?")
_REPLICA: Final = re.compile(r"(?:.*::)?(?P<number>[0-9]{1,9})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is stored of a device beside its measurements; None is not known."""

    vendor: str | None
    model: str | None
    device_index: int | None
    mig_profile: str | None
    sm_share_ratio: float | None
    memory_share_ratio: float | None
    driver_version: str | None
    labels_json: str | None
    memory_total_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Whom a label set speaks of."""

    node: str
    device_uuid: str
    instance_id: int | None
    dialect: Dialect
    holder: Holder | None
    holding: Holding | None
    """The holder as an allocation builder takes it."""
    facts: Facts
    is_shadow: bool
    """A partition of which the exporter tells nothing that partition 0 does not tell better."""
    is_guest: bool
    """A virtual function, which may read 0 where it may not read at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where labels were read, and what is known beside them."""

    target: str
    """The scraped address or file, which names the node where the labels do not."""
    node: str | None = None
    """The target's node, where discovery knows it."""
    own_pod: str | None = None
    """The exporter's own pod."""


SettleNode = Callable[[str, str | None, str], str]
"""Given the device, the node that is named (None: none) and the node that the target suggests,
returns the one node to keep."""
Aliases = Mapping[str, str]
"""The device's UUID or index by ``told_as``, for series that name only the other."""


def identify(
    labels: Mapping[str, str],
    *,
    dialect: Dialect,
    place: Place,
    settle_node: SettleNode,
    aliases: Aliases,
) -> Identity | None:
    """Return whom the labels speak of; None where they name neither a UUID nor a GPU index."""
    uuid, index = uuid_and_index(labels, dialect=dialect)
    if dialect.has_partial_rows:
        uuid, index = _completed(labels, uuid=uuid, index=index, dialect=dialect, aliases=aliases)
    if uuid is None and index is None:
        return None
    suggested = _address_host(meaning(labels.get("instance")) or "") or target_host(place.target)
    node = place.node or settle_node(
        uuid or f"{suggested}/{index}", named_node(labels, host_labels=dialect.host), suggested
    )
    key = (uuid or f"{node}/{index}", _integer(first_meaning(labels, dialect.instance)))
    found = holder(labels, spellings=dialect.pods, own_pod=place.own_pod)
    facts = _facts(labels, dialect=dialect, key=key, index=index)
    return Identity(
        node=node,
        device_uuid=key[0],
        instance_id=key[1],
        dialect=dialect,
        holder=found,
        holding=_holding(labels, found=found, node=node, key=key, dialect=dialect),
        facts=facts,
        is_shadow=bool(_partition(labels, dialect=dialect)),
        is_guest=dialect.partition is not None and _GUEST.search(facts.model or "") is not None,
    )


def told_as(labels: Mapping[str, str], *, dialect: Dialect) -> str | None:
    """Return under which word a label set with UUID and index is known to those with only one.

    None where the labels do not name both. A UUID that says nothing is a word all the same: it
    names the one device that has it.
    """
    uuid, index = uuid_and_index(labels, dialect=dialect)
    if index is None:
        return None
    return _alias_of_index(labels, index) if uuid is not None else _alias_of_nothing(labels)


def _completed(
    labels: Mapping[str, str],
    *,
    uuid: str | None,
    index: int | None,
    dialect: Dialect,
    aliases: Aliases,
) -> tuple[str | None, int | None]:
    """Return UUID and index, the one that is missing taken from what other series told."""
    if uuid is None and index is not None:
        return aliases.get(_alias_of_index(labels, index)), index
    if uuid is None and first_meaning(labels, dialect.uuid) is not None:
        known = aliases.get(_alias_of_nothing(labels))
        return None, int(known) if known else None
    return uuid, index


def _alias_of_index(labels: Mapping[str, str], index: int) -> str:
    return f"{labels.get('instance', '')}#{index}"


def _alias_of_nothing(labels: Mapping[str, str]) -> str:
    return f"{labels.get('instance', '')}#"


def named_node(
    labels: Mapping[str, str], *, host_labels: tuple[str, ...] = ("Hostname", "hostname")
) -> str | None:
    """Return the node that the labels name, or None.

    ``Hostname`` is the exporter pod's name unless the exporter was told its node, ``localhost``
    with a remote host engine, and a container's id in plain Docker: none of these is a node.
    """
    host = first_meaning(labels, host_labels)
    if host is not None and not _is_no_node(host):
        return host
    return meaning(labels.get("node")) or meaning(labels.get("kubernetes_node"))


def target_host(target: str) -> str:
    """Return the host of an address; a loopback address keeps its port, a file is its name."""
    parts = urlsplit(target)
    if parts.scheme in {"http", "https"} and parts.hostname:
        return _address_host(parts.netloc.rpartition("@")[2]) or parts.netloc
    name = _address_host(target) or target.rpartition("/")[2] or target
    return name.removesuffix(".txt").removesuffix(".prom")


def _address_host(address: str) -> str | None:
    """Return the host of ``host:port``; None for a loopback host or what is no such address."""
    found = re.fullmatch(r"(?P<host>\[[0-9a-fA-F:.]+\]|[^\s:/]+)(:\d+)?", address)
    if found is None or _LOOPBACK.fullmatch(found["host"].lower()):
        return None
    return found["host"].strip("[]")


def _is_no_node(host: str) -> bool:
    return (
        _LOOPBACK.fullmatch(host.lower()) is not None
        or EXPORTER_NAME.search(host) is not None
        or _CONTAINER_ID.fullmatch(host) is not None
    )


def uuid_and_index(labels: Mapping[str, str], *, dialect: Dialect) -> tuple[str | None, int | None]:
    """Return the device's UUID and index as these labels tell them; None is not told.

    All zeros, as virtual functions and cleaned-up texts print them, are no UUID.
    """
    uuid = first_meaning(labels, dialect.uuid)
    if uuid is not None and _NO_UUID.fullmatch(uuid.removeprefix("GPU-")):
        uuid = None
    if uuid is not None and dialect.uuid_prefix and _BARE_UUID.fullmatch(uuid):
        uuid = dialect.uuid_prefix + uuid
    return uuid, _integer(first_meaning(labels, dialect.index))


def _integer(text: str | None) -> int | None:
    """Return the whole number that a label holds; None where it is none a column could keep."""
    known = meaning(text)
    return int(known) if known and _SMALL_NUMBER.fullmatch(known) else None


def _facts(
    labels: Mapping[str, str], *, dialect: Dialect, key: DeviceKey, index: int | None
) -> Facts:
    model = first_meaning(labels, dialect.model)
    profile = None if key[1] is None else first_meaning(labels, dialect.profile)
    share = mig_share(profile, model=model)
    kept = {
        kept_name: labels[name]
        for name, kept_name in dialect.kept.items()
        if meaning(labels.get(name)) is not None
    }
    return Facts(
        vendor=dialect.vendor or _maker(key[0], model or ""),
        model=model,
        device_index=index,
        mig_profile=profile,
        sm_share_ratio=_share(labels.get(dialect.shares[0]), share.sm_ratio),
        memory_share_ratio=_share(labels.get(dialect.shares[1]), share.memory_ratio),
        driver_version=first_meaning(labels, dialect.driver),
        labels_json=json.dumps(kept, sort_keys=True) if kept else None,
    )


def _share(told: str | None, of_profile: float | None) -> float | None:
    """Return the share that a label tells, else the one that the profile's name means."""
    known = meaning(told)
    if known is None or _SHARE.fullmatch(known) is None:
        return of_profile
    return float(known)


def _maker(*names: str) -> str | None:
    """Return who made the device, as its UUID's or model's beginning tells."""
    return next(
        (maker for start, maker in MAKERS.items() if any(name.startswith(start) for name in names)),
        None,
    )


def _holding(
    labels: Mapping[str, str], *, found: Holder | None, node: str, key: DeviceKey, dialect: Dialect
) -> Holding | None:
    if found is None:
        return None
    partition = _partition(labels, dialect=dialect)
    return Holding(
        node=node,
        device_uuid=key[0],
        instance_id=partition or key[1],
        replica=_replica(first_meaning(labels, dialect.replica)),
        namespace=found.namespace,
        pod=found.pod,
        container=found.container,
        claim=_claim(labels, dialect=dialect),
        resource=first_meaning(labels, dialect.resource),
        source=dialect.holding_source,
        pod_uid=first_meaning(labels, dialect.pod_uid),
    )


def _partition(labels: Mapping[str, str], *, dialect: Dialect) -> int | None:
    return None if dialect.partition is None else _integer(labels.get(dialect.partition))


def _replica(text: str | None) -> int | None:
    """Return the number of a share, written ``3`` or ``GPU-…::3``."""
    matched = _REPLICA.fullmatch(text or "")
    return None if matched is None else int(matched["number"])


def _claim(labels: Mapping[str, str], *, dialect: Dialect) -> str | None:
    """Return the claim as ``namespace/name``; a label may hold both already."""
    namespace_label, name_label = dialect.claim
    name, namespace = meaning(labels.get(name_label)), meaning(labels.get(namespace_label))
    if name is None or namespace is None:
        return name
    return f"{namespace}/{name}"
