"""How many devices a pod gets by its claims: those allocated, else those wished for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from collector.lifecycle.devices import identity, is_accelerator_driver
from collector.lifecycle.requests import Request
from collector.lifecycle.view import View
from collector.normalize.mig import mig_share
from collector.sources.kubernetes.objects import Pod, PodSpec
from collector.sources.kubernetes.objects_cluster import (
    AllocatedDevice,
    DeviceRequest,
    DeviceWish,
    ResourceClaim,
)
from collector.sources.kubernetes.resources import RESOURCE_CLAIMS
from steward.units import GPU_MILLI


def with_claims(request: Request, pod: Pod, view: View) -> Request:
    """Return the request with the devices of the pod's claims added.

    The count is None where a claim is not known yet and nothing else asks for a GPU.
    """
    if not pod.spec.resource_claims:
        return request
    claims = [_find(view, pod.metadata.namespace, name) for name in _names(pod)]
    found = [piece for claim in claims if claim is not None for piece in _pieces(claim)]
    count = (request.gpu_count or 0) + len(found)
    is_known = len(claims) == len(pod.spec.resource_claims) and None not in claims
    if not count:
        return replace(request, gpu_count=0 if is_known else None)
    classes = [request.resource, *(name for name, _ in found)]
    return replace(
        request,
        gpu_count=count,
        gpu_milli=_mean(request, [share for _, share in found]),
        resource="|".join(sorted({name for name in classes if name})) or None,
    )


def is_open(spec: PodSpec) -> bool:
    """Return whether claims, which a template does not show, may bring GPUs."""
    return bool(spec.resource_claims)


def _names(pod: Pod) -> Iterator[str]:
    made = {
        each.name: each.resource_claim_name for each in pod.status.resource_claim_statuses or ()
    }
    for each in pod.spec.resource_claims or ():
        name = each.resource_claim_name or made.get(each.name)
        if name is not None:
            yield name


def _find(view: View, namespace: str | None, name: str) -> ResourceClaim | None:
    return view.find(RESOURCE_CLAIMS, ResourceClaim, name=name, namespace=namespace)


def _pieces(claim: ResourceClaim) -> Iterable[tuple[str, int | None]]:
    """Yield driver or class, and thousandths of a GPU, of each device of a claim."""
    status = claim.status
    if status is None or status.allocation is None:
        return [piece for each in claim.spec.devices.requests or () for piece in _wished(each)]
    results = status.allocation.devices.results or ()
    held = [each for each in results if not each.admin_access]
    return [(each.driver, _share(each)) for each in held if is_accelerator_driver(each.driver)]


def _wished(request: DeviceRequest) -> Iterator[tuple[str, int | None]]:
    first = (request.first_available or (None,))[0]
    plain = DeviceWish(
        device_class_name=request.device_class_name,
        count=request.count,
        admin_access=request.admin_access,
    )
    wish = request.exactly or first or plain
    name = wish.device_class_name
    if name is not None and is_accelerator_driver(name) and not wish.admin_access:
        for _ in range(1 if wish.count is None else wish.count):
            yield name, None


def _share(device: AllocatedDevice) -> int | None:
    """Return the size of a device by its name; None where its name does not say it."""
    found = identity((device.driver, device.pool, device.device), {})
    if found.mig_profile is not None:
        ratio = mig_share(found.mig_profile, model=None).sm_ratio
        return None if ratio is None else round(ratio * GPU_MILLI)
    return None if "mig" in device.device else GPU_MILLI


def _mean(request: Request, shares: list[int | None]) -> int | None:
    """Return the mean size of all pieces; None where one is not known."""
    own = [request.gpu_milli] * (request.gpu_count or 0)
    known = [share for share in (*own, *shares) if share is not None]
    return round(sum(known) / len(known)) if len(known) == len(own) + len(shares) else None
