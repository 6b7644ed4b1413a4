"""A policy may leave ``observe`` only by a backtest of its own rules with little regret."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from enforcer.policies.leave import Shown, refusal, shown_by
from enforcer.policies.model import Mode
from tests.support.policy_cases import NOON, policy, rule

OBSERVING = policy(mode=Mode.OBSERVE, version=1, max_regret_ratio=0.05, valid_from_at=NOON)
WANTED = replace(OBSERVING, mode=Mode.ENFORCE, version=0, valid_from_at=None)
GOOD = Shown(policy="p", version=1, span=timedelta(days=14), regret_ratio=0.01, coverage_ratio=0.95)


@pytest.mark.parametrize(
    ("shown", "words"),
    [
        pytest.param({"regret_ratio": 0.049_999}, None, id="under the bound"),
        pytest.param({"regret_ratio": 0.05}, "shows 5.0% regret", id="at the bound"),
        pytest.param({"regret_ratio": 0.050_001}, "shows 5.0% regret", id="above the bound"),
        pytest.param({"regret_ratio": 0.0}, None, id="no regret at all"),
        pytest.param({"regret_ratio": None}, "shows nothing", id="regret not known"),
        pytest.param({"coverage_ratio": 0.5}, None, id="just enough seen"),
        pytest.param({"coverage_ratio": 0.499}, "less than 50%", id="too little seen"),
        pytest.param({"coverage_ratio": None}, "less than 50%", id="coverage not known"),
        pytest.param({"span": timedelta(days=7)}, None, id="a week"),
        pytest.param({"span": timedelta(days=6.99)}, "less than 7 days", id="less than a week"),
        pytest.param({"version": 2}, "no backtest of these rules", id="of another version"),
        pytest.param({"policy": "q"}, "no backtest of these rules", id="of another policy"),
    ],
)
def test_what_a_backtest_must_show(shown: dict[str, object], words: str | None) -> None:
    told = replace(GOOD, **shown)  # type: ignore[arg-type]  # fields by name
    found = refusal(WANTED, known=(OBSERVING,), shown=(told,))
    assert found is None if words is None else words in (found or "")


def test_the_newest_backtest_of_these_rules_counts() -> None:
    bad = replace(GOOD, regret_ratio=0.9)
    assert refusal(WANTED, known=(OBSERVING,), shown=(GOOD, bad)) is None
    assert refusal(WANTED, known=(OBSERVING,), shown=(bad, GOOD)) is not None


@pytest.mark.parametrize(
    "changes",
    [
        {"rules": (rule(name="other"),)},
        {"caps": replace(WANTED.caps, workloads_per_hour=99)},
        {"max_regret_ratio": 0.5},
        {"parent": "house"},
    ],
)
def test_a_backtest_of_other_rules_shows_nothing(changes: dict[str, object]) -> None:
    changed = replace(WANTED, **changes)  # type: ignore[arg-type]  # fields by name
    assert refusal(changed, known=(OBSERVING,), shown=(GOOD,)) is not None


def test_words_of_the_author_and_the_mode_ask_for_no_new_backtest() -> None:
    known = replace(OBSERVING, mode=Mode.WARN, labels={"ticket": "1"})
    assert refusal(WANTED, known=(known,), shown=(GOOD,)) is None


def test_observing_needs_no_leave() -> None:
    assert refusal(OBSERVING, known=(), shown=()) is None


def test_backtests_are_read_from_rows_of_the_state() -> None:
    row = {
        "policy": "p",
        "policy_version": 1,
        "from_at": "2026-05-01T00:00:00Z",
        "until_at": "2026-05-15T00:00:00Z",
        "regret_24h_micros": 10_000,
        "coverage_micros": 950_000,
    }
    empty = {**row, "regret_24h_micros": None, "coverage_micros": 0}
    assert shown_by([row, empty]) == (
        GOOD,
        replace(GOOD, regret_ratio=None, coverage_ratio=0.0),
    )
