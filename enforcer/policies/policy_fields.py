"""The outermost keys of a policy file, and its caps."""

from __future__ import annotations

from typing import Final

from enforcer.policies.fields import ACTING_FIELDS, NAME_PATTERN, RULE
from enforcer.policies.model import Caps, Mode, Policy, Rule
from enforcer.policies.shapes import Field, ListOf, Nested, Section
from enforcer.policies.values import Choice, Count, Number, Pairs, TextOf

_NAME: Final = TextOf(pattern=NAME_PATTERN, words="a name of lower-case letters, digits and dashes")
_RATIO: Final = Number(least=0, most=1)
_MANY: Final = Count(least=0, most=100_000)

PER_ROUND: Final = Field(
    name="workloads_per_round", shape=_MANY, about="Taken in one round.", default=5
)
PER_HOUR: Final = Field(
    name="workloads_per_hour", shape=_MANY, about="Taken in any hour.", default=5
)
GPU_RATIO: Final = Field(
    name="gpu_ratio_per_hour",
    shape=_RATIO,
    about="Share of the cluster's GPUs taken in any hour.",
    default=0.05,
)
PER_TENANT: Final = Field(
    name="workloads_per_tenant_per_hour", shape=_MANY, about="Of one team.", default=2
)
UNKNOWN_BREAKER: Final = Field(
    name="unknown_ratio_breaker",
    shape=_RATIO,
    about="More of the judged workloads UNKNOWN than this: nothing is taken.",
    default=0.3,
)
API_BREAKER: Final = Field(
    name="api_error_ratio_breaker",
    shape=_RATIO,
    about="More Kubernetes calls failed than this: nothing is taken.",
    default=0.1,
)
RESTORE_BREAKER: Final = Field(
    name="restore_ratio_breaker",
    shape=_RATIO,
    about="More of the last day's takings asked back than this: nothing is taken.",
    default=0.2,
)
PING_PONG: Final = Field(
    name="ping_pong_count",
    shape=Count(least=1, most=100),
    about="A workload taken and restored so often within a day is left alone.",
    default=2,
)


def _caps(section: Section) -> Caps:
    return Caps(
        workloads_per_round=section.get(PER_ROUND),
        workloads_per_hour=section.get(PER_HOUR),
        gpu_ratio_per_hour=section.get(GPU_RATIO),
        workloads_per_tenant_per_hour=section.get(PER_TENANT),
        unknown_ratio_breaker=section.get(UNKNOWN_BREAKER),
        api_error_ratio_breaker=section.get(API_BREAKER),
        restore_ratio_breaker=section.get(RESTORE_BREAKER),
        ping_pong_count=section.get(PING_PONG),
    )


CAPS_FIELDS: Final[tuple[Field[object], ...]] = (
    *(PER_ROUND, PER_HOUR, GPU_RATIO, PER_TENANT),
    *(UNKNOWN_BREAKER, API_BREAKER, RESTORE_BREAKER, PING_PONG),
)
CAPS_SHAPE: Final = Nested(fields=CAPS_FIELDS, make=_caps)

POLICY_NAME: Final = Field(name="policy", shape=_NAME, about="Its name.")
MODE: Final = Field(
    name="mode",
    shape=Choice(of=Mode),
    about="observe: decide and record; warn: also notify; enforce: also act.",
    default=Mode.OBSERVE,
)
PARENT: Final = Field(
    name="parent", shape=_NAME, about="Policy that this one only tightens.", is_optional=True
)
CAPS: Final = Field(
    name="caps", shape=CAPS_SHAPE, about="The most that it does.", default=CAPS_SHAPE.blank
)
MAX_REGRET: Final = Field(
    name="max_regret_ratio",
    shape=_RATIO,
    about="A backtest must show less regret within 24 h before it may leave observe.",
    default=0.05,
)
POLICY_LABELS: Final = Field(
    name="labels", shape=Pairs(), about="Free words, such as the ticket.", default=()
)
RULES: Final = Field(
    name="rules",
    shape=ListOf(item=RULE, least=1),
    about="Asked in order; the first that matches and does not say next speaks.",
)


def _only_checked(section: Section) -> None:
    """Find the faults; the values are joined into the rules and read there."""
    for field in ACTING_FIELDS:
        _ = section.maybe(field) if field.is_optional else section.get(field)


DEFAULTS: Final = Field(
    name="defaults",
    shape=Nested(fields=ACTING_FIELDS, make=_only_checked),
    about="What acting rules have where they do not say it themselves; idle is joined key by key.",
    is_optional=True,
)


def _policy(section: Section) -> Policy:
    rules: tuple[Rule, ...] = section.get(RULES)
    section.maybe(DEFAULTS)
    return Policy(
        name=section.get(POLICY_NAME),
        version=0,
        mode=section.get(MODE),
        parent=section.maybe(PARENT),
        rules=rules,
        caps=section.get(CAPS),
        max_regret_ratio=section.get(MAX_REGRET),
        labels=dict(section.get(POLICY_LABELS)),
    )


POLICY: Final = Nested(
    fields=(*(POLICY_NAME, MODE, PARENT, MAX_REGRET, POLICY_LABELS, CAPS, DEFAULTS, RULES),),
    make=_policy,
)
