"""One decision round over 10,000 workloads on 30,000 GPUs, from a warm snapshot.

Deciding and planning are timed apart: every workload gets its verdict and its decision, then the
plan is made for more than a thousand due steps, while 1,000 workloads of 40 shapes wait. The policy
is the shipped one, acting. Aim: 1 s for both together; where others use the machine, the seconds of
processor are what to look at. Peak memory is that of the process with the snapshot in it.
``--workloads 1000`` shrinks all of it.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from enforcer.decisions import Decision, Plan, Step, Verdict  # noqa: E402 - path set first
from enforcer.enrich import enriched  # noqa: E402 - path set first
from enforcer.facts import (  # noqa: E402 - path set first
    DeviceEvidence,
    Evidence,
    Health,
    NodeRoom,
    Notice,
    PodFact,
    QuotaUse,
    Snapshot,
    Workload,
)
from enforcer.gateway.memory import MemoryGateway  # noqa: E402 - path set first
from enforcer.gateway.port import KubernetesObject  # noqa: E402 - path set first
from enforcer.planning import plan_from  # noqa: E402 - path set first
from enforcer.policies.decide import decide  # noqa: E402 - path set first
from enforcer.policies.model import Mode, Policy  # noqa: E402 - path set first
from enforcer.policies.shipped import default_policy  # noqa: E402 - path set first
from steward.period import Period  # noqa: E402 - path set first

NOW: Final = datetime(2026, 6, 10, 12, tzinfo=UTC)
CLUSTER: Final = "c"
AIM_S: Final = 1.0
RUN_COUNT: Final = 5
GPUS_PER_WORKLOAD: Final = 3
GPUS_PER_NODE: Final = 8
TEAM_COUNT: Final = 100
MODELS: Final = ("A100", "H100", "H200")
CLASSES: Final = ("training", "training", "development", "inference")
IDLE_RATIO: Final = 0.3
UNKNOWN_RATIO: Final = 0.05
WAITING_RATIO: Final = 0.1
POD_SIZES: Final = (1, 2, 4, 8)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Seconds of one round."""

    decide_s: float
    plan_s: float
    processor_s: float

    @property
    def whole_s(self) -> float:
        """Return both together."""
        return self.decide_s + self.plan_s


def device(uuid: str, node: str, *, activity: float, coverage: float) -> DeviceEvidence:
    """Return what one GPU told."""
    is_idle = activity == 0
    return DeviceEvidence(
        device_uuid=uuid,
        instance_id=None,
        node=node,
        is_shared=False,
        coverage_ratio=coverage,
        newest_at=NOW - timedelta(seconds=30),
        profiling_peak_ratio=activity,
        busy_peak_ratio=activity,
        disagreement_ratio=0.0,
        own_busy_peak_ratio=None,
        power_peak_w=70.0 if is_idle else 600.0,
        power_idle_w=70.0,
        memory_used_peak_bytes=0 if is_idle else 2**36,
        memory_total_bytes=80 * 2**30,
        memory_change_bytes=0 if is_idle else 2**30,
        traffic_peak_bytes_per_s=0.0 if is_idle else 1e9,
        process_count_peak=0 if is_idle else 1,
    )


