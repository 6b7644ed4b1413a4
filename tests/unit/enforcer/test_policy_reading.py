"""A policy file is read whole, or refused with every fault at once; the schema is what is read."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date, time, timedelta
from pathlib import Path

import jsonschema
import pytest

from enforcer.decisions import Step
from enforcer.policies.document import document_from
from enforcer.policies.durations import duration_from, duration_text
from enforcer.policies.model import Effect, Mode, Window
from enforcer.policies.reading import policy_of, read_policy
from enforcer.policies.schema import schema, schema_text
from enforcer.policies.shipped import default_policy, default_text
from enforcer.policies.writing import document_of, json_text, yaml_text
from steward.errors import InputError

DOCS = Path(__file__).parents[3] / "docs"
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
TEXT = """
policy: team
rules:
  - name: idle
    idle: {window: 1h}
    ladder:
      - {step: notify, after: 1h}
      - {step: suspend, after: 2h, lead: 15m}
"""


def faults(text: str, *, scrape_s: float = 30) -> list[str]:
    """Return the faults of a text, as lines."""
    document = document_from(text, name="p.yaml")
    found = policy_of(document, scrape_interval=timedelta(seconds=scrape_s))[1]
    return [str(fault) for fault in found]


def with_rule(**changes: object) -> str:
    """Return the text with some keys of its rule changed."""
    document = document_from(TEXT, name="p.yaml")
    assert isinstance(document, dict)
    document["rules"][0].update(changes)
    return json_text(document)


def test_the_shortest_policy_has_the_stated_defaults() -> None:
    policy = read_policy(TEXT, name="p.yaml", version=3)
    assert (policy.name, policy.version, policy.mode) == ("team", 3, Mode.OBSERVE)
    (rule,) = policy.rules
    assert rule.idle is not None
    assert (rule.idle.below_ratio, rule.idle.power_margin_ratio) == (0.02, 0.15)
    assert (rule.idle.min_coverage_ratio, rule.idle.fresh_scrapes) == (0.9, 2)
    assert (rule.min_runtime, rule.restore_grace) == (30 * MINUTE, 30 * MINUTE)
    assert (rule.on_pressure, rule.evicts_bare_pods, rule.duration_limit) == (True, False, None)
    assert policy.caps.workloads_per_hour == 5
    assert policy.caps.gpu_ratio_per_hour == 0.05


def test_the_shipped_policy_only_observes_and_warns_an_hour_and_a_quarter_before() -> None:
    policy = default_policy()
    assert (policy.name, policy.version, policy.mode) == ("default", 0, Mode.OBSERVE)
    windows = {rule.name: rule.idle.window for rule in policy.rules if rule.idle is not None}
    assert windows == {
        "inference": 6 * HOUR,
        "development": 2 * HOUR,
        "training": HOUR,
        "class-not-known": 6 * HOUR,
    }
    for rule in policy.rules:
        takes = [rung for rung in rule.ladder if rung.step is Step.SUSPEND]
        before = [
            take.after - rung.after
            for take in takes
            for rung in rule.ladder
            if rung.step is Step.NOTIFY
        ]
        assert not takes or (before == [HOUR, 15 * MINUTE] and rule.on_pressure)
    assert not any(rule.evicts_bare_pods for rule in policy.rules)


def test_scenario_15_a_window_of_less_than_five_scrapes_is_refused_with_the_reason() -> None:
    text = with_rule(idle={"window": "149s"})
    assert faults(text) == [
        (
            "rules[0].idle.window: 2m29s is shorter than 5 scrapes of 30 s: it would never be "
            "covered, and never fire"
        )
    ]
    assert faults(with_rule(idle={"window": "150s"})) == []
    assert faults(with_rule(idle={"window": "151s"})) == []


@pytest.mark.parametrize(
    ("limit", "is_refused"),
    [
        pytest.param("1h59m", True, id="shorter"),
        pytest.param("2h", True, id="equal"),
        pytest.param("2h1s", False, id="longer"),
    ],
)
def test_an_idle_limit_above_the_duration_limit_is_refused(limit: str, *, is_refused: bool) -> None:
    found = faults(with_rule(duration_limit=limit))
    assert [line.split(":")[0] for line in found] == (
        ["rules[0].ladder[1].after"] if is_refused else []
    )


@pytest.mark.parametrize(
    ("lead", "is_refused"),
    [
        pytest.param("4m59s", True, id="shorter than anybody reads"),
        pytest.param("5m", False, id="the least"),
        pytest.param("1h", False, id="from the notice on"),
        pytest.param("1h1s", True, id="longer than the notice is early"),
    ],
)
def test_a_lead_gives_time_to_read_and_does_not_make_the_step_late(
    lead: str, *, is_refused: bool
) -> None:
    ladder = [
        {"step": "notify", "after": "1h"},
        {"step": "suspend", "after": "2h", "lead": lead},
    ]
    assert bool(faults(with_rule(ladder=ladder))) is is_refused


@pytest.mark.parametrize(
    ("changes", "place", "words"),
    [
        ({"ladder": []}, "rules[0].ladder", "says what it does"),
        ({"idle": None}, "rules[0].idle.window", "how long must be quiet"),
        ({"idle": {"window": "1h", "below_ratio": 0}}, "rules[0].idle.below_ratio", "below 0"),
        (
            {"ladder": [{"step": "suspend", "after": "2h", "lead": "15m"}]},
            "rules[0].ladder[0]",
            "no notify before it",
        ),
        (
            {
                "ladder": [
                    {"step": "notify", "after": "1h"},
                    {"step": "suspend", "after": "2h", "lead": "4m59s"},
                ]
            },
            "rules[0].ladder[1].lead",
            "nobody could read",
        ),
        (
            {
                "ladder": [
                    {"step": "notify", "after": "1h"},
                    {"step": "suspend", "after": "2h", "lead": "60m1s"},
                ]
            },
            "rules[0].ladder[1].lead",
            "later than the step",
        ),
        (
            {"ladder": [{"step": "notify", "after": "1h", "lead": "5m"}]},
            "rules[0].ladder[0].lead",
            "needs no notice",
        ),
        (
            {"ladder": [{"step": "notify", "after": "59m"}]},
            "rules[0].ladder[0].after",
            "shorter than the window",
        ),
        (
            {"ladder": [{"step": "notify", "after": "2h"}, {"step": "finding", "after": "1h"}]},
            "rules[0].ladder[1].after",
            "order of time",
        ),
        (
            {"ladder": [{"step": "finding", "after": "1h"}, {"step": "finding", "after": "2h"}]},
            "rules[0].ladder",
            "comes once",
        ),
        (
            {"ladder": [{"step": "notify", "after": "1h"}, {"step": "notify", "after": "1h"}]},
            "rules[0].ladder",
            "at one time",
        ),
        (
            {
                "ladder": [
                    {"step": "notify", "after": "1h"},
                    {"step": "evict", "after": "2h", "lead": "1h"},
                ]
            },
            "rules[0].evicts_bare_pods",
            "must be true",
        ),
        ({"evicts_bare_pods": True}, "rules[0].evicts_bare_pods", "no evict"),
        ({"effect": "exempt"}, "rules[0]", "neither idle nor ladder"),
        ({"match": {"workload_class": "trainning"}}, "rules[0].match.workload_class", "none of"),
        ({"match": {"model_tier": "E"}}, "rules[0].match.model_tier", "none of"),
        ({"match": {"kind": "job"}}, "rules[0].match.kind", "no kind"),
        ({"match": {"labels": {"a": 1}}}, "rules[0].match.labels.a", "in quotes"),
        ({"match": {"tenant": []}}, "rules[0].match.tenant", "a list of words"),
        ({"name": "Idle GPUs"}, "rules[0].name", "lower-case"),
        ({"min_runtime": 30}, "rules[0].min_runtime", "90s, 15m"),
        ({"ladder": [{"step": "notify", "after": "14d1s"}]}, "rules[0].ladder[0].after", "14d"),
        ({"min_runtime": "8d"}, "rules[0].min_runtime", "from 0s to 7d"),
        ({"on_pressure": "yes"}, "rules[0].on_pressure", "true or false"),
        ({"schedule": {}}, "rules[0].schedule.time_zone", "is missing"),
        ({"schedule": {"time_zone": "Mars"}}, "rules[0].schedule.time_zone", "Asia/Shanghai"),
        (
            {"schedule": {"time_zone": "UTC", "windows": [{"from": "24:00", "until": "06:00"}]}},
            "rules[0].schedule.windows[0].from",
            "22:00",
        ),
        (
            {"schedule": {"time_zone": "UTC", "freeze_days": ["2026-02-30"]}},
            "rules[0].schedule.freeze_days[0]",
            "2026-12-24",
        ),
        (
            {"schedule": {"time_zone": "UTC", "freeze_days": ["2026-02-03..2026-02-02"]}},
            "rules[0].schedule.freeze_days[0]",
            "2026-12-24",
        ),
        ({"graze": "1h"}, "rules[0].graze", "is not known; known are"),
    ],
)
def test_a_faulty_rule_is_refused_with_place_and_reason(
    changes: dict[str, object], place: str, words: str
) -> None:
    (line,) = faults(with_rule(**changes))
    assert line.startswith(f"{place}: ")
    assert words in line


def test_every_fault_is_told_at_once() -> None:
    text = """
