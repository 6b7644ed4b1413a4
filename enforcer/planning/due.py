"""Steps that are due, with all that is known about their workload."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from enforcer.decisions import TAKING_STEPS, Decision, Step
from enforcer.facts import Notice, PastAction, PodFact, Snapshot, Workload
from enforcer.policies.model import Policy, Rule

CHANGING_STEPS: Final = TAKING_STEPS | {Step.LOWER_PRIORITY}
"""Steps that change a workload; the others only tell."""
STEP_ORDER: Final[Mapping[Step, int]] = {step: place for place, step in enumerate(Step)}
"""The ladder's order, gentlest first."""
_ENDED_PHASES: Final = frozenset({"Succeeded", "Failed"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """A step that a policy wants now."""

    decision: Decision
    policy: Policy
    rule: Rule
    workload: Workload
    step: Step

    @property
    def uid(self) -> str:
        """Return the workload's uid."""
        return self.workload.uid


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """The past of each workload, by its uid."""

    past: Mapping[str, Sequence[PastAction]]
    """Ascending by when they were begun."""
    notices: Mapping[str, Sequence[Notice]]
    """Ascending by when they were delivered."""
    is_live: bool
    """Whether the objects of due workloads were read."""


def known_from(snapshot: Snapshot) -> Known:
    """Return what the snapshot tells of each workload's past."""
    past: defaultdict[str, list[PastAction]] = defaultdict(list)
    for action in sorted(snapshot.past_actions, key=lambda one: (one.begun_at, one.action_id)):
        past[action.workload_uid].append(action)
    notices: defaultdict[str, list[Notice]] = defaultdict(list)
    for notice in sorted(snapshot.notices, key=lambda one: (one.delivered_at, one.rule)):
        notices[notice.workload_uid].append(notice)
    return Known(past=dict(past), notices=dict(notices), is_live=snapshot.is_live)


def due_steps(
    decisions: Sequence[Decision], snapshot: Snapshot, policies: Sequence[Policy]
) -> tuple[Due, ...]:
    """Return the steps that are due, gentlest first, ties by uid and policy.

    A decision of a policy, rule or workload that is not given is left out: it is of other facts.
    """
    rules = {
        (policy.name, policy.version, rule.name): (policy, rule)
        for policy in policies
        for rule in policy.rules
    }
    wanted = [one for one in decisions if one.step is not None]
    uids = {one.workload_uid for one in wanted}
    workloads = {one.uid: one for one in snapshot.workloads if one.uid in uids}
    found = []
    for decision in wanted:
        spoken = rules.get((decision.policy, decision.policy_version, decision.rule or ""))
        workload = workloads.get(decision.workload_uid)
        if spoken is not None and workload is not None and decision.step is not None:
            policy, rule = spoken
            found.append(
                Due(
                    decision=decision,
                    policy=policy,
                    rule=rule,
                    workload=workload,
                    step=decision.step,
                )
            )
    return tuple(sorted(found, key=_order))


def _order(due: Due) -> tuple[int, str, str]:
    return (STEP_ORDER[due.step], due.uid, due.policy.name)


def present_pods(workload: Workload) -> Iterable[PodFact]:
    """Return the workload's pods that have not ended."""
    return (pod for pod in workload.pods if pod.phase not in _ENDED_PHASES)


def is_taking(action: PastAction) -> bool:
    """Tell whether a past act took GPUs."""
    return action.step in TAKING_STEPS


def is_changing(action: PastAction) -> bool:
    """Tell whether a past act changed its workload."""
    return action.step in CHANGING_STEPS