def holder(number: int, draw: Random) -> Workload:
    """Return a workload of three GPUs on one or two nodes."""
    uid = f"w{number:06}"
    first = number * GPUS_PER_WORKLOAD
    slots = range(first, first + GPUS_PER_WORKLOAD)
    nodes = [f"n{slot // GPUS_PER_NODE:05}" for slot in slots]
    luck = draw.random()
    is_idle = luck < IDLE_RATIO
    coverage = 0.5 if luck > 1 - UNKNOWN_RATIO else 1.0
    idle = timedelta(minutes=draw.randrange(30, 900)) if is_idle else timedelta()
    window = Period(NOW - timedelta(hours=1), NOW)
    return Workload(
        cluster=CLUSTER,
        uid=uid,
        api_version="batch/v1",
        kind="Job",
        namespace=f"team-{number % TEAM_COUNT:03}",
        name=uid,
        object_uid=uid,
        resource_version="1",
        tenant_id=f"team-{number % TEAM_COUNT:03}",
        owner=None,
        workload_class=CLASSES[number % len(CLASSES)],
        queue=f"queue-{number % TEAM_COUNT:03}",
        priority_class=None,
        priority=number % 3,
        labels={"app": uid},
        annotations={},
        namespace_labels={},
        gpu_models=(model_of(nodes[0]),),
        mig_profile=None,
        gpu_count=float(GPUS_PER_WORKLOAD),
        pods=tuple(
            PodFact(
                uid=f"{uid}-{at}",
                name=f"{uid}-{at}",
                node=node,
                phase="Running",
                gpu_count=nodes.count(node),
                labels={"app": uid},
                has_controller=True,
            )
            for at, node in enumerate(sorted(set(nodes)))
        ),
        is_gang=False,
        is_pending=False,
        created_at=NOW - timedelta(days=2),
        admitted_at=NOW - timedelta(days=2),
        managers=frozenset(),
        checkpoint_at=None,
        restored_at=None,
        evidence=Evidence(
            window=window,
            scrape_interval_s=60.0,
            devices=tuple(
                device(f"GPU-{slot:06}", node, activity=0.0 if is_idle else 0.8, coverage=coverage)
                for slot, node in zip(slots, nodes, strict=True)
            ),
            held_device_count=GPUS_PER_WORKLOAD,
            observed_idle_s=idle.total_seconds(),
            idle_since_at=NOW - idle if is_idle else None,
            was_ever_active=True,
            request_rate_per_s=0.0,
            level_activity_s=0.0,
        ),
        cpu_milli=24_000,
        memory_bytes=2**38,
    )


def model_of(node: str) -> str:
    """Return the model of a node."""
    return MODELS[int(node[1:]) % len(MODELS)]


def waiter(number: int) -> Workload:
    """Return a waiting workload: one of some forty shapes."""
    size = POD_SIZES[number % len(POD_SIZES)]
    pods = 1 + number % 3
    uid = f"z{number:06}"
    return replace(
        holder(0, Random(0)),  # noqa: S311  # no secret
        uid=uid,
        name=uid,
        is_pending=True,
        admitted_at=None,
        created_at=NOW - timedelta(minutes=number % 600),
        evidence=None,
        pods=(),
        pod_gpu_count=size,
        gpu_count=float(size * pods),
        gpu_models=(MODELS[number % len(MODELS)],),
        cpu_milli=8_000 * size * pods,
        queue=f"queue-{number % TEAM_COUNT:03}",
    )


def room(number: int) -> NodeRoom:
    """Return a node whose GPUs are all held."""
    name = f"n{number:05}"
    return NodeRoom(
        cluster=CLUSTER,
        node=name,
        gpu_model=model_of(name),
        mig_profile=None,
        free_count=0,
        total_count=GPUS_PER_NODE,
        is_schedulable=True,
        nvlink_domain=f"d{number // 9}",
        rack=f"r{number // 18}",
        free_cpu_milli=8_000,
        free_memory_bytes=2**37,
    )


def warned(workloads: tuple[Workload, ...]) -> Iterator[Notice]:
    """Yield two warnings to everybody who has been idle for long."""
    for one in workloads:
        seen = one.evidence
        if seen is None or seen.idle_since_at is None or seen.observed_idle_s < 7_200:
            continue
        for rule in ("training", "development", "inference"):
            if rule == one.workload_class:
                for minutes in (90, 20):
                    yield Notice(
                        workload_uid=one.uid,
                        rule=rule,
                        delivered_at=NOW - timedelta(minutes=minutes),
                        idle_since_at=seen.idle_since_at,
                        act_at=NOW - timedelta(minutes=1),
                    )


