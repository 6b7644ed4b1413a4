"""Energy between readings of a counter that restarts, and sometimes lies."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from analytics.energy import LARGEST_POWER_W, used_energy

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
STEP = timedelta(seconds=60)


def readings(
    *energies_j: float | None,
    limit_w: float | None = 400.0,
    device: str = "GPU-a",
    cluster: str = "c1",
) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "cluster": cluster,
            "node": "n1",
            "device_uuid": device,
            "sampled_at": [NOON + STEP * number for number in range(len(energies_j))],
            "energy_j": list(energies_j),
            "power_limit_w": limit_w,
        },
        schema_overrides={"energy_j": pl.Float64, "power_limit_w": pl.Float64},
    )


def used(samples: pl.DataFrame) -> list[float | None]:
    return used_energy(samples)["used_j"].to_list()


@pytest.mark.parametrize(
    ("energies_j", "expected"),
    [
        pytest.param((1000, 1010, 4), [10, 4], id="restart: what the new counter shows"),
        pytest.param((1000, 1010, 1.8446744073709551e16), [10, None], id="underflow"),
        pytest.param((1000, 49_000), [48_000], id="at twice the limit"),
        pytest.param((1000, 49_001), [None], id="past twice the limit"),
        pytest.param((1000, 48_999), [47_999], id="just within"),
        pytest.param((9e6, 8e6), [None], id="fell to what no restart explains"),
        pytest.param((1000, 1000), [0], id="zero is a measured zero"),
        pytest.param((1000, None, 1010), [10], id="nothing is made of a null"),
        pytest.param((None, None), [], id="nulls only"),
        pytest.param((1000,), [], id="one reading"),
    ],
)
def test_fault_34_energy_is_bounded_by_the_power_limit_and_the_interval_dropped(
    energies_j: tuple[float | None, ...], expected: list[float | None]
) -> None:
    assert used(readings(*energies_j)) == expected


def test_board_without_a_limit_is_bounded_by_the_largest() -> None:
    most_j = LARGEST_POWER_W * 2 * STEP.total_seconds()
    assert used(readings(0, most_j, limit_w=None)) == [most_j]
    assert used(readings(0, most_j + 1, limit_w=None)) == [None]


def test_devices_clusters_and_order_do_not_mix() -> None:
    all_of_them = pl.concat(
        [readings(1000, 1010), readings(5, 9, device="GPU-b"), readings(7, 9, cluster="c2")]
    )
    shuffled = all_of_them.sample(fraction=1.0, shuffle=True, seed=7)
    expected = [
        ("c1", "n1", "GPU-a", NOON, NOON + STEP, 10.0),
        ("c1", "n1", "GPU-b", NOON, NOON + STEP, 4.0),
        ("c2", "n1", "GPU-a", NOON, NOON + STEP, 2.0),
    ]
    assert used_energy(all_of_them).rows() == used_energy(shuffled).rows() == expected
