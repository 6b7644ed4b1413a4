"""Every running Job of a namespace seen as idle for hours and its owner as warned: all is due."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from enforcer.actuators.fields import mapping_at, target_of, text_at
from enforcer.entries import past_actions
from enforcer.facts import Notice, PodFact, Snapshot, Workload
from enforcer.gateway.port import Gateway, KubernetesObject
from enforcer.ledger import Ledger
from enforcer.policies.model import Policy
from steward.period import Period
from tests.support import enforcer_judged as judged
from tests.support.enforcer_plan import CLUSTER, HOUR, LIMITS, caps, node, policy, snapshot

PER_ROUND: Final = 2
IDLE_FOR: Final = 3 * HOUR
TOLD_AGO: Final = 2 * HOUR


@dataclass(slots=True)
class IdleJobs:
    """Sees a namespace's Jobs through a gateway, and acts on them through the ledger."""

    gateway: Gateway
    ledger: Ledger
    namespace: str

    def policies(self, _now: datetime) -> tuple[Policy, ...]:
        """Return a policy that suspends a few idle workloads a round."""
        return (policy(limits=caps(workloads_per_round=PER_ROUND)),)

    def snapshot(self, _policies: tuple[Policy, ...], now: datetime) -> Snapshot:
        """Return the running jobs as workloads."""
        found = self.gateway.list(api_version="batch/v1", kind="Job", namespace=self.namespace)
        running = [one for one in found if mapping_at(one, "spec").get("suspend") is not True]
        workloads = tuple(sorted((_workload(one, now) for one in running), key=lambda w: w.uid))
        return replace(
            snapshot(*workloads),
            snapshot_id=f"{now.isoformat()}-{self.ledger.actor}",
            taken_at=now,
            rooms=(node("n1", total=100),),
            notices=tuple(_notice(one, now) for one in workloads),
            past_actions=past_actions(self.ledger.entries().all()),
        )


def _workload(thing: KubernetesObject, now: datetime) -> Workload:
    target = target_of(thing)
    device = replace(judged.QUIET_DEVICE, newest_at=now)
    evidence = replace(
        judged.evidence(device),
        window=Period.before(now, LIMITS.window),
        observed_idle_s=IDLE_FOR.total_seconds(),
        idle_since_at=now - IDLE_FOR,
    )
    pod = PodFact(
        uid=f"pod-of-{target.uid}",
        name=target.name,
        node="n1",
        phase="Running",
        gpu_count=1,
        labels={},
        has_controller=True,
    )
    return judged.workload(
        evidence,
        cluster=CLUSTER,
        uid=target.uid,
        object_uid=target.uid,
        namespace=target.namespace,
        name=target.name,
        resource_version=text_at(thing, "metadata", "resourceVersion"),
        created_at=now - 24 * HOUR,
        admitted_at=now - 24 * HOUR,
        pods=(pod,),
    )


def _notice(workload: Workload, now: datetime) -> Notice:
    return Notice(
        workload_uid=workload.uid,
        rule="idle",
        delivered_at=now - TOLD_AGO,
        idle_since_at=now - IDLE_FOR,
        act_at=now - timedelta(minutes=1),
    )
