"""Which rule speaks of a workload: conditions, their patterns, and the order of policies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Final

from analytics.capability import capability_of
from enforcer.decisions import Decision
from enforcer.facts import Workload
from enforcer.policies.model import Effect, Match, Policy, Rule

PATTERN_MARKS: Final = frozenset("*?[")
"""A word that contains one of these is a shell pattern."""
DEFAULT_NAME: Final = "default"
"""The policy that is asked last among those without a parent."""
ANY_POLICY: Final = "*"
"""The name by which an exemption means every policy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spoken:
    """The rule that speaks of a workload, the policy it stands in, and that policy's forebears."""

    policy: Policy
    rule: Rule
    ancestors: tuple[Policy, ...]
    """Parent first."""
    exempting: Policy | None
    """The nearest ancestor whose own speaking rule exempts the workload; None: none does."""


def spoken(policies: Sequence[Policy], workload: Workload) -> Spoken | None:
    """Return the rule that speaks of the workload, or None where no rule of any policy does.

    Children are asked before their parents; the first rule that matches and does not say NEXT
    speaks. A parent's exemption holds below it as well.
    """
    return Book(policies).spoken(workload)


def rule_of(policies: Sequence[Policy], decision: Decision) -> Rule | None:
    """Return the rule that a decision names, or None where it names none of these."""
    return next(
        (
            rule
            for policy in policies
            if (policy.name, policy.version) == (decision.policy, decision.policy_version)
            for rule in policy.rules
            if rule.name == decision.rule
        ),
        None,
    )


class Book:
    """Policies as they are asked: children first, then by name, the one named default last."""

    def __init__(self, policies: Iterable[Policy]) -> None:
        """Order them; a parent that is not among them is as if it were not named."""
        by_name = {policy.name: policy for policy in policies}
        self._ancestors = {name: _ancestors(policy, by_name) for name, policy in by_name.items()}
        self._ordered = sorted(
            by_name.values(),
            key=lambda one: (
                -len(self._ancestors[one.name]),
                one.name == DEFAULT_NAME,
                one.name,
            ),
        )

    @property
    def ordered(self) -> tuple[Policy, ...]:
        """Return the policies as they are asked."""
        return tuple(self._ordered)

    def spoken(self, workload: Workload) -> Spoken | None:
        """Return as the function of this name does."""
        for policy in self._ordered:
            rule = speaking(policy.rules, workload)
            if rule is not None:
                return self._told(policy, rule, workload)
        return None

    def _told(self, policy: Policy, rule: Rule, workload: Workload) -> Spoken:
        ancestors = self._ancestors[policy.name]
        above = ((one, speaking(one.rules, workload)) for one in ancestors)
        exempting = (
            one for one, said in above if said is not None and said.effect is Effect.EXEMPT
        )
        return Spoken(
            policy=policy, rule=rule, ancestors=ancestors, exempting=next(exempting, None)
        )


def _ancestors(policy: Policy, by_name: Mapping[str, Policy]) -> tuple[Policy, ...]:
    """Return the chain of parents, cut where it would come round again."""
    found: list[Policy] = []
    seen = {policy.name}
    above = policy.parent
    while above is not None and above in by_name and above not in seen:
        seen.add(above)
        found.append(by_name[above])
        above = by_name[above].parent
    return tuple(found)


def speaking(rules: Iterable[Rule], workload: Workload) -> Rule | None:
    """Return the first rule that matches and does not say NEXT; None: none does."""
    return next(
        (
            rule
            for rule in rules
            if rule.effect is not Effect.NEXT and matches(rule.match, workload)
        ),
        None,
    )


def matches(match: Match, workload: Workload) -> bool:
    """Tell whether every condition holds; a fact that is not known meets no condition."""
    return (
        _is_one(match.workload_class, workload.workload_class)
        and _is_one(match.tenant, workload.tenant_id)
        and _is_one(match.namespace, workload.namespace)
        and _is_one(match.kind, workload.kind)
        and _matches_rank(match, workload)
        and _matches_models(match, workload.gpu_models)
        and _has_labels(match.labels, workload.labels)
        and _has_labels(match.namespace_labels, workload.namespace_labels)
    )


def _matches_rank(match: Match, workload: Workload) -> bool:
    return (
        _is_one(match.queue, workload.queue)
        and _is_one(match.priority_class, workload.priority_class)
        and _is_one(match.owner, workload.owner)
    )


def _matches_models(match: Match, models: Sequence[str]) -> bool:
    """Tell whether any of its models meets each condition."""
    is_model = not match.gpu_model or any(_is_one(match.gpu_model, one) for one in models)
    return is_model and (
        not match.model_tier or any(_is_one(match.model_tier, tier_of(one)) for one in models)
    )


@lru_cache(maxsize=1024)
def tier_of(model: str) -> str | None:
    """Return the capability tier of a GPU model, S to D; None: the table does not know it."""
    known = capability_of(model)
    return None if known is None else known.tier


def _is_one(words: tuple[str, ...], value: str | None) -> bool:
    if not words:
        return True
    return value is not None and any(is_like(value, word) for word in words)


def is_like(value: str, word: str) -> bool:
    """Tell whether a value is the word, or fits it where it is a pattern."""
    if PATTERN_MARKS.isdisjoint(word):
        return value == word
    return fnmatchcase(value, word)


def _has_labels(wanted: tuple[tuple[str, str], ...], labels: Mapping[str, str]) -> bool:
    return all(key in labels and is_like(labels[key], word) for key, word in wanted)