policy: Team
mode: on
caps: {workloads_per_round: 9, gpu_ratio_per_hour: 1.5}
rules:
  - {name: a, effect: exempt}
  - name: b
    idle: {window: 10s}
  - {name: b, effect: never}
"""
    with pytest.raises(InputError) as told:
        read_policy(text, name="p.yaml")
    lines = str(told.value).splitlines()
    assert lines[0] == "p.yaml is refused for 10 faults:"
    assert sorted(line.split(":")[0].strip() for line in lines[1:]) == [
        "caps.gpu_ratio_per_hour",
        "caps.workloads_per_round",
        "mode",
        "policy",
        "rules",
        "rules[0]",
        "rules[1]",
        "rules[1].idle.window",
        "rules[1].ladder",
        "rules[2].effect",
    ]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("rules: [", id="cut off"),
        pytest.param("policy: a\npolicy: b", id="a key twice"),
        pytest.param("a: &x {}\nb: *x", id="an alias"),
        pytest.param("!!python/object:os.system {}", id="an object"),
        pytest.param("x" * 1_000_001, id="too long"),
        pytest.param("[" * 5_000, id="too deep"),
        pytest.param("a: !!binary xx", id="a tag"),
        pytest.param("? [a]\n: b", id="a list as key"),
        pytest.param("a: " + "9" * 5_000, id="an endless number"),
    ],
)
def test_what_is_no_plain_yaml_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        read_policy(text, name="p.yaml")


@pytest.mark.parametrize("text", ["", "null", "[]", "7", "policy: a"])
def test_what_is_no_policy_is_refused(text: str) -> None:
    assert faults(text)


def test_times_and_words_stay_what_is_written() -> None:
    """YAML 1.1 reads 22:00 as 1320 and no as false."""
    assert document_from("{from: 22:00, is: no, day: 2026-06-01, n: 010, x: 1e3}", name="p") == {
        "from": "22:00",
        "is": "no",
        "day": "2026-06-01",
        "n": "010",
        "x": 1000.0,
    }


def test_defaults_are_joined_into_acting_rules_only() -> None:
    text = """
