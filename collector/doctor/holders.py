"""Whether a target tells who holds its devices; pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from collector.doctor.agent_words import is_agent
from collector.doctor.codes import Code
from collector.doctor.finding import Finding, counted, gap, note
from collector.doctor.target_view import TargetView

POD_LABELS: Final = frozenset({"pod", "exported_pod", "pod_name", "podname"})
_EXPORTER_REMEDY: Final = (
    "set DCGM_EXPORTER_KUBERNETES=true and mount /var/lib/kubelet/pod-resources, or run `steward "
    "agent`"
)


def holder_findings(view: TargetView) -> Iterator[Finding]:
    """Yield why it is not known who holds a target's devices, and what several hold together."""
    if not (view.scrape.holdings or is_agent(view)):
        yield from _nobody(view)
    yield from _shared(view)


def _nobody(view: TargetView) -> Iterator[Finding]:
    labels = {name for _, block, *_ in view.exposition.samples for name in block.pairs}
    if not labels.isdisjoint(POD_LABELS):
        yield note(
            Code.NO_HOLDER_TOLD,
            view.url,
            message="its labels for pods are all empty: no device is held, or the exporter cannot "
            "reach the kubelet's PodResources socket",
            remedy="where pods do hold devices, check the mount of /var/lib/kubelet/pod-resources",
        )
    elif view.is_in_kubernetes:
        yield gap(
            Code.NO_PODRESOURCES,
            view.url,
            message="it is in Kubernetes and has no labels for pods: who holds a device is unknown",
            remedy=_EXPORTER_REMEDY,
        )
    else:
        yield gap(
            Code.POD_LABELS_ABSENT,
            view.url,
            message="it has no labels for pods: who holds a device is unknown",
            remedy=f"{_EXPORTER_REMEDY}; outside Kubernetes this is right",
        )


def _shared(view: TargetView) -> Iterator[Finding]:
    pods: defaultdict[tuple[str, int | None], set[tuple[str | None, str]]] = defaultdict(set)
    for one in view.scrape.holdings:
        pods[one.device_uuid, one.instance_id].add((one.namespace, one.pod))
    shared = [holders for holders in pods.values() if len(holders) > 1]
    if shared:
        held = "device is" if len(shared) == 1 else "devices are"
        most = max(map(len, shared))
        yield note(
            Code.DEVICES_SHARED,
            view.url,
            message=f"{len(shared):,} {held} held by several pods at the same time (time slicing, "
            f"MPS), up to {counted(most, 'pod')}: what each of them uses is not told, and each is "
            "given an equal share",
        )
