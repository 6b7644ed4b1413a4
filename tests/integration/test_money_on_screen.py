"""A table of money drawn by the real screen library: exact texts, an unknown amount left empty."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest


def screen() -> None:
    """Draw a table of money; run by the test as an application of its own."""
    from dashboard.blocks import rows  # this function is a script of its own
    from dashboard.i18n import english  # as above
    from tests.support.report_builders import money_table  # as above

    rows(money_table(), translate=english)


def test_a_table_of_money_is_drawn() -> None:
    app = AppTest.from_function(screen, default_timeout=60).run()
    assert not app.exception
    assert app.dataframe[0].value["cost"].dropna().tolist() == ["1234567.10"]