policy: team
defaults:
  idle: {window: 2h, below_ratio: 0.05}
  min_runtime: 1h
  ladder: [{step: notify, after: 3h}]
rules:
  - {name: kept, match: {tenant: [a, b]}, effect: exempt}
  - name: own
    match: {tenant: c}
    idle: {window: 3h}
    min_runtime: 0s
  - name: rest
"""
    kept, own, rest = read_policy(text, name="p.yaml").rules
    assert (kept.idle, kept.ladder, kept.match.tenant) == (None, (), ("a", "b"))
    assert own.idle is not None
    assert (own.idle.window, own.idle.below_ratio, own.min_runtime) == (
        3 * HOUR,
        0.05,
        timedelta(),
    )
    assert rest.idle is not None
    assert (rest.idle.window, rest.min_runtime, rest.effect) == (2 * HOUR, HOUR, Effect.ACT)


def test_a_schedule_is_read() -> None:
    text = with_rule(
        schedule={
            "time_zone": "Asia/Shanghai",
            "windows": [{"days": ["fri", "mon"], "from": "22:00", "until": "06:00"}],
            "freeze_days": ["2026-10-01..2026-10-03", "2026-12-24"],
        }
    )
    schedule = read_policy(text, name="p").rules[0].schedule
    assert schedule.windows == (
        Window(weekdays=frozenset({0, 4}), from_time=time(22), until_time=time(6)),
    )
    october = {date(2026, 10, day) for day in (1, 2, 3)}
    assert schedule.freeze_days == {*october, date(2026, 12, 24)}


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0s", 0),
        ("90s", 90),
        ("15m", 900),
        ("2h30m", 9_000),
        ("7d", 604_800),
        ("1d2h3m4s", 93_784),
        ("", None),
        ("15", None),
        ("m", None),
        ("1.5h", None),
        ("-1h", None),
        ("1h1d", None),
        ("15m\n", None),
        ("\u0661m", None),
    ],
)
def test_lengths_of_time(text: str, seconds: int | None) -> None:
    length = duration_from(text)
    assert length == (None if seconds is None else timedelta(seconds=seconds))
    assert length is None or duration_from(duration_text(length)) == length


def test_the_committed_schema_is_the_generated_one_and_valid() -> None:
    assert (DOCS / "policy.schema.json").read_text(encoding="utf-8") == schema_text()
    jsonschema.Draft202012Validator.check_schema(schema())


@pytest.mark.parametrize("text", [TEXT, default_text()])
def test_what_is_read_satisfies_the_schema(text: str) -> None:
    jsonschema.validate(document_from(text, name="p"), schema())


@pytest.mark.parametrize("policy", [default_policy(), read_policy(TEXT, name="p")])
def test_a_policy_is_written_and_read_back_as_it_was(policy: object) -> None:
    assert isinstance(policy, type(default_policy()))
    document = document_of(policy)
    for text in (yaml_text(document), json_text(document)):
        assert read_policy(text, name="p") == replace(policy, version=0)
    assert json.loads(json_text(document)) == document
