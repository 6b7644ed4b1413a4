"""Every key of a policy file: its shape, its meaning, its default, and what a section makes.

The reader, the JSON Schema and the documentation come from here alone.
"""

from __future__ import annotations

from datetime import date, timedelta
from typing import Final

from enforcer.decisions import Step
from enforcer.policies.calendar import Clock, Days, Weekdays, Zone
from enforcer.policies.model import (
    Effect,
    IdleLimits,
    Match,
    Rule,
    Rung,
    Schedule,
    Window,
)
from enforcer.policies.schedule import ALWAYS
from enforcer.policies.shapes import Field, ListOf, Nested, Section
from enforcer.policies.values import Choice, Count, Flag, Length, Number, Pairs, TextOf, Words

NAME_PATTERN: Final = "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"
YEAR: Final = timedelta(days=365)
WEEK: Final = timedelta(days=7)
DAY: Final = timedelta(days=1)
LONGEST_IDLE: Final = timedelta(days=14)
"""Readings are looked at for as far back in every round."""
NOTHING: Final = timedelta()
NOT_WRITTEN: Final = timedelta()
"""A window of no length: it was not written, which is a fault of a rule that acts."""
_NAME: Final = TextOf(pattern=NAME_PATTERN, words="a name of lower-case letters, digits and dashes")
_RATIO: Final = Number(least=0, most=1)
_WORDS: Final = Words()

MATCH_FIELDS: Final = (
    Field(
        name="workload_class", shape=_WORDS, about="training, inference, development", default=()
    ),
    Field(name="tenant", shape=_WORDS, about="Team.", default=()),
    Field(name="namespace", shape=_WORDS, about="Kubernetes namespace.", default=()),
    Field(name="kind", shape=_WORDS, about="Kind of its object, as Job or Notebook.", default=()),
    Field(name="queue", shape=_WORDS, about="Queue that it was submitted to.", default=()),
    Field(name="priority_class", shape=_WORDS, about="Its priority class.", default=()),
    Field(name="owner", shape=_WORDS, about="The person it belongs to.", default=()),
    Field(name="gpu_model", shape=_WORDS, about="Any of its GPU models.", default=()),
    Field(
        name="model_tier", shape=_WORDS, about="Capability tier of any of them, S to D.", default=()
    ),
)
LABELS: Final = Field(name="labels", shape=Pairs(), about="Its own labels.", default=())
NAMESPACE_LABELS: Final = Field(
    name="namespace_labels", shape=Pairs(), about="Labels of its namespace.", default=()
)


def _match(section: Section) -> Match:
    words = {field.name: section.get(field) for field in MATCH_FIELDS}
    return Match(
        **words, labels=section.get(LABELS), namespace_labels=section.get(NAMESPACE_LABELS)
    )


MATCH: Final = Nested(fields=(*MATCH_FIELDS, LABELS, NAMESPACE_LABELS), make=_match)

WINDOW: Final = Field(
    name="window",
    shape=Length(least=timedelta(seconds=1), most=WEEK),
    about="All of this time must be quiet; an acting rule needs it.",
    default=NOT_WRITTEN,
)
BELOW: Final = Field(
    name="below_ratio",
    shape=_RATIO,
    about="The peak of profiling and device utilisation of every device stays below this.",
    default=0.02,
)
MARGIN: Final = Field(
    name="power_margin_ratio",
    shape=_RATIO,
    about="Power stays below the learnt idle level times one plus this.",
    default=0.15,
)
COVERAGE: Final = Field(
    name="min_coverage_ratio",
    shape=Number(least=0.5, most=1),
    about="Less of the window observed on any device is UNKNOWN.",
    default=0.9,
)
FRESH: Final = Field(
    name="fresh_scrapes",
    shape=Count(least=1, most=100),
    about="A newest reading older than so many scrapes is UNKNOWN.",
    default=2,
)


def _idle(section: Section) -> IdleLimits:
    return IdleLimits(
        window=section.get(WINDOW),
        below_ratio=section.get(BELOW),
        power_margin_ratio=section.get(MARGIN),
        min_coverage_ratio=section.get(COVERAGE),
        fresh_scrapes=section.get(FRESH),
    )


IDLE: Final = Nested(fields=(WINDOW, BELOW, MARGIN, COVERAGE, FRESH), make=_idle)

STEP: Final = Field(name="step", shape=Choice(of=Step), about="What is done.")
AFTER: Final = Field(
    name="after", shape=Length(most=LONGEST_IDLE), about="Observed idle time from which it is due."
)
LEAD: Final = Field(
    name="lead",
    shape=Length(most=WEEK),
    about="A delivered notice must be at least this old; for steps that change an object.",
    default=NOTHING,
)


def _rung(section: Section) -> Rung:
    return Rung(step=section.get(STEP), after=section.get(AFTER), lead=section.get(LEAD))


LADDER_SHAPE: Final = ListOf(item=Nested(fields=(STEP, AFTER, LEAD), make=_rung))

