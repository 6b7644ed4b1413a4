"""Clock, ids and units: small words that every room relies on."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from steward import units
from steward.clock import FixedClock, SystemClock
from steward.ids import new_batch_id
from steward.version import __version__


def test_the_system_clock_tells_aware_utc() -> None:
    assert SystemClock().now().tzinfo is UTC


def test_a_fixed_clock_stands_still() -> None:
    noon = datetime(2026, 5, 1, 12, tzinfo=UTC)
    clock = FixedClock(noon)

    assert (clock.now(), clock.now()) == (noon, noon)


def test_batch_ids_never_repeat() -> None:
    assert len({new_batch_id() for _ in range(1_000)}) == 1_000


@pytest.mark.parametrize(
    ("printed", "factor", "base"),
    [
        pytest.param(0, units.PERCENT, 0.0, id="zero percent"),
        pytest.param(37, units.PERCENT, 0.37, id="percent"),
        pytest.param(81_559, units.MIB_BYTES, 85_520_809_984, id="framebuffer of an H100"),
        pytest.param(1_980, units.MHZ_HZ, 1_980_000_000, id="SM clock of an H100"),
        pytest.param(250, units.MILLI, 0.25, id="milli"),
    ],
)
def test_vendor_units_become_base_units(printed: float, factor: float, base: float) -> None:
    assert printed * factor == pytest.approx(base, rel=1e-12)


def test_the_version_is_a_release_number() -> None:
    assert all(part.isdigit() for part in __version__.split("."))
