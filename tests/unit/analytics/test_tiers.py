"""What one reading says of utilisation."""

from __future__ import annotations

import polars as pl
import pytest

from analytics.tiers import RATIOS, with_readings
from tests.support.analytics_frames import Row


def reading(**values: float | None) -> dict[str, object]:
    frame = pl.DataFrame(
        {name: [values.get(name)] for name in RATIOS}, schema=dict.fromkeys(RATIOS, pl.Float64)
    )
    return with_readings(frame).row(0, named=True)


@pytest.mark.parametrize(
    ("values", "tier", "effective"),
    [
        pytest.param({"tensor_active_ratio": 0.465, "dram_active_ratio": 0.1}, 1, 0.5, id="tensor"),
        pytest.param({"tensor_active_ratio": 0.0, "dram_active_ratio": 0.4}, 1, 0.5, id="memory"),
        pytest.param(
            {"sm_active_ratio": 0.3, "tensor_active_ratio": 0.9, "dram_active_ratio": 0.1},
            1,
            0.3,
            id="never above SM activity",
        ),
        pytest.param({"tensor_active_ratio": 0.0, "dram_active_ratio": 0.0}, 1, 0.0, id="zero"),
        pytest.param(
            {"fp64_active_ratio": 0.1, "fp32_active_ratio": 0.6, "fp16_active_ratio": 0.0,
             "dram_active_ratio": 0.0},
            1, 0.6, id="floating point without tensor cores",
        ),
        pytest.param({"sm_active_ratio": 0.7}, 2, 0.7, id="SM only is an upper bound"),
        pytest.param({"sm_active_ratio": 0.7, "dram_active_ratio": 0.1}, 2, 0.7, id="no pipes"),
        pytest.param({"busy_ratio": 0.97}, 4, None, id="apparent only"),
        pytest.param({"graphics_active_ratio": 0.5}, 4, None, id="graphics only"),
        pytest.param({}, None, None, id="nothing"),
    ],
)  # fmt: skip
def test_tier_and_effective(values: Row, tier: int | None, effective: float | None) -> None:
    said = reading(**values)  # type: ignore[arg-type]  # ratios only
    assert said["tier"] == tier
    assert said["effective_ratio"] == (None if effective is None else pytest.approx(effective))


@pytest.mark.parametrize(
    ("values", "apparent", "source"),
    [
        ({"busy_ratio": 0.2, "graphics_active_ratio": 0.9}, 0.2, "busy"),
        ({"graphics_active_ratio": 0.9}, 0.9, "graphics"),
        ({"busy_ratio": 0.0, "graphics_active_ratio": 0.9}, 0.0, "busy"),
        ({"sm_active_ratio": 0.5}, None, None),
    ],
)
def test_apparent_says_its_source(values: Row, apparent: float | None, source: str | None) -> None:
    said = reading(**values)  # type: ignore[arg-type]  # ratios only
    assert (said["apparent_ratio"], said["apparent_source"]) == (apparent, source)


@pytest.mark.parametrize(
    ("values", "is_idle"),
    [
        pytest.param({"sm_active_ratio": 0.0099, "dram_active_ratio": 0.0}, True, id="just below"),
        pytest.param({"sm_active_ratio": 0.01, "dram_active_ratio": 0.0}, False, id="exactly at"),
        pytest.param({"sm_active_ratio": 0.0101, "dram_active_ratio": 0.0}, False, id="just above"),
        pytest.param({"sm_active_ratio": 0.0, "dram_active_ratio": 0.01}, False, id="memory works"),
        pytest.param({"sm_active_ratio": 0.0, "busy_ratio": 1.0}, True, id="SM rests, looks busy"),
        pytest.param({"graphics_active_ratio": 0.0}, True, id="graphics at rest"),
        pytest.param({"busy_ratio": 0.0}, True, id="not busy"),
        pytest.param({"busy_ratio": 0.01}, False, id="hardly busy"),
        pytest.param({}, None, id="a null reading is never idle"),
        pytest.param({"dram_active_ratio": 0.0}, None, id="memory alone says nothing"),
    ],
)
def test_idle(values: Row, is_idle: bool | None) -> None:  # an expectation
    assert reading(**values)["is_idle"] is is_idle  # type: ignore[arg-type]  # ratios only


@pytest.mark.parametrize(
    ("busy", "dram", "is_stuck"),
    [(0.9499, 0.0, False), (0.95, 0.0, True), (0.951, 0.0199, True), (0.96, 0.02, False)],
)
def test_stuck(busy: float, dram: float, is_stuck: bool) -> None:  # an expectation
    said = reading(busy_ratio=busy, tensor_active_ratio=0.0, dram_active_ratio=dram)
    assert said["is_stuck"] is is_stuck


def test_stuck_needs_the_pipes() -> None:
    assert reading(busy_ratio=1.0)["is_stuck"] is None


def test_values_out_of_range_are_clamped() -> None:
    said = reading(sm_active_ratio=1.294, tensor_active_ratio=1.2, dram_active_ratio=0.0)
    assert said["effective_ratio"] == 1.0


def test_gap_is_never_negative() -> None:
    said = reading(busy_ratio=0.1, tensor_active_ratio=0.465, dram_active_ratio=0.0)
    assert said["gap_ratio"] == 0.0


@pytest.mark.parametrize(
    ("power_w", "tier", "effective"),
    [(60.0, 3, 0.0), (230.0, 3, 0.5), (400.0, 3, 1.0), (None, 4, None)],
)
def test_power_is_a_proxy_keyed_by_mig_mode(
    power_w: float | None, tier: int, effective: float | None
) -> None:
    schema = {**dict.fromkeys(RATIOS, pl.Float64), "power_w": pl.Float64}
    frame = pl.DataFrame(
        {**{name: [None] for name in RATIOS}, "busy_ratio": [1.0], "power_w": [power_w]},
        schema=schema,
    ).with_columns(model=pl.lit("A100"), is_mig=pl.lit(value=False))
    bounds = pl.DataFrame(
        {"model": ["A100", "A100"], "is_mig": [False, True], "power_idle_w": [60.0, 76.0],
         "power_limit_w": [400.0, 400.0]}
    )  # fmt: skip
    said = with_readings(frame, power_bounds=bounds).row(0, named=True)
    assert (said["tier"], said["effective_ratio"]) == (tier, effective)
