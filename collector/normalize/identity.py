"""Which device, on which node, a label set speaks of.

A device is its UUID, or ``node/index`` where the exporter gives none; a MIG instance is the board's
UUID and the GPU instance id. A node is named by the exporter only where it knows its node.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from collector.normalize.mig import mig_share
from collector.normalize.pods import EXPORTER_NAME, Holder, holder
from collector.normalize.sentinels import meaning

VENDOR: Final = "nvidia"
_KEPT_LABELS: Final = (
    "pci_bus_id",
    "DCGM_FI_CUDA_DRIVER_VERSION",
    "DCGM_FI_DEV_BRAND",
    "DCGM_FI_DEV_MINOR_NUMBER",
    "DCGM_FI_DEV_SERIAL",
    "DCGM_FI_DEV_VBIOS_VERSION",
    "DCGM_FI_NVML_VERSION",
)
_NO_UUID: Final = re.compile(r"[0-]*")
_SMALL_NUMBER: Final = re.compile(r"[0-9]{1,9}")
_CONTAINER_ID: Final = re.compile(r"[0-9a-f]{12}")
_LOOPBACK: Final = re.compile(r"localhost|127\.[0-9.]+|\[?::1\]?|0\.0\.0\.0")

DeviceKey = tuple[str, int | None]
"""Device UUID and MIG instance; None is the board itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is stored of a device beside its measurements; None is not known."""

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
    holder: Holder | None
    facts: Facts


def identify(
    labels: Mapping[str, str], *, target: str, settle_node: Callable[[str, str | None, str], str]
) -> Identity | None:
    """Return whom the labels speak of; None where they name neither a UUID nor a GPU index.

    Args:
        labels: one series' labels.
        target: the scraped address or file, which names the node where the labels do not.
        settle_node: given the device, the node the exporter names (None: it does not) and the
            node that the target suggests, returns the one node to keep.
    """
    uuid, index = _uuid(labels), _integer(labels.get("gpu"))
    if uuid is None and index is None:
        return None
    suggested = _address_host(meaning(labels.get("instance")) or "") or target_host(target)
    node = settle_node(uuid or f"{suggested}/{index}", named_node(labels), suggested)
    return Identity(
        node=node,
        device_uuid=uuid or f"{node}/{index}",
        instance_id=_integer(labels.get("GPU_I_ID")),
        holder=holder(labels),
        facts=_facts(labels, index),
    )


def named_node(labels: Mapping[str, str]) -> str | None:
    """Return the node that the labels name, or None.

    ``Hostname`` is the exporter pod's name unless the exporter was told its node, ``localhost``
    with a remote host engine, and a container's id in plain Docker: none of these is a node.
    """
    host = meaning(labels.get("Hostname")) or meaning(labels.get("hostname"))
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


def _uuid(labels: Mapping[str, str]) -> str | None:
    uuid = meaning(labels.get("UUID")) or meaning(labels.get("uuid"))
    if uuid is None or _NO_UUID.fullmatch(uuid.removeprefix("GPU-")):
        return None
    return uuid


def _integer(text: str | None) -> int | None:
    """Return the whole number that a label holds; None where it is none a column could keep."""
    known = meaning(text)
    return int(known) if known and _SMALL_NUMBER.fullmatch(known) else None


def _facts(labels: Mapping[str, str], index: int | None) -> Facts:
    model = meaning(labels.get("modelName")) or meaning(labels.get("model_name"))
    profile = meaning(labels.get("GPU_I_PROFILE"))
    share = mig_share(profile, model=model)
    kept = {name: labels[name] for name in _KEPT_LABELS if meaning(labels.get(name)) is not None}
    return Facts(
        model=model,
        device_index=index,
        mig_profile=profile,
        sm_share_ratio=share.sm_ratio,
        memory_share_ratio=share.memory_ratio,
        driver_version=meaning(labels.get("DCGM_FI_DRIVER_VERSION"))
        or meaning(labels.get("DCGM_FI_SYSTEM_DRIVER_VERSION")),
        labels_json=json.dumps(kept, sort_keys=True) if kept else None,
    )
