"""Telling owners: what was seen, what will happen and when, what is lost, and how to say no.

A notice counts only if it was delivered. Names of what is created come from the act, so that a
notice sent again after a crash is the same one.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

from enforcer.decisions import Decision, Finding
from enforcer.enrich import subject_target
from enforcer.entries import instant_text
from enforcer.facts import Workload
from enforcer.gateway.port import Gateway, KubernetesObject, Target, Verb, Write
from steward.errors import ClusterError, ConflictError, FencedError
from steward.units import SECONDS_PER_MINUTE

NOTICE_ANNOTATION: Final = "steward/idle-notice"
"""Set on a workload's object: when its GPUs may be taken, as an instant in UTC."""
EVENT_REASON: Final = "GpuIdleWarning"
COMPONENT: Final = "gpu-steward"
_NAME_LENGTH: Final = 200
_DIGEST_LENGTH: Final = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerWarning:
    """One thing to tell an owner."""

    action_id: str
    workload: Workload
    decision: Decision
    told_at: datetime
    act_at: datetime
    """When GPUs may be taken; where none will be, the time of telling."""

    @property
    def text(self) -> str:
        """Return the sentences, in English."""
        return " ".join(_sentences(self))


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What became of a notice on one channel."""

    channel: str
    is_delivered: bool
    detail: str | None


class Channel(Protocol):
    """One way to reach owners."""

    @property
    def name(self) -> str:
        """Return the word under which its notices are kept."""
        ...

    def tell(self, warning: OwnerWarning) -> Told:
        """Deliver it, at most once per act; a failure is told, not raised."""
        ...

    def was_told(self, action_id: str, target: Target) -> bool:
        """Return whether the notice of an act is known to have been delivered."""
        ...


class EventChannel:
    """Kubernetes Events beside the workload's object, as ``kubectl describe`` shows them."""

    name: Final = "kubernetes_event"

    def __init__(self, gateway: Gateway) -> None:
        """Keep the way to the cluster."""
        self._gateway = gateway

    def tell(self, warning: OwnerWarning) -> Told:
        """Create the Event; one that is there was delivered before."""
        try:
            self._gateway.write(_event(warning))
        except ConflictError:
            return Told(channel=self.name, is_delivered=True, detail="it was there already")
        except FencedError:
            raise
        except ClusterError as error:
            return Told(channel=self.name, is_delivered=False, detail=error.message)
        return Told(channel=self.name, is_delivered=True, detail=None)

    def was_told(self, action_id: str, target: Target) -> bool:
        """Return whether the Event of an act exists."""
        event = _event_target(action_id, target.namespace or "", target.name)
        return self._gateway.read(event) is not None


def annotate(gateway: Gateway, warning: OwnerWarning) -> str | None:
    """Mark the workload's object with the instant from which GPUs may be taken.

    A mark beside the notice: whether it can be written decides nothing. What is wrong is returned.
    """
    annotations: KubernetesObject = {NOTICE_ANNOTATION: instant_text(warning.act_at)}
    write = Write(
        verb=Verb.PATCH,
        target=subject_target(warning.workload),
        body={"metadata": {"annotations": annotations}},
        resource_version=None,
    )
    try:
        gateway.write(write)
    except FencedError:
        raise
    except ClusterError as error:
        return error.message
    return None


def _event(warning: OwnerWarning) -> Write:
    workload = warning.workload
    target = _event_target(warning.action_id, workload.namespace, workload.name)
    at = warning.told_at.strftime("%Y-%m-%dT%H:%M:%SZ")
    body: KubernetesObject = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": target.name, "namespace": workload.namespace},
        "involvedObject": {
            "apiVersion": workload.api_version,
            "kind": workload.kind,
            "namespace": workload.namespace,
            "name": workload.name,
            "uid": workload.object_uid,
        },
        "reason": EVENT_REASON,
        "message": warning.text,
        "type": "Warning",
        "source": {"component": COMPONENT},
        "firstTimestamp": at,
        "lastTimestamp": at,
        "count": 1,
    }
    return Write(verb=Verb.CREATE, target=target, body=body, resource_version=None)


def _event_target(action_id: str, namespace: str, name: str) -> Target:
    digest = hashlib.sha256(action_id.encode()).hexdigest()[:_DIGEST_LENGTH]
    return Target(
        api_version="v1",
        kind="Event",
        namespace=namespace,
        name=f"{name[:_NAME_LENGTH]}.{digest}",
        uid=None,
    )


def _sentences(warning: OwnerWarning) -> list[str]:
    """Return what was seen, what follows, what is lost and what to do."""
    workload, decision = warning.workload, warning.decision
    minutes = int(decision.judgement.observed_idle_s // SECONDS_PER_MINUTE)
    seen = f"{workload.kind} {workload.name} holds {workload.gpu_count:g} GPUs"
    seen += f", idle for {minutes} min of observed time." if minutes else "."
    if warning.act_at <= warning.told_at:
        return [seen, "Please let them go if they are not needed."]
    act_at = warning.act_at.strftime("%Y-%m-%d %H:%M UTC")
    return [
        seen,
        f"From {act_at} on it may be stopped (rule {decision.rule} of policy {decision.policy}).",
        _loss(workload, decision),
        "Using the GPUs, or an exemption, prevents it.",
    ]


def _loss(workload: Workload, decision: Decision) -> str:
    """Return what the owner would lose."""
    lost = "what its pods hold in memory and on local disks is lost"
    if Finding.HELD_MEMORY in decision.judgement.findings:
        lost = f"{lost}, with what is kept in GPU memory"
    if workload.checkpoint_at is None:
        return f"Then {lost}."
    at = workload.checkpoint_at.strftime("%Y-%m-%d %H:%M UTC")
    return f"Then {lost}; its newest checkpoint is of {at}."
