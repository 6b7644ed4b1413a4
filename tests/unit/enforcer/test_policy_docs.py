"""The page on policies says what the code says: every key, every code, examples that are read."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from enforcer.policies.fields import (
    AFTER,
    DAYS,
    FREEZE,
    FROM,
    IDLE,
    LEAD,
    MATCH,
    RULE,
    STEP,
    UNTIL,
    WINDOWS,
    ZONE,
)
from enforcer.policies.policy_fields import CAPS_FIELDS, POLICY
from enforcer.policies.reading import read_policy
from enforcer.policies.shapes import Field
from enforcer.policies.shipped import default_policy
from enforcer.policies.tightening import loosenings

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "policies.md").read_text(encoding="utf-8")
ENUMERATIONS = (
    ("enforcer/policies/reasons.py", "Reason"),
    ("enforcer/policies/reasons.py", "JudgedNot"),
    ("enforcer/judging.py", "Ground"),
    ("enforcer/decisions.py", "Finding"),
    ("enforcer/planning/reasons.py", "Reason"),
    ("enforcer/planning/reasons.py", "Breaker"),
)
FIELDS: tuple[Field[object], ...] = (
    *(*POLICY.fields, *RULE.fields, *MATCH.fields, *IDLE.fields, *CAPS_FIELDS),
    *(STEP, AFTER, LEAD, ZONE, WINDOWS, FREEZE, DAYS, FROM, UNTIL),
)
EXAMPLES = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)


def codes(path: str, name: str) -> Iterator[tuple[str, str]]:
    """Yield each code of an enumeration with the text under it."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    body = next(
        node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name
    )
    for number, node in enumerate(body):
        if not isinstance(node, ast.Assign):
            continue
        after = body[number + 1] if number + 1 < len(body) else None
        text = after.value if isinstance(after, ast.Expr) else None
        words = text.value if isinstance(text, ast.Constant) else ""
        yield str(ast.literal_eval(node.value)), " ".join(str(words).split())


@pytest.mark.parametrize(("path", "name"), ENUMERATIONS)
def test_every_code_is_explained(path: str, name: str) -> None:
    rows = [f"| `{code}` | {text.replace('``', '`')} |" for code, text in codes(path, name)]
    assert rows
    assert [row for row in rows if row not in PAGE] == []


def test_every_key_is_explained() -> None:
    heads = [f"| `{field.name}` | {field.about}" for field in FIELDS]
    assert [head for head in heads if head not in PAGE] == []


@pytest.mark.parametrize("text", EXAMPLES)
def test_every_example_is_a_policy(text: str) -> None:
    policy = read_policy(text, name="example")
    if policy.parent is not None:
        assert loosenings(policy, default_policy()) == ()


def test_there_is_an_example_of_each_class() -> None:
    assert {"training", "inference", "development"} <= set(re.findall(r"\w+", "".join(EXAMPLES)))
