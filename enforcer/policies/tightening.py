"""A child policy may only tighten its parent: what of it would loosen is a fault.

Both sides are held. What owners may do shrinks only: idle times, the duration limit, and no
exemption that the parent does not give. What the enforcer may do shrinks only: evidence, notices,
graces, hours, caps. The mode is each policy's own: a person gives it leave.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from enforcer.decisions import Step
from enforcer.policies.durations import duration_text
from enforcer.policies.model import Effect, IdleLimits, Policy, Rule, Rung, Schedule, Window
from enforcer.policies.outlook import ACTING_STEPS
from enforcer.policies.overlap import can_overlap, covers
from enforcer.policies.shapes import At, Fault

MINUTES_PER_DAY: Final = 24 * 60
_STEPS: Final = tuple(Step)
_LOWER_CAPS: Final = (
    *("workloads_per_round", "workloads_per_hour", "gpu_ratio_per_hour"),
    *("workloads_per_tenant_per_hour", "unknown_ratio_breaker", "api_error_ratio_breaker"),
    *("restore_ratio_breaker", "ping_pong_count"),
)
"""None of them may be above the parent's."""


def loosenings(child: Policy, parent: Policy) -> tuple[Fault, ...]:
    """Return where a child would loosen its parent; none: it only tightens."""
    at = At()
    for name in _LOWER_CAPS:
        _not_above(getattr(child.caps, name), getattr(parent.caps, name), at.key("caps").key(name))
    _not_above(child.max_regret_ratio, parent.max_regret_ratio, at.key("max_regret_ratio"))
    for number, rule in enumerate(child.rules):
        for above in _bounds(rule, parent):
            _rule(rule, above, at.key("rules").item(number))
    return tuple(dict.fromkeys(at.faults))


def _bounds(rule: Rule, parent: Policy) -> Iterator[Rule]:
    """Yield the acting rules of the parent that may speak where this rule does."""
    if rule.effect is Effect.NEXT:
        return
    for above in parent.rules:
        if above.effect is Effect.NEXT or not can_overlap(rule.match, above.match):
            continue
        if above.effect is Effect.ACT:
            yield above
        if covers(above.match, rule.match):
            return


def _rule(rule: Rule, above: Rule, at: At) -> None:
    if rule.effect is Effect.EXEMPT:
        at.fault(
            f"{rule.name!r} exempts what rule {above.name!r} of the parent acts on; ask for an "
            "exemption, which has an end"
        )
        return
    _owner_side(rule, above, at)
    _enforcer_side(rule, above, at)
    if rule.idle is not None and above.idle is not None:
        _evidence(rule.idle, above.idle, at.key("idle"))
    _hours(rule.schedule, above.schedule, at.key("schedule"))


def _owner_side(rule: Rule, above: Rule, at: At) -> None:
    own = {rung.step: rung for rung in rule.ladder}
    for rung in above.ladder:
        if rung.step in ACTING_STEPS and rung.step not in own:
            at.key("ladder").fault(f"has no {rung.step.value}, which the parent has")
        elif rung.step in ACTING_STEPS:
            _no_longer(own[rung.step].after, rung.after, at.key("ladder").key(rung.step.value))
    if above.duration_limit is None:
        return
    place = at.key("duration_limit")
    if rule.duration_limit is None:
        place.fault(f"is missing; the parent's is {duration_text(above.duration_limit)}")
    else:
        _no_longer(rule.duration_limit, above.duration_limit, place)


def _enforcer_side(rule: Rule, above: Rule, at: At) -> None:
    _no_shorter(rule.min_runtime, above.min_runtime, at.key("min_runtime"))
    _no_shorter(rule.restore_grace, above.restore_grace, at.key("restore_grace"))
    _no_shorter(rule.checkpoint_grace, above.checkpoint_grace, at.key("checkpoint_grace"))
    if rule.evicts_bare_pods and not above.evicts_bare_pods:
        at.key("evicts_bare_pods").fault("is true; the parent's is false")
    if above.on_pressure and not rule.on_pressure:
        at.key("on_pressure").fault("is false; the parent's is true")
    strongest = _strength(above.ladder)
    leads = {rung.step: rung.lead for rung in above.ladder}
    for number, rung in enumerate(rule.ladder):
        place = at.key("ladder").item(number)
        if _STEPS.index(rung.step) > strongest:
            place.fault(f"{rung.step.value} goes further than any step of the parent")
        elif rung.step in leads:
            _no_shorter(rung.lead, leads[rung.step], place.key("lead"))


def _strength(ladder: tuple[Rung, ...]) -> int:
    return max((_STEPS.index(rung.step) for rung in ladder), default=-1)


def _evidence(own: IdleLimits, above: IdleLimits, at: At) -> None:
    _not_above(own.below_ratio, above.below_ratio, at.key("below_ratio"))
    _not_above(own.power_margin_ratio, above.power_margin_ratio, at.key("power_margin_ratio"))
    _not_above(own.fresh_scrapes, above.fresh_scrapes, at.key("fresh_scrapes"))
    if own.min_coverage_ratio < above.min_coverage_ratio:
        at.key("min_coverage_ratio").fault(
            f"{own.min_coverage_ratio:g} is below the parent's {above.min_coverage_ratio:g}"
        )


def _hours(own: Schedule, above: Schedule, at: At) -> None:
    """Acting hours lie within the parent's; its freeze days hold too."""
    if not above.windows and not above.freeze_days:
        return
    if own.time_zone != above.time_zone:
        at.key("time_zone").fault(
            f"{own.time_zone} is not the parent's {above.time_zone}, whose hours bind"
        )
        return
    if not above.freeze_days <= own.freeze_days:
        at.key("freeze_days").fault("must contain those of the parent")
    if above.windows and not own.windows:
        at.key("windows").fault("are missing, and the parent has some")
    for number, window in enumerate(own.windows):
        if above.windows and not any(_is_within(window, wide) for wide in above.windows):
            at.key("windows").item(number).fault("lies within no window of the parent")


def _is_within(window: Window, wide: Window) -> bool:
    """Tell whether a window lies within one that begins on the same day, or on the day before."""
    start, length = _minutes(window)
    wide_start, wide_length = _minutes(wide)
    for shift in (0, 1):
        offset = start + shift * MINUTES_PER_DAY - wide_start
        days = {(day - shift) % 7 for day in window.weekdays}
        if offset >= 0 and offset + length <= wide_length and days <= wide.weekdays:
            return True
    return False


def _minutes(window: Window) -> tuple[int, int]:
    start = window.from_time.hour * 60 + window.from_time.minute
    end = window.until_time.hour * 60 + window.until_time.minute
    return start, (end - start) % MINUTES_PER_DAY or MINUTES_PER_DAY


def _not_above(own: float, above: float, at: At) -> None:
    if own > above:
        at.fault(f"{own:g} is above the parent's {above:g}")


def _no_longer(own: timedelta, above: timedelta, at: At) -> None:
    if own > above:
        at.fault(f"{duration_text(own)} is longer than the parent's {duration_text(above)}")


def _no_shorter(own: timedelta, above: timedelta, at: At) -> None:
    if own < above:
        at.fault(f"{duration_text(own)} is shorter than the parent's {duration_text(above)}")
