"""What every test may lean on: where the shared test data is, and how a skip is said aloud."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "steward", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
settings.load_profile("steward")


def skip_aloud(reason: str) -> None:
    """Skip for want of something outside the project; in CI that is a failure.

    Raises:
        pytest.fail.Exception: in CI, where nothing may be missing.
        pytest.skip.Exception: elsewhere.
    """
    if os.environ.get("CI"):
        pytest.fail(f"would be skipped, which CI does not allow: {reason}")
    pytest.skip(reason)


@pytest.fixture(scope="session")
def test_data() -> Path:
    """Return the folder with exporter texts, public traces and golden cases."""
    place = os.environ.get("STEWARD_TEST_DATA")
    if place is None:
        skip_aloud("STEWARD_TEST_DATA does not name the test data folder")
        raise AssertionError
    folder = Path(place)
    if not (folder / "golden").is_dir():
        pytest.fail(f"STEWARD_TEST_DATA={folder} holds no golden/ folder")
    return folder
