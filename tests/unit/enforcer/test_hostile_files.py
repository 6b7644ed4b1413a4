"""Hostile policy and quota files: one clear refusal each, and nothing acts on the terminal."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from enforcer.policies.document import TEXT_LIMIT, text_at
from enforcer.policies.listing import json_line
from enforcer.policies.reading import read_policy
from enforcer.policies.writing import document_of, yaml_text
from enforcer.quota.reading import file_at, quota_from
from steward.errors import InputError
from steward.output import visible

Read = Callable[[str], object]
ACTS = "\x1b[31m\u202e\x9b2J\u2066"
RULE = "rules: [{name: r, effect: exempt}]"
ACTING = "rules: [{name: r, idle: {window: 1h}, ladder: [{step: notify, after: 1h}]}]"
WORDS = ("null", "true", "[]", "{}", "-1", "1e400", "''", "x", "[null]", "{a: {b: 1}}", "9" * 4_000)


def as_policy(text: str) -> object:
    return read_policy(text, name="f.yaml")


def as_quota(text: str) -> object:
    return quota_from(text, name="f.yaml")


@pytest.fixture(params=[as_policy, as_quota])
def read(request: pytest.FixtureRequest) -> Read:
    found: Read = request.param
    return found


@pytest.mark.parametrize("place", ["{}", "a: {}", "policy: x\nrules: [{}]", "a: [{{b: {}}}]"])
@pytest.mark.parametrize(
    "value",
    [
        *("!!timestamp foo", "!!bool x", "!!int ''", "!!float ''", "!!float .nan", "!!binary 'ü'"),
        *("!!set {a}", "!!omap [a: 1]", "!!pairs [a: 1]", "!!merge x", "!x y", "! y"),
        '!!python/object/apply:os.system ["true"]',
        '"\\ud800"',
        "&a x",
        "*a",
        "[" * 100_000,
        "9" * 5_000,
        "\0",
    ],
)
def test_no_value_makes_the_reader_fail(read: Read, place: str, value: str) -> None:
    with pytest.raises(InputError, match=r"f\.yaml is (no YAML|refused)"):
        read(place.format(value))


@pytest.mark.parametrize("value", WORDS)
@pytest.mark.parametrize("key", ["policy", "mode", "parent", "labels", "caps", "rules", "defaults"])
def test_a_value_of_another_type_is_told(key: str, value: str) -> None:
    text = "".join(
        f"{name}: {value if name == key else word}\n"
        for name, word in {"policy": "x", "rules": "[{name: r, effect: exempt}]", key: ""}.items()
    )
    try:
        as_policy(text)
    except InputError as error:
        assert key in error.message  # noqa: PT017 - many of these values are harmless


@pytest.mark.parametrize("rules", [RULE, ACTING])
@pytest.mark.parametrize(
    ("defaults", "place"),
    [
        ("x", "defaults: must be a mapping"),
        ("[]", "defaults: must be a mapping"),
        ("{bogus: 1}", "defaults.bogus: is not known"),
        ("{min_runtime: soon}", "defaults.min_runtime: must be a length"),
        ("{idle: {below_ratio: 7}}", "defaults.idle.below_ratio: must be a number"),
    ],
)
def test_faulty_defaults_are_told_once_whoever_uses_them(
    rules: str, defaults: str, place: str
) -> None:
    with pytest.raises(InputError) as told:
        as_policy(f"policy: x\ndefaults: {defaults}\n{rules}")
    assert "refused for 1 fault:" in told.value.message
    assert place in told.value.message


@pytest.mark.parametrize(
    "text",
    [
        '"\\e[31m\\u202ek": 1\n',
        'policy: "\\e[31m\\u202e"\nmode: "\\x9b2J"\n',
        'cluster: c\nteams: [{team: "\\e[31m", gpus: [{gpu_model: "\\u202e", guaranteed: 1}]}]\n',
        "\u202ekey: 1\n",
    ],
)
def test_a_refusal_cannot_act_on_the_terminal(read: Read, text: str) -> None:
    with pytest.raises(InputError) as told:
        read(text)
    lines = told.value.message.split("\n")
    assert [visible(line) for line in lines] == lines


def test_what_is_shown_of_a_policy_acts_on_no_terminal_and_is_read_back() -> None:
    escaped = "".join(f"\\u{ord(one):04x}" for one in ACTS)
    policy = read_policy(
        f'policy: x\nlabels: {{a: "{escaped}"}}\nrules: [{{name: r, effect: exempt, '
        f'note: "{escaped}"}}]',
        name="f.yaml",
    )
    shown = yaml_text(document_of(policy))
    assert all(visible(line) == line for line in shown.split("\n"))
    assert read_policy(shown, name="f.yaml") == policy


def test_a_line_of_json_acts_on_no_terminal() -> None:
    assert re.fullmatch(r"[ -~]+\n", json_line({"name": ACTS}))
    assert json_line({"name": "Müller"}) == '{"name": "Müller"}\n'


@pytest.mark.parametrize("reader", [text_at, file_at])
def test_what_is_no_file_is_refused_at_once(
    reader: Callable[[Path], object], tmp_path: Path
) -> None:
    pipe, latin = tmp_path / "pipe", tmp_path / "latin"
    os.mkfifo(pipe)
    latin.write_bytes(b"policy: \xff\n")
    for path, words in (
        (tmp_path, "Is a directory"),
        (pipe, "a pipe"),
        (latin, "not UTF-8"),
        (tmp_path / "none", "No such file"),
        (tmp_path / ("x" * 300), "too long"),
        (Path("/dev/zero"), f"more than {TEXT_LIMIT} characters"),
    ):
        with pytest.raises(InputError, match=words):
            reader(path)
