"""Which rule speaks of which workload."""

from __future__ import annotations

from dataclasses import replace

import pytest

from enforcer.policies.matching import Book, matches, rule_of, spoken
from enforcer.policies.model import Effect, Match
from tests.support.policy_cases import decided, policy, rule, workload

CASES = [
    (Match(), True),
    (Match(workload_class=("training", "inference")), True),
    (Match(workload_class=("inference",)), False),
    (Match(tenant=("vis*",)), True),
    (Match(tenant=("VIS*",)), False),
    (Match(namespace=("vision",)), True),
    (Match(namespace=("visio",)), False),
    (Match(kind=("Job", "Pod")), True),
    (Match(queue=("b?tch",)), True),
    (Match(queue=("[ab]atch",)), True),
    (Match(priority_class=("*",)), False),
    (Match(owner=("ada",)), True),
    (Match(gpu_model=("*H100*",)), True),
    (Match(gpu_model=("*A100*",)), False),
    (Match(model_tier=("S",)), True),
    (Match(model_tier=("D",)), False),
    (Match(labels=(("stage", "p*"),)), True),
    (Match(labels=(("stage", "q*"),)), False),
    (Match(labels=(("other", "*"),)), False),
    (Match(namespace_labels=(("env", "prod"),)), True),
    (Match(namespace_labels=(("env", "prod"), ("zone", "a"))), False),
    (Match(tenant=("vision",), kind=("Pod",)), False),
]


@pytest.mark.parametrize(("match", "expected"), CASES)
def test_all_conditions_must_hold(match: Match, *, expected: bool) -> None:
    one = workload(labels={"stage": "prod"}, namespace_labels={"env": "prod"})
    assert matches(match, one) is expected


@pytest.mark.parametrize(
    ("match", "unknown"),
    [
        (Match(workload_class=("*",)), {"workload_class": None}),
        (Match(tenant=("*",)), {"tenant_id": None}),
        (Match(queue=("*",)), {"queue": None}),
        (Match(gpu_model=("*",)), {"gpu_models": ()}),
        (Match(model_tier=("*",)), {"gpu_models": ("a model nobody knows",)}),
    ],
)
def test_what_is_not_known_meets_no_condition(match: Match, unknown: dict[str, object]) -> None:
    assert not matches(match, workload(**unknown))


def test_the_first_rule_that_matches_and_does_not_pass_on_speaks() -> None:
    note = rule(name="note", effect=Effect.NEXT)
    other = rule(name="other", match=Match(tenant=("speech",)))
    found = spoken((policy(note, other, rule(name="mine"), rule(name="late")),), workload())
    assert found is not None
    assert found.rule.name == "mine"


def test_children_are_asked_before_parents_and_the_shipped_name_last() -> None:
    book = Book(
        [
            policy(name="default"),
            policy(name="zeta"),
            policy(name="team", parent="default"),
            policy(name="person", parent="team"),
        ]
    )
    assert [one.name for one in book.ordered] == ["person", "team", "zeta", "default"]


def test_where_no_rule_of_the_child_matches_its_parent_speaks() -> None:
    child = policy(rule(match=Match(tenant=("speech",))), name="team", parent="house")
    found = decided(workload(), policy(name="house"), child)
    assert (found.policy, found.rule) == ("house", "idle")


@pytest.mark.parametrize("parents", [("a", "b"), ("b", "a"), ("p", "p"), ("gone", "gone")])
def test_parents_that_come_round_or_are_missing_end_nothing(parents: tuple[str, str]) -> None:
    book = Book([policy(name="a", parent=parents[1]), policy(name="b", parent=parents[0])])
    assert book.spoken(workload()) is not None


def test_the_rule_of_a_decision_is_found_again() -> None:
    made = policy(rule(name="x"), version=7)
    decision = decided(workload(), made)
    assert rule_of((made,), decision) == made.rules[0]
    assert rule_of((replace(made, version=8),), decision) is None
    assert decision.policy_version == 7
