"""What the node agent says of itself and of GPUs that it cannot read; pure.

The names are those of ``collector.agent.names``, which is not loaded for them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from collector.doctor.codes import Code
from collector.doctor.finding import Finding, counted, gap, named
from collector.doctor.target_view import TargetView

POD_RESOURCES_UP: Final = "steward_agent_pod_resources_up"
"""0 with the label ``reason`` where the kubelet says nothing."""
DRIVER_UP: Final = "steward_agent_driver_up"
DEVICE_UP: Final = "steward_gpu_up"
"""0 with the labels ``uuid`` and ``reason`` for a GPU that does not answer."""
UNRESOLVED: Final = "steward_agent_unresolved_devices"
_SOCKET_REMEDIES: Final = {
    "absent": "mount /var/lib/kubelet/pod-resources into the agent; without a kubelet it is right",
    "no_permission": "let the agent run as root, which the kubelet's socket asks for",
    "unavailable": "start the kubelet",
    "timeout": "look why the kubelet is slow",
}


def agent_findings(view: TargetView) -> Iterator[Finding]:
    """Yield what an agent says it cannot see; nothing for other exporters."""
    yield from _silent(view)
    yield from _socket(view)
    yield from _unresolved(view)


def is_agent(view: TargetView) -> bool:
    """Tell whether the target is an agent, which knows what the kubelet says."""
    return POD_RESOURCES_UP in view.names


def is_driver_away(view: TargetView) -> bool:
    """Tell whether an agent says that the driver does not answer."""
    return any(value == 0 for _, value in view.values_of(DRIVER_UP))


def _silent(view: TargetView) -> Iterator[Finding]:
    silent = {
        f"{labels.get('uuid') or labels.get('gpu') or '?'} ({labels.get('reason') or '?'})"
        for labels, value in view.values_of(DEVICE_UP)
        if value == 0
    }
    if silent:
        yield gap(
            Code.DEVICES_SILENT,
            view.url,
            message=f"the driver gets no answer from {named(silent)}",
            remedy="look at the kernel's log for XID errors; a lost GPU comes back with a reset or "
            "a restart of the machine",
        )


def _socket(view: TargetView) -> Iterator[Finding]:
    for labels, value in view.values_of(POD_RESOURCES_UP):
        if value == 0:
            reason = labels.get("reason") or "?"
            yield gap(
                Code.NO_PODRESOURCES,
                view.url,
                message=f"the agent has no word from the kubelet's PodResources socket ({reason}): "
                "who holds a device is unknown",
                remedy=_SOCKET_REMEDIES.get(reason, "look into the log of the agent"),
            )


def _unresolved(view: TargetView) -> Iterator[Finding]:
    count = sum(value for _, value in view.values_of(UNRESOLVED))
    if count:
        yield gap(
            Code.DEVICES_UNRESOLVED,
            view.url,
            message=f"containers hold {counted(round(count), 'device')} not among the node's GPUs: "
            "device-time without a device",
            remedy="the agent's log names them; restart the device plugin where its list is old",
        )
