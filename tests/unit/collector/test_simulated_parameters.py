"""What can be simulated, and what identifies a simulation."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from collector.sources.simulated import SimulationParameters
from collector.sources.simulated.fleet import build_fleet
from steward.errors import UsageError

UNTIL = datetime(2026, 6, 15, tzinfo=UTC)
DEFAULT = SimulationParameters(until_at=UNTIL)


def changed(name: str, value: int) -> dict[str, Any]:
    """Return one changed field, for ``replace``."""
    return {name: value}


@pytest.mark.parametrize(
    ("name", "flag", "bounds"),
    [
        ("days", "--days", (1, 90)),
        ("node_count", "--nodes", (4, 500)),
        ("cadence_s", "--cadence", (5, 3_600)),
        ("seed", "--seed", (0, 2**32 - 1)),
    ],
)
def test_bounds(name: str, flag: str, bounds: tuple[int, int]) -> None:
    for inside in bounds:
        replace(DEFAULT, **changed(name, inside))
    for outside in (bounds[0] - 1, bounds[1] + 1):
        with pytest.raises(UsageError, match=rf"{flag} {outside} is outside") as caught:
            replace(DEFAULT, **changed(name, outside))
        assert str(bounds[1]) in caught.value.hint


def test_the_same_instant_in_another_zone_is_the_same_simulation() -> None:
    shanghai = UNTIL.astimezone(timezone(timedelta(hours=8)))
    one, other = SimulationParameters(until_at=UNTIL), SimulationParameters(until_at=shanghai)
    assert one.identity() == other.identity()
    assert one.from_at == other.from_at == UNTIL - timedelta(days=14)


@pytest.mark.parametrize("node_count", [4, 5, 24, 100])
def test_a_fleet_has_as_many_nodes_as_asked_and_all_four_models(node_count: int) -> None:
    fleet = build_fleet(seed=1, node_count=node_count)
    assert len(fleet.nodes) == node_count
    assert {device.sharing_mode for device in fleet.devices} == {"exclusive", "mig", "shared_equal"}
    assert len({node.shape.model.name for node in fleet.nodes}) == 4


def test_the_default_fleet_has_160_gpus() -> None:
    fleet = build_fleet(seed=7, node_count=24)
    assert len(fleet.devices) == 160
    assert len({device.uuid for device in fleet.devices}) == 160
