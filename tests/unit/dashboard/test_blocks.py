"""Tables on a screen: money is shown as the exact text it is, aligned like a number."""

from __future__ import annotations

import polars as pl

from analytics.reports.model import Column
from dashboard import blocks
from dashboard.i18n import english


def test_money_is_a_text_at_the_right_edge() -> None:
    column = Column(name="cost", title="Cost (EUR)", unit="currency")
    shown = blocks.column_config(column, pl.Series(["1234.50", None]), translate=english)
    assert shown["label"] == "Cost (EUR)"
    assert shown["alignment"] == "right"
    assert shown["type_config"]["type"] == "text"
