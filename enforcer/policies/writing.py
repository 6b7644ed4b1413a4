"""A policy as plain values again: every key written out, read back to the same policy."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, time, timedelta
from itertools import groupby
from typing import Final

import yaml

from enforcer.policies.calendar import WEEKDAYS
from enforcer.policies.durations import duration_text
from enforcer.policies.model import Effect, IdleLimits, Match, Policy, Rule, Rung, Schedule, Window
from enforcer.policies.schedule import ALWAYS
from steward.output import visible

Document = dict[str, object]
LINE_CHARACTERS: Final = 100


def document_of(policy: Policy) -> Document:
    """Return the values that make this policy, without its version."""
    parent: Document = {} if policy.parent is None else {"parent": policy.parent}
    caps = policy.caps
    return {
        "policy": policy.name,
        "mode": policy.mode.value,
        **parent,
        "max_regret_ratio": policy.max_regret_ratio,
        "labels": dict(policy.labels),
        "caps": {name: getattr(caps, name) for name in caps.__slots__},
        "rules": [_rule(rule) for rule in policy.rules],
    }


def yaml_text(document: Mapping[str, object]) -> str:
    """Return values as YAML, in their order; where a text could act on a terminal, all escaped."""
    text = _dumped(document, is_escaped=False)
    is_harmless = all(visible(line) == line for line in text.split("\n"))
    return text if is_harmless else _dumped(document, is_escaped=True)


def _dumped(document: Mapping[str, object], *, is_escaped: bool) -> str:
    return yaml.safe_dump(
        json.loads(json.dumps(document)),
        sort_keys=False,
        allow_unicode=not is_escaped,
        width=LINE_CHARACTERS,
        default_flow_style=False,
    )


def json_text(document: object) -> str:
    """Return values as JSON, keys in their order: the form that the state keeps."""
    return json.dumps(document, ensure_ascii=False)


def lines_of(document: object, path: str = "") -> Iterator[str]:
    """Yield one ``path: value`` for every value; rules and steps by name, lists of words as one."""
    if isinstance(document, Mapping):
        for key, value in document.items():
            yield from lines_of(value, f"{path}.{key}" if path else str(key))
    elif isinstance(document, Sequence) and any(isinstance(one, Mapping) for one in document):
        for number, one in enumerate(document):
            yield from lines_of(one, f"{path}[{_label(one, number)}]")
    else:
        yield f"{path}: {json_text(document)}"


def _label(item: object, number: int) -> str:
    name = item.get("name") if isinstance(item, Mapping) else None
    return str(number) if name is None else str(name)


def _rule(rule: Rule) -> Document:
    head: Document = {
        "name": rule.name,
        "match": _match(rule.match),
        "effect": rule.effect.value,
        "note": rule.note,
    }
    return {**head, **_acting(rule)} if rule.effect is Effect.ACT else head


def _acting(rule: Rule) -> Document:
    idle: Document = {} if rule.idle is None else {"idle": _idle(rule.idle)}
    limit = rule.duration_limit
    schedule: Document = {} if rule.schedule == ALWAYS else {"schedule": _schedule(rule.schedule)}
    return {
        **idle,
        "ladder": [_rung(rung) for rung in rule.ladder],
        "on_pressure": rule.on_pressure,
        "min_runtime": duration_text(rule.min_runtime),
        "restore_grace": duration_text(rule.restore_grace),
        **({} if limit is None else {"duration_limit": duration_text(limit)}),
        "checkpoint_grace": duration_text(rule.checkpoint_grace),
        "evicts_bare_pods": rule.evicts_bare_pods,
        **schedule,
    }


def _match(match: Match) -> Document:
    values = {name: getattr(match, name) for name in match.__slots__}
    labels = {"labels", "namespace_labels"}
    return {
        name: dict(value) if name in labels else list(value)
        for name, value in values.items()
        if value
    }


def _idle(limits: IdleLimits) -> Document:
    return {
        "window": duration_text(limits.window),
        "below_ratio": limits.below_ratio,
        "power_margin_ratio": limits.power_margin_ratio,
        "min_coverage_ratio": limits.min_coverage_ratio,
        "fresh_scrapes": limits.fresh_scrapes,
    }


def _rung(rung: Rung) -> Document:
    lead: Document = {"lead": duration_text(rung.lead)} if rung.lead > timedelta() else {}
    return {"step": rung.step.value, "after": duration_text(rung.after), **lead}


def _schedule(schedule: Schedule) -> Document:
    return {
        "time_zone": schedule.time_zone,
        "windows": [_window(window) for window in schedule.windows],
        "freeze_days": list(_spans(schedule.freeze_days)),
    }


def _window(window: Window) -> Document:
    return {
        "days": [WEEKDAYS[day] for day in sorted(window.weekdays)],
        "from": _clock(window.from_time),
        "until": _clock(window.until_time),
    }


def _clock(clock: time) -> str:
    return clock.isoformat(timespec="minutes")


def _spans(days: Iterable[date]) -> Iterator[str]:
    """Yield days, and runs of days as FIRST..LAST."""
    numbered = enumerate(sorted(days))
    for _, run in groupby(numbered, key=lambda pair: pair[1].toordinal() - pair[0]):
        found = [day for _, day in run]
        first, last = found[0].isoformat(), found[-1].isoformat()
        yield first if first == last else f"{first}..{last}"