DAYS: Final = Field(
    name="days",
    shape=Weekdays(),
    about="Week days on which it begins, mon to sun; default: all.",
    default=frozenset(range(7)),
)
FROM: Final = Field(name="from", shape=Clock(), about="Local time at which it begins, HH:MM.")
UNTIL: Final = Field(
    name="until",
    shape=Clock(),
    about="Local time at which it ends; at or before its beginning: the next day.",
)


def _window(section: Section) -> Window:
    return Window(
        weekdays=section.get(DAYS), from_time=section.get(FROM), until_time=section.get(UNTIL)
    )


ZONE: Final = Field(name="time_zone", shape=Zone(), about="IANA name of the zone of all times.")
_NO_WINDOWS: tuple[Window, ...] = ()
WINDOWS: Final = Field(
    name="windows",
    shape=ListOf(item=Nested(fields=(DAYS, FROM, UNTIL), make=_window)),
    about="When acting is allowed: in any of these; none: always.",
    default=_NO_WINDOWS,
)
_NO_DAYS: frozenset[date] = frozenset()
FREEZE: Final = Field(
    name="freeze_days",
    shape=Days(),
    about="Dates, or FIRST..LAST, on which nothing acts.",
    default=_NO_DAYS,
)


def _schedule(section: Section) -> Schedule:
    return Schedule(
        time_zone=section.get(ZONE),
        windows=section.get(WINDOWS),
        freeze_days=section.get(FREEZE),
    )


SCHEDULE_SHAPE: Final = Nested(fields=(ZONE, WINDOWS, FREEZE), make=_schedule)

_NO_RUNGS: tuple[Rung, ...] = ()
RULE_NAME: Final = Field(name="name", shape=_NAME, about="Unique in the policy.")
RULE_MATCH: Final = Field(
    name="match", shape=MATCH, about="Conditions that must all hold; none: always.", default=Match()
)
EFFECT: Final = Field(
    name="effect",
    shape=Choice(of=Effect),
    about="act; exempt: leave it alone and look no further; next: go on with the next rule.",
    default=Effect.ACT,
)
NOTE: Final = Field(name="note", shape=TextOf(), about="For people.", default="")
IDLE_LIMITS: Final = Field(
    name="idle", shape=IDLE, about="From where a workload counts as idle.", is_optional=True
)
LADDER: Final = Field(
    name="ladder", shape=LADDER_SHAPE, about="Steps, gentlest first.", default=_NO_RUNGS
)
ON_PRESSURE: Final = Field(
    name="on_pressure",
    shape=Flag(),
    about="Take GPUs only for a waiting workload that really fits what is freed.",
    default=True,
)
MIN_RUNTIME: Final = Field(
    name="min_runtime",
    shape=Length(most=WEEK),
    about="Nothing is changed sooner after it got its GPUs.",
    default=timedelta(minutes=30),
)
RESTORE_GRACE: Final = Field(
    name="restore_grace",
    shape=Length(most=WEEK),
    about="Nothing is due for so long after a restore.",
    default=timedelta(minutes=30),
)
DURATION_LIMIT: Final = Field(
    name="duration_limit",
    shape=Length(least=timedelta(minutes=1), most=YEAR),
    about="Its owner is told when it holds GPUs for longer, whatever it does; null: no limit.",
    is_optional=True,
)
CHECKPOINT_GRACE: Final = Field(
    name="checkpoint_grace",
    shape=Length(most=DAY),
    about="Wait so long for a checkpoint that was asked for, then act.",
    default=NOTHING,
)
BARE_PODS: Final = Field(
    name="evicts_bare_pods",
    shape=Flag(),
    about="Leave to evict pods without a controller: their state is lost.",
    default=False,
)
SCHEDULE: Final = Field(
    name="schedule", shape=SCHEDULE_SHAPE, about="When acting is allowed.", default=ALWAYS
)


def _rule(section: Section) -> Rule:
    return Rule(
        name=section.get(RULE_NAME),
        match=section.get(RULE_MATCH),
        effect=section.get(EFFECT),
        idle=section.maybe(IDLE_LIMITS),
        ladder=section.get(LADDER),
        on_pressure=section.get(ON_PRESSURE),
        min_runtime=section.get(MIN_RUNTIME),
        restore_grace=section.get(RESTORE_GRACE),
        duration_limit=section.maybe(DURATION_LIMIT),
        checkpoint_grace=section.get(CHECKPOINT_GRACE),
        evicts_bare_pods=section.get(BARE_PODS),
        schedule=section.get(SCHEDULE),
        note=section.get(NOTE),
    )


COMMON_FIELDS: Final[tuple[Field[object], ...]] = (RULE_NAME, RULE_MATCH, EFFECT, NOTE)
ACTING_FIELDS: Final[tuple[Field[object], ...]] = (
    *(IDLE_LIMITS, LADDER, ON_PRESSURE, MIN_RUNTIME, RESTORE_GRACE, DURATION_LIMIT),
    *(CHECKPOINT_GRACE, BARE_PODS, SCHEDULE),
)
"""Of acting rules only, and of ``defaults``."""
RULE: Final = Nested(fields=(*COMMON_FIELDS, *ACTING_FIELDS), make=_rule)
