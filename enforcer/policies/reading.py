"""A policy from its text: every fault is found and told at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from enforcer.policies.checks import rule_faults, whole_faults
from enforcer.policies.document import HINT, document_from
from enforcer.policies.model import Effect, Policy
from enforcer.policies.policy_fields import DEFAULTS, POLICY
from enforcer.policies.shapes import At, Fault, is_list
from steward.errors import InputError
from steward.output import visible

SCRAPE_INTERVAL: Final = timedelta(seconds=30)
"""Assumed where nobody says how often devices are read."""
ACTING: Final = Effect.ACT.value


def read_policy(
    text: str,
    *,
    name: str,
    version: int = 0,
    valid_from_at: datetime | None = None,
    scrape_interval: timedelta = SCRAPE_INTERVAL,
) -> Policy:
    """Return the policy that a text writes, validated but for its parent.

    Args:
        text: YAML or JSON.
        name: of the file, for messages.
        version: it is to have; 0 is the shipped one or one not yet stored.
        valid_from_at: from when on this version holds.
        scrape_interval: how often devices are read; the windows are held against it.

    Raises:
        InputError: it is no policy; the message lists every fault.
    """
    document = document_from(text, name=name)
    policy, faults = policy_of(document, scrape_interval=scrape_interval)
    if faults:
        lines = "".join(f"\n  {visible(str(fault))}" for fault in faults)
        count = f"{len(faults)} fault{'' if len(faults) == 1 else 's'}"
        raise InputError(f"{name} is refused for {count}:{lines}", hint=HINT)
    return replace(policy, version=version, valid_from_at=valid_from_at)


def policy_of(
    document: object, *, scrape_interval: timedelta = SCRAPE_INTERVAL
) -> tuple[Policy, tuple[Fault, ...]]:
    """Return a policy with what is wrong with it; with faults it is not to be used.

    Args:
        document: plain values, as ``document_from`` returns them.
        scrape_interval: how often devices are read.
    """
    at = At()
    policy = POLICY.read(_with_defaults(document), at)
    faulty = {fault.path.partition(".")[0] for fault in at.faults}
    for number, rule in enumerate(policy.rules):
        place = at.key("rules").item(number)
        if place.path not in faulty and DEFAULTS.name not in faulty:
            rule_faults(rule, place, scrape_interval=scrape_interval)
    whole_faults(policy, at)
    return policy, tuple(at.faults)


def _with_defaults(document: object) -> object:
    """Return the document with its defaults written into every acting rule."""
    if not isinstance(document, Mapping):
        return document
    defaults, rules = document.get(DEFAULTS.name), document.get("rules")
    if not isinstance(defaults, Mapping) or not is_list(rules) or _is_faulty(defaults):
        return document
    return {**document, "rules": _joined(rules, defaults)}


def _is_faulty(defaults: Mapping[object, object]) -> bool:
    """Tell whether they have faults: those are told once, not in every rule as well."""
    at = At()
    DEFAULTS.shape.read(defaults, at)
    return bool(at.faults)


def _joined(rules: Sequence[object], defaults: Mapping[object, object]) -> list[object]:
    return [
        _with(rule, defaults)
        if isinstance(rule, Mapping) and rule.get("effect", ACTING) == ACTING
        else rule
        for rule in rules
    ]


def _with(rule: Mapping[object, object], defaults: Mapping[object, object]) -> dict[object, object]:
    joined = {**defaults, **rule}
    idle, own = defaults.get("idle"), rule.get("idle", {})
    if isinstance(idle, Mapping) and isinstance(own, Mapping):
        joined["idle"] = {**idle, **own}
    return joined
