"""Laws of policies and decisions: what holds for every workload, rule, notice and clock."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta

import jsonschema
from hypothesis import given, settings
from hypothesis import strategies as st

from enforcer.decisions import TAKING_STEPS, Step, Verdict
from enforcer.facts import Notice, Workload
from enforcer.policies.decide import decide
from enforcer.policies.durations import duration_from, duration_text
from enforcer.policies.matching import matches
from enforcer.policies.model import Match, Mode, Policy, Schedule, Window
from enforcer.policies.outlook import ACTING_STEPS
from enforcer.policies.overlap import can_overlap, covers
from enforcer.policies.reading import policy_of
from enforcer.policies.schedule import is_open, next_open
from enforcer.policies.schema import schema
from enforcer.policies.shipped import default_policy
from enforcer.policies.tightening import loosenings
from enforcer.policies.writing import document_of
from tests.support.policy_cases import (
    HOUR,
    LADDER,
    MINUTE,
    NOON,
    busy_evidence,
    decided,
    evidence,
    exemption,
    notice,
    past,
    policy,
    rule,
    snapshot,
    workload,
)

OFTEN = settings(max_examples=200, deadline=None)
MINUTES = st.integers(0, 400).map(lambda count: count * MINUTE)
STEPS = st.sampled_from(Step)


@st.composite
def notices(draw: st.DrawFn) -> tuple[Notice, ...]:
    """Draw notices of all sorts, also such as do not count."""
    count = draw(st.integers(0, 4))
    return tuple(
        notice(
            ago=draw(MINUTES) - 30 * MINUTE,
            act_at=NOON + draw(MINUTES) - 200 * MINUTE,
            rule=draw(st.sampled_from(["idle", "other"])),
        )
        for _ in range(count)
    )


@st.composite
def workloads(draw: st.DrawFn, *, uid: str = "w") -> Workload:
    """Draw workloads that idle, work, wait, or of which nothing is known."""
    seen = draw(
        st.one_of(
            st.none(),
            st.just(busy_evidence()),
            st.builds(lambda idle, gap: evidence(idle=idle, gap=gap), MINUTES, MINUTES),
        )
    )
    return workload(
        uid=uid,
        evidence=seen,
        kind=draw(st.sampled_from(["Job", "Pod"])),
        is_pending=draw(st.booleans()),
        admitted_at=draw(st.one_of(st.none(), MINUTES.map(lambda ago: NOON - ago))),
        restored_at=draw(st.one_of(st.none(), MINUTES.map(lambda ago: NOON - ago))),
    )


@st.composite
def schedules(draw: st.DrawFn) -> Schedule:
    """Draw schedules in zones that put their clocks, with days that are frozen."""
    quarter = st.integers(0, 95).map(lambda n: time(n // 4, n % 4 * 15))
    windows = st.builds(
        lambda days, first, last: Window(weekdays=days, from_time=first, until_time=last),
        st.frozensets(st.integers(0, 6), min_size=1),
        quarter,
        quarter,
    )
    zones = st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"])
    return Schedule(
        time_zone=draw(zones),
        windows=tuple(draw(st.lists(windows, max_size=2))),
        freeze_days=draw(st.frozensets(st.dates(date(2026, 3, 25), date(2026, 4, 6)), max_size=3)),
    )


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    """Draw policies of one rule with a ladder of some steps."""
    last = replace(LADDER[2], step=draw(st.sampled_from([Step.SUSPEND, Step.EVICT])))
    lower = replace(LADDER[2], step=Step.LOWER_PRIORITY, after=110 * MINUTE, lead=5 * MINUTE)
    ladder = (*LADDER[:2], *((lower,) if draw(st.booleans()) else ()), last)
    return policy(
        rule(
            ladder=ladder,
            schedule=draw(schedules()),
            duration_limit=draw(st.one_of(st.none(), st.just(5 * HOUR))),
        ),
        mode=draw(st.sampled_from(Mode)),
        valid_from_at=draw(st.one_of(st.none(), MINUTES.map(lambda ago: NOON - ago))),
    )


@OFTEN
@given(workloads(), policies(), notices())
def test_no_act_without_a_delivered_notice_older_than_its_lead(
    one: Workload, made: Policy, told: tuple[Notice, ...]
) -> None:
    found = decided(one, made, notices=told)
    step = found.step or found.withheld_step
    if step in ACTING_STEPS:
        rung = next(each for each in made.rules[0].ladder if each.step is step)
        since_at = one.evidence.idle_since_at if one.evidence is not None else None
        assert since_at is not None
        assert any(
            each.rule == "idle" and since_at <= each.delivered_at <= NOON - rung.lead
            for each in told
        )
        assert found.judgement.verdict is Verdict.IDLE
        assert timedelta(seconds=found.judgement.observed_idle_s) >= rung.after
        assert is_open(made.rules[0].schedule, NOON)


@OFTEN
@given(workloads(), policies(), notices())
def test_unknown_gives_no_step_and_no_hope_of_one(
    one: Workload, made: Policy, told: tuple[Notice, ...]
) -> None:
    found = decided(one, made, notices=told)
    if found.judgement.verdict is Verdict.UNKNOWN:
        assert (found.step, found.withheld_step, found.act_at) == (None, None, None)


@OFTEN
@given(workloads(), policies(), notices())
def test_every_decision_gives_reasons_and_looks_ahead_only(
    one: Workload, made: Policy, told: tuple[Notice, ...]
) -> None:
    found = decided(one, made, notices=told)
    assert found.reasons
    assert found.judgement.reasons
    assert found.next_at is None or found.next_at > NOON
    assert found.act_at is None or found.act_at >= NOON


@OFTEN
@given(workloads(), policies(), notices())
def test_a_gentler_mode_never_does_more(
    one: Workload, made: Policy, told: tuple[Notice, ...]
) -> None:
    order = list(Step)
    steps = [
        decided(one, replace(made, mode=mode), notices=told).step
        for mode in (Mode.OBSERVE, Mode.WARN, Mode.ENFORCE)
    ]
    ranks = [-1 if step is None else order.index(step) for step in steps]
    assert steps[0] in {None, Step.FINDING}
    assert steps[1] in {None, Step.FINDING, Step.NOTIFY}
    assert ranks == sorted(ranks)


@OFTEN
@given(workloads(), policies(), notices())
def test_an_exemption_leaves_alone(one: Workload, made: Policy, told: tuple[Notice, ...]) -> None:
    found = decided(one, made, notices=told, exemptions=(exemption(),))
    assert (found.step, found.withheld_step) == (None, None)


@OFTEN
@given(st.data(), notices())
def test_the_order_of_facts_does_not_matter(data: st.DataObject, told: tuple[Notice, ...]) -> None:
    rows = [data.draw(workloads(uid=f"w{number}")) for number in range(3)]
    spoken = tuple(replace(each, workload_uid=f"w{at % 3}") for at, each in enumerate(told * 2))
    actions = (past(workload_uid="w1"), past(workload_uid="w2", outcome="begun"))
    laws = (policy(name="a", parent="b"), policy(name="b"))
    shuffled = data.draw(st.permutations(rows))
    turned = data.draw(st.permutations(spoken))
    first = decide(snapshot(*rows, notices=spoken, past_actions=actions), laws, NOON)
    second = decide(
        snapshot(*shuffled, notices=tuple(turned), past_actions=actions[::-1]), laws[::-1], NOON
    )
    assert first == second
    assert [each.workload_uid for each in first] == sorted(row.uid for row in rows)


@OFTEN
@given(policies(), st.integers(60, 400), st.integers(1, 7))
def test_what_the_last_notice_promises_is_what_happens(
    made: Policy, idle_minutes: int, round_minutes: int
) -> None:
    """A workload that stays idle is taken in the first round at or after the promised time."""
    law = replace(made, mode=Mode.ENFORCE, valid_from_at=None)
    start, pause = NOON - idle_minutes * MINUTE, round_minutes * MINUTE
    told: tuple[Notice, ...] = ()
    now: datetime | None = NOON
    while now is not None:
        one = workload(evidence=evidence(idle=now - start, now=now), now=now)
        found = decided(one, law, now=now, notices=told)
        if found.step in TAKING_STEPS:
            assert told[-1].act_at <= now < told[-1].act_at + pause
            assert now >= told[0].delivered_at + HOUR
            return
        if found.step is Step.NOTIFY:
            act_at = found.act_at or now
            told = (*told, notice(ago=timedelta(), now=now, idle_since_at=start, act_at=act_at))
        now = None if found.next_at is None else round_at(found.next_at, pause)


def round_at(at: datetime, pause: timedelta) -> datetime:
    """Return the first round at or after an instant."""
    return NOON + -((NOON - at) // pause) * pause


@OFTEN
@given(
    schedules(),
    st.one_of(
        st.datetimes(datetime(2026, 3, 27), datetime(2026, 4, 6), timezones=st.just(UTC)),  # noqa: DTZ001 - Hypothesis adds the zone
        st.datetimes(datetime(2026, 10, 23), datetime(2026, 11, 3), timezones=st.just(UTC)),  # noqa: DTZ001 - same
    ),
)
def test_the_next_opening_is_the_first_quarter_that_is_open(
    made: Schedule, drawn: datetime
) -> None:
    """Against every quarter of an hour after it: clocks are put at quarters, windows too."""
    at = drawn.replace(minute=drawn.minute // 15 * 15, second=0, microsecond=0)
    quarters = (at + number * 15 * MINUTE for number in range(4 * 24 * 5))
    expected = next((each for each in quarters if is_open(made, each)), None)
    found = next_open(made, at)
    if expected is None:
        assert found is None or found > at + timedelta(days=4)
    else:
        assert found == expected


@OFTEN
@given(st.integers(0, 10_000_000))
def test_a_length_is_written_and_read_back(seconds: int) -> None:
    length = timedelta(seconds=seconds)
    text = duration_text(length)
    assert duration_from(text) == length or length >= timedelta(days=100_000)


WORDS = st.lists(
    st.sampled_from(["a", "b", "ab", "a*", "*b", "*", "?"]), max_size=2, unique=True
).map(tuple)
MATCHES = st.builds(
    lambda tenant, queue, labels: Match(tenant=tenant, queue=queue, labels=labels),
    WORDS,
    WORDS,
    st.sampled_from([(), (("k", "a"),), (("k", "a*"),), (("k", "b"), ("m", "*"))]),
)
HELD = st.builds(
    lambda tenant, queue, label: workload(tenant_id=tenant, queue=queue, labels=label),
    st.sampled_from([None, "a", "b", "ab", "aab"]),
    st.sampled_from([None, "a", "b", "ba"]),
    st.sampled_from([{}, {"k": "a"}, {"k": "b", "m": "x"}, {"k": "ab"}]),
)


@settings(max_examples=600, deadline=None)
@given(MATCHES, MATCHES, HELD)
def test_overlap_and_cover_never_err_to_the_unsafe_side(
    one: Match, other: Match, held: Workload
) -> None:
    if matches(one, held) and matches(other, held):
        assert can_overlap(one, other)
    if covers(one, other) and matches(other, held):
        assert matches(one, held)


@OFTEN
@given(policies(), policies())
def test_tightening_is_reflexive_and_a_tight_childs_child_is_tight(
    first: Policy, second: Policy
) -> None:
    assert loosenings(first, first) == ()
    if not loosenings(second, first):
        tighter = replace(second, rules=(replace(second.rules[0], min_runtime=9 * HOUR),))
        assert loosenings(tighter, first) == ()


DOCUMENT = document_of(default_policy())
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 7),
    st.floats(-1, 2, allow_nan=False),
    st.sampled_from(["", "x", "1h", "act", "suspend", "training", "22:00", "UTC", "2026-06-01"]),
    st.just([]),
    st.just({}),
    st.just(["a"]),
    st.just({"a": "b"}),
)


def paths(value: object, at: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
    """Return the place of every value."""
    found = [at]
    if isinstance(value, dict):
        found += [path for key, one in value.items() for path in paths(one, (*at, key))]
    elif isinstance(value, list):
        found += [path for number, one in enumerate(value) for path in paths(one, (*at, number))]
    return found


PATHS = [path for path in paths(DOCUMENT) if path]


@settings(max_examples=1_000, deadline=None)
@given(st.sampled_from(PATHS), VALUES, st.booleans())
def test_whatever_is_accepted_satisfies_the_schema_and_is_written_and_read_back(
    path: tuple[object, ...], value: object, is_removed: bool
) -> None:
    document = copy.deepcopy(DOCUMENT)
    place: object = document
    for key in path[:-1]:
        place = place[key]  # type: ignore[index]  # along a path of its own
    if is_removed:
        del place[path[-1]]  # type: ignore[attr-defined]  # same
    else:
        place[path[-1]] = value  # type: ignore[index]  # same
    policy_read, faults = policy_of(json.loads(json.dumps(document)))
    if faults:
        return
    jsonschema.Draft202012Validator(schema()).validate(document)
    again, none = policy_of(document_of(policy_read))
    assert (again, none) == (policy_read, ())
