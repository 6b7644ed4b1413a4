"""Laws are not traced: what they run is covered by the tests of single cases, in half the time."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the laws of this folder."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.no_cover)
