"""Why a policy that is well written is refused all the same: limits that cannot work together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from itertools import pairwise
from typing import Final

from enforcer.decisions import TAKING_STEPS, Step
from enforcer.policies.durations import duration_text
from enforcer.policies.fields import NOT_WRITTEN
from enforcer.policies.matching import PATTERN_MARKS, is_like
from enforcer.policies.model import Caps, Effect, Match, Policy, Rule, Rung
from enforcer.policies.outlook import ACTING_STEPS
from enforcer.policies.shapes import At

LEAST_SCRAPES: Final = 5
"""A shorter window cannot show that anything is idle: one late scrape hides it all."""
LEAST_LEAD: Final = timedelta(minutes=5)
"""A warning that nobody can read in time is none."""
CLASSES: Final = ("training", "inference", "development")
TIERS: Final = ("S", "A", "B", "C", "D")
STEPS: Final = tuple(Step)
"""Gentlest first."""


def whole_faults(policy: Policy, at: At) -> None:
    """Note what is wrong with the rules together, the caps and the parent."""
    names = Counter(rule.name for rule in policy.rules if rule.name)
    for name in sorted(name for name, count in names.items() if count > 1):
        at.key("rules").fault(f"{name!r} names {names[name]} rules; a decision names its rule")
    for number, rule in enumerate(policy.rules[:-1]):
        if rule.match == Match() and rule.effect is not Effect.NEXT:
            at.key("rules").item(number).fault(
                f"{rule.name!r} matches everything, so no later rule is ever asked"
            )
    if policy.parent is not None and policy.parent == policy.name:
        at.key("parent").fault("is the policy itself")
    _caps_faults(policy.caps, at.key("caps"))


def _caps_faults(caps: Caps, at: At) -> None:
    if caps.workloads_per_round > caps.workloads_per_hour:
        at.key("workloads_per_round").fault(
            f"{caps.workloads_per_round} is more than workloads_per_hour {caps.workloads_per_hour}"
        )
    if caps.workloads_per_tenant_per_hour > caps.workloads_per_hour:
        at.key("workloads_per_tenant_per_hour").fault(
            f"{caps.workloads_per_tenant_per_hour} is more than workloads_per_hour "
            f"{caps.workloads_per_hour}"
        )


def rule_faults(rule: Rule, at: At, *, scrape_interval: timedelta) -> None:
    """Note what is wrong with one rule that is otherwise well written."""
    _match_faults(rule.match, at.key("match"))
    if rule.effect is not Effect.ACT:
        if rule.idle is not None or rule.ladder:
            at.fault(f"{rule.effect.value} does nothing, so it has neither idle nor ladder")
        return
    _window_faults(rule, at.key("idle"), scrape_interval=scrape_interval)
    if not rule.ladder:
        at.key("ladder").fault("is missing: an acting rule says what it does, and when")
        return
    _order_faults(rule.ladder, at.key("ladder"))
    for number, rung in enumerate(rule.ladder):
        _rung_faults(rule, rung, at.key("ladder").item(number))
    _taking_faults(rule, at)


def _match_faults(match: Match, at: At) -> None:
    for name, words, known in (
        ("workload_class", match.workload_class, CLASSES),
        ("model_tier", match.model_tier, TIERS),
    ):
        for word in words:
            if not any(is_like(one, word) for one in known):
                at.key(name).fault(f"{word!r} matches none of {', '.join(known)}")
    for word in match.kind:
        if PATTERN_MARKS.isdisjoint(word) and not word[:1].isupper():
            at.key("kind").fault(f"{word!r} is no kind: they are written as Job, Notebook")


def _window_faults(rule: Rule, at: At, *, scrape_interval: timedelta) -> None:
    window = NOT_WRITTEN if rule.idle is None else rule.idle.window
    if window == NOT_WRITTEN:
        at.key("window").fault("is missing: an acting rule says how long must be quiet")
        return
    if window < LEAST_SCRAPES * scrape_interval:
        at.key("window").fault(
            f"{duration_text(window)} is shorter than {LEAST_SCRAPES} scrapes of "
            f"{scrape_interval.total_seconds():g} s: it would never be covered, and never fire"
        )
    if rule.idle is not None and rule.idle.below_ratio == 0:
        at.key("below_ratio").fault("is 0, and nothing is below 0: the rule would never fire")


def _order_faults(ladder: Sequence[Rung], at: At) -> None:
    for number, (before, rung) in enumerate(pairwise(ladder), start=1):
        if rung.after < before.after:
            at.item(number).key("after").fault(
                f"{duration_text(rung.after)} comes before the {duration_text(before.after)} of "
                "the step above; steps are written in the order of time"
            )
    acting = [rung.step for rung in ladder if rung.step is not Step.NOTIFY]
    ranks = [STEPS.index(step) for step in acting]
    if ranks != sorted(set(ranks)):
        at.fault("every step but notify comes once, and gentler ones come first")
    warnings = [rung.after for rung in ladder if rung.step is Step.NOTIFY]
    if len(set(warnings)) < len(warnings):
        at.fault("two notices are due at one time")


def _rung_faults(rule: Rule, rung: Rung, at: At) -> None:
    limit = rule.duration_limit
    if limit is not None and rung.after >= limit:
        at.key("after").fault(
            f"idle limit {duration_text(rung.after)} is not below duration_limit "
            f"{duration_text(limit)}: its owner would be told of the other first, always"
        )
    if rule.idle is not None and rung.after < rule.idle.window:
        at.key("after").fault(
            f"{duration_text(rung.after)} is shorter than the window "
            f"{duration_text(rule.idle.window)}, and nothing is idle sooner than that"
        )
    if rung.step in ACTING_STEPS:
        _lead_faults(rule, rung, at)
    elif rung.lead:
        at.key("lead").fault(f"{rung.step.value} needs no notice before it")


def _lead_faults(rule: Rule, rung: Rung, at: At) -> None:
    """An acting step needs a notice, early enough that the step is not late for it."""
    warnings = [one.after for one in rule.ladder if one.step is Step.NOTIFY]
    earlier = [after for after in warnings if after <= rung.after]
    if not earlier:
        at.fault(f"{rung.step.value} has no notify before it, so it would never be due")
        return
    if rung.lead < LEAST_LEAD:
        at.key("lead").fault(
            f"{duration_text(rung.lead)} is shorter than {duration_text(LEAST_LEAD)}: nobody "
            "could read the notice in time"
        )
    elif earlier[0] + rung.lead > rung.after:
        at.key("lead").fault(
            f"{duration_text(rung.lead)} after the notice at {duration_text(earlier[0])} is "
            f"later than the step's own {duration_text(rung.after)}"
        )


def _taking_faults(rule: Rule, at: At) -> None:
    steps = {rung.step for rung in rule.ladder}
    if Step.EVICT in steps and not rule.evicts_bare_pods:
        at.key("evicts_bare_pods").fault(
            "must be true where the ladder evicts: the state of a bare pod is lost"
        )
    if rule.evicts_bare_pods and Step.EVICT not in steps:
        at.key("evicts_bare_pods").fault("is true, but the ladder has no evict")
    if not steps & TAKING_STEPS and rule.checkpoint_grace:
        at.key("checkpoint_grace").fault("waits for a checkpoint, but the ladder takes nothing")
