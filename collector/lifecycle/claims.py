"""Dynamic resource allocation: who claims which device, and which devices there are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from collector.holdings import Holding, HoldingSource
from collector.lifecycle.devices import (
    NO_INSTANCE,
    Identity,
    Offer,
    Place,
    boards,
    identity,
    is_accelerator_driver,
    memory_of,
    offers,
    text_of,
    whole_of,
)
from collector.lifecycle.memory import ThingEntry
from collector.lifecycle.output import Ledger
from collector.lifecycle.quantities import whole
from collector.lifecycle.things import Things
from collector.lifecycle.view import View
from collector.sources.kubernetes.objects_cluster import (
    AllocatedDevice,
    ClaimConsumer,
    ResourceClaim,
    ResourceSlice,
)
from collector.sources.kubernetes.resources import RESOURCE_CLAIMS, RESOURCE_SLICES

_PODS: Final = "pods"
_VENDORS: Final = ("nvidia", "amd", "intel", "huawei")
_NO_CONSUMER: Final = ClaimConsumer()
_MARK: Final = "\x1f"


class Instances(Protocol):
    """Answers which GPU instance a partition of a board is."""

    def instance_of(
        self,
        *,
        board_uuid: str,
        mig_uuid: str | None,
        profile: str | None,
        placement_start: int | None,
    ) -> int | None:
        """Return the GPU instance id; None where it is not known."""
        ...


class NoInstances:
    """Knows no instance: partitions stay without a holder, and that is said."""

    def instance_of(
        self,
        *,
        board_uuid: str,
        mig_uuid: str | None,
        profile: str | None,
        placement_start: int | None,
    ) -> int | None:
        """Return None."""
        del board_uuid, mig_uuid, profile, placement_start
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """One device of one claim, used by one pod or by none yet."""

    device: AllocatedDevice
    identity: Identity
    consumer: ClaimConsumer
    instance_id: int | None

    @property
    def reason(self) -> str | None:
        """Return why the device cannot be given to its holder."""
        is_part = self.identity.parent_uuid is not None
        missing = NO_INSTANCE if is_part and self.instance_id is None else None
        return self.identity.reason or missing

    @property
    def part(self) -> str:
        """Return a name that no other use of the claim has."""
        device, consumer = self.device, self.consumer
        names = (device.request, device.driver, device.pool, device.device)
        return _MARK.join((*names, consumer.name, consumer.uid))


class Claims:
    """Tells claims and the devices that drivers offer."""

    def __init__(self, ledger: Ledger, *, things: Things, view: View, instances: Instances) -> None:
        """Begin with what is remembered."""
        self._ledger = ledger
        self._things = things
        self._view = view
        self._instances = instances
        self._offers: dict[Place, Offer] | None = None
        self._boards: Mapping[str, frozenset[str]] | None = None

    def see_slices(self) -> None:
        """Tell which whole boards are on offer, and which are no longer."""
        self._offers = self._boards = None
        present: set[str] = set()
        for place, offer, uuid in boards(self._known()):
            present.add(_device_key(uuid))
            self._tell_board(place, offer, uuid)
        for key in [each for each in self._things.uids() if each.startswith("device:")]:
            if key not in present:
                self._end_board(key)

    def see(self, claim: ResourceClaim) -> None:
        """Tell what is new about a claim: its devices and who may use them."""
        uses = tuple(self._uses(claim))
        entry = self._things.entry(RESOURCE_CLAIMS, claim.metadata)
        parts = {each.part: self._row(claim, each) for each in uses}
        if not parts and not _is_allocated(claim):
            parts = {"": self._pending(claim)}
        words = [word for name in sorted(parts) for word in (name, *parts[name].values())]
        if not self._things.is_news(entry, *words):
            return
        gone = [name for name in entry.parts if name not in parts and (name or not parts)]
        entry.parts = tuple(sorted(parts))
        for row in parts.values():
            self._ledger.add_observed("device_claim", **row)
        self._release(claim.metadata.uid, entry, gone, state="released")
        self._things.save(claim.metadata.uid, entry)

    def end(self, uid: str) -> None:
        """Tell that a claim is gone."""
        entry = self._things.remembered(uid)
        if entry is not None:
            self._release(uid, entry, entry.parts, state="deleted")
            self._things.forget(uid)

    def holdings(self) -> Mapping[str, tuple[Holding, ...]]:
        """Return who holds what, by node; access for administrators is marked as such."""
        by_node: dict[str, list[Holding]] = {}
        for claim in self._view.all(RESOURCE_CLAIMS, ResourceClaim):
            for use in self._uses(claim):
                held = _holding(claim, use)
                if held is not None:
                    by_node.setdefault(held.node, []).append(held)
        return {node: tuple(found) for node, found in by_node.items()}

    def boards(self) -> Mapping[str, frozenset[str]]:
        """Return the UUIDs of the whole boards that drivers offer, by node."""
        if self._boards is None:
            by_node: dict[str, set[str]] = {}
            for _, offer, uuid in boards(self._known()):
                if offer.node is not None:
                    by_node.setdefault(offer.node, set()).add(uuid)
            self._boards = {node: frozenset(found) for node, found in by_node.items()}
        return self._boards

    def _known(self) -> dict[Place, Offer]:
        if self._offers is None:
            self._offers = offers(self._view.all(RESOURCE_SLICES, ResourceSlice))
        return self._offers

    def _uses(self, claim: ResourceClaim) -> Iterator[Use]:
        status = claim.status
        if status is None or status.allocation is None:
            return
        pods = [each for each in status.reserved_for or () if each.resource == _PODS]
        for device in status.allocation.devices.results or ():
            if not is_accelerator_driver(device.driver):
                continue
            found = identity((device.driver, device.pool, device.device), self._known())
            for consumer in pods or (_NO_CONSUMER,):
                yield Use(
                    device=device,
                    identity=found,
                    consumer=consumer,
                    instance_id=self._instance(found),
                )

    def _instance(self, found: Identity) -> int | None:
        if found.parent_uuid is None:
            return None
        return self._instances.instance_of(
            board_uuid=found.parent_uuid,
            mig_uuid=found.device_uuid,
            profile=found.mig_profile,
            placement_start=found.placement_start,
        )

    def _row(self, claim: ResourceClaim, use: Use) -> dict[str, object]:
        return {
            **self._pending(claim),
            "driver": use.device.driver,
            "pool": use.device.pool,
            "device": use.device.device,
            "request": use.device.request,
            "device_uuid": use.identity.device_uuid,
            "parent_uuid": use.identity.parent_uuid,
            "mig_profile": use.identity.mig_profile,
            "is_admin_access": bool(use.device.admin_access),
            "pod": use.consumer.name or None,
            "pod_uid": use.consumer.uid or None,
            "state": "reserved" if use.consumer.uid else "allocated",
            "reason": use.reason,
        }

    def _pending(self, claim: ResourceClaim) -> dict[str, object]:
        return {
            "claim_uid": claim.metadata.uid,
            "namespace": claim.metadata.namespace or "",
            "claim": claim.metadata.name,
            "state": "pending",
        }

    def _release(
        self, uid: str, entry: ThingEntry, names: tuple[str, ...] | list[str], *, state: str
    ) -> None:
        for name in names:
            known = dict(zip(_PART_COLUMNS, name.split(_MARK), strict=False)) if name else {}
            self._ledger.add_observed(
                "device_claim",
                claim_uid=uid,
                namespace=entry.namespace or "",
                claim=entry.name,
                state=state,
                **{column: text or None for column, text in known.items()},
            )

    def _tell_board(self, place: Place, offer: Offer, uuid: str) -> None:
        driver = place[0]
        key, memory = _device_key(uuid), memory_of(offer.device)
        row: dict[str, object] = {
            "node": offer.node or place[1],
            "device_uuid": uuid,
            "vendor": next((each for each in _VENDORS if each in driver), None),
            "model": text_of(offer.device, "productName"),
            "device_index": whole_of(offer.device, "index"),
            "memory_total_bytes": whole(memory),
            "is_present": True,
            "driver_version": text_of(offer.device, "driverVersion"),
        }
        entry = self._things.remembered(key) or ThingEntry(
            resource=RESOURCE_SLICES.name, name=uuid, namespace=offer.node or place[1]
        )
        if self._things.is_news(entry, *row.values()):
            self._ledger.add_observed("device", **row)
            self._things.save(key, entry)

    def _end_board(self, key: str) -> None:
        entry = self._things.remembered(key)
        if entry is not None:
            self._ledger.add_observed(
                "device", node=entry.namespace, device_uuid=entry.name, is_present=False
            )
            self._things.forget(key)


_PART_COLUMNS: Final = ("request", "driver", "pool", "device", "pod", "pod_uid")


def _device_key(uuid: str) -> str:
    return f"device:{uuid}"


def _is_allocated(claim: ResourceClaim) -> bool:
    return claim.status is not None and claim.status.allocation is not None


def _holding(claim: ResourceClaim, use: Use) -> Holding | None:
    """Return what a use holds, as far as that is known; None where no pod uses the claim."""
    found, consumer, name = use.identity, use.consumer, use.device.device
    if not consumer.uid:
        return None
    node = found.node or use.device.pool
    return Holding(
        node=node,
        device_uuid=found.parent_uuid or found.device_uuid or f"{node}/{name}",
        instance_id=use.instance_id,
        replica=None,
        namespace=claim.metadata.namespace,
        pod=consumer.name,
        container=None,
        claim=f"{claim.metadata.namespace}/{claim.metadata.name}",
        resource=None,
        source=HoldingSource.DRA,
        pod_uid=consumer.uid,
        is_admin_access=bool(use.device.admin_access),
        unresolved=None if use.reason is None else name,
    )
