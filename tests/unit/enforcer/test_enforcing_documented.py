"""docs/enforcing.md holds every reason of the ledger and every metric."""

from __future__ import annotations

from pathlib import Path

import pytest

from enforcer.actuators import RefusalReason
from enforcer.apply import SkipReason
from enforcer.entries import BY_TIMER
from enforcer.metrics import EnforcerMetrics
from enforcer.undo import ASKED

PAGE = (Path(__file__).parents[3] / "docs" / "enforcing.md").read_text(encoding="utf-8")
CODES = sorted({*RefusalReason, *SkipReason, ASKED, BY_TIMER})
METRICS = sorted(
    f"{family.name}_total" if family.type == "counter" else family.name
    for family in EnforcerMetrics().registry.collect()
)


@pytest.mark.parametrize("code", CODES)
def test_a_reason_is_documented(code: str) -> None:
    assert f"`{code}`" in PAGE


@pytest.mark.parametrize("name", METRICS)
def test_a_metric_is_documented(name: str) -> None:
    assert f"`{name}`" in PAGE