def snapshot_of(workload_count: int) -> Snapshot:
    """Return a snapshot of so many workloads that hold GPUs, and of those that wait."""
    draw = Random(7)  # noqa: S311  # no secret
    holders = tuple(holder(number, draw) for number in range(workload_count))
    waiters = tuple(waiter(number) for number in range(int(workload_count * WAITING_RATIO)))
    node_count = -(-workload_count * GPUS_PER_WORKLOAD // GPUS_PER_NODE)
    quotas = tuple(
        QuotaUse(
            cluster=CLUSTER,
            tenant_id=f"team-{number:03}",
            queue=f"queue-{number:03}",
            gpu_model=None,
            guaranteed_gpu_count=200.0,
            limit_gpu_count=None,
            used_gpu_count=300.0,
        )
        for number in range(TEAM_COUNT)
    )
    return Snapshot(
        snapshot_id="bench",
        taken_at=NOW,
        workloads=(*holders, *waiters),
        rooms=tuple(room(number) for number in range(node_count)),
        disruptions=(),
        quotas=quotas,
        exemptions=(),
        notices=tuple(warned(holders)),
        past_actions=(),
        health=Health(telemetry_at=NOW, api_error_ratio=0.0, is_stopped=False),
    )


def one_round(facts: Snapshot, by: Policy) -> tuple[Measured, tuple[Decision, ...], Plan]:
    """Decide and plan once."""
    started_s, used_s = time.perf_counter(), time.process_time()
    decisions = decide(facts, (by,), NOW)
    decided_s = time.perf_counter()
    plan = plan_from(decisions, facts, (by,), NOW)
    planned_s = time.perf_counter()
    took = Measured(
        decide_s=decided_s - started_s,
        plan_s=planned_s - decided_s,
        processor_s=time.process_time() - used_s,
    )
    return took, decisions, plan


def object_of(workload: Workload) -> KubernetesObject:
    """Return a Job as an API server would tell it."""
    labels = dict(workload.labels)
    return {
        "apiVersion": workload.api_version,
        "kind": workload.kind,
        "metadata": {
            "name": workload.name,
            "namespace": workload.namespace,
            "uid": workload.object_uid,
            "labels": labels,
        },
        "spec": {"suspend": False, "template": {"metadata": {"labels": labels}}},
    }


def calls_to_read(facts: Snapshot, decisions: tuple[Decision, ...]) -> tuple[int, float]:
    """Return the API calls by which due workloads are read before planning, and their seconds.

    The cluster answers from memory: the seconds are those of reading, not of a network.
    """
    due = {one.workload_uid for one in decisions if one.step is not None}
    gateway = MemoryGateway(object_of(one) for one in facts.workloads if one.uid in due)
    before, started_s = gateway.call_count, time.perf_counter()
    enriched(facts, decisions, gateway)
    return gateway.call_count - before, time.perf_counter() - started_s


def peak_bytes() -> int:
    """Return the most memory this process has had resident."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    (line,) = [each for each in status.splitlines() if each.startswith("VmHWM")]
    return int(line.split()[1]) * 1024


def show(name: str, by: Policy, facts: Snapshot) -> None:
    """Print the median of several rounds and what they came to."""
    runs = [one_round(facts, by) for _ in range(RUN_COUNT)]
    took, decisions, plan = sorted(runs, key=lambda run: run[0].whole_s)[RUN_COUNT // 2]
    plans = {run[2].actions for run in runs}
    if len(plans) != 1:
        raise SystemExit("the same facts made different plans")
    verdicts = [one.judgement.verdict for one in decisions]
    due = sum(one.step is not None for one in decisions)
    takes = sum(one.step in {Step.SUSPEND, Step.EVICT} for one in plan.actions)
    spread_s = statistics.pstdev(run[0].whole_s for run in runs)
    print(f"{name}")
    print(
        f"  {len(decisions)} decisions ({verdicts.count(Verdict.IDLE)} idle, "
        f"{verdicts.count(Verdict.UNKNOWN)} unknown or not judged), {due} steps due, "
        f"{len(plan.actions)} planned, {takes} of them taking, {len(plan.deferred)} put off"
    )
    print(
        f"  decide {took.decide_s:.3f} s, plan {took.plan_s:.3f} s, together {took.whole_s:.3f} s "
        f"({took.processor_s:.3f} s of processor; median of {RUN_COUNT}, spread {spread_s:.3f} s)"
    )
    print(f"  aim {AIM_S:.1f} s, ratio {took.whole_s / AIM_S:.2f}")
    call_count, read_s = calls_to_read(facts, decisions)
    print(f"  {call_count} API calls to read what is due ({read_s:.2f} s from memory)")


def main() -> None:
    """Measure a round that takes for waiting work, and one that takes whatever is due."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workloads", type=int, default=10_000)
    asked = parser.parse_args()
    facts = snapshot_of(asked.workloads)
    acting = replace(default_policy(), mode=Mode.ENFORCE)
    free = replace(acting, rules=tuple(replace(one, on_pressure=False) for one in acting.rules))
    devices = sum(len(one.evidence.devices) for one in facts.workloads if one.evidence)
    print(f"{asked.workloads} workloads on {devices} GPUs, {len(facts.rooms)} nodes")
    show("shipped policy, acting: takes for waiting work only", acting, facts)
    show("the same without pressure: takes what is due, under its caps", free, facts)
    print(f"  peak memory {peak_bytes() / 2**20:.0f} MiB")


if __name__ == "__main__":
    main()
