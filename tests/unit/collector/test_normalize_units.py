"""From each generation's unit to base units; ranges, sentinels and names with two meanings."""

from __future__ import annotations

import pytest

from collector.normalize import units
from collector.normalize.dictionary import MEASURES, METRICS, XID
from collector.normalize.metric import Combine, Role
from collector.normalize.mig import mig_share
from collector.normalize.sentinels import absence_of, meaning
from collector.normalize.units import Unit
from collector.normalize.vendors.amd import AFID
from collector.normalize.vendors.ascend import NPU_ERROR
from tests.support.exposition_texts import GPU, OTHER_GPU, cells, line, scrape_once

RATIO = "DCGM_FI_DEV_GPU_UTIL_RATIO"
OLDER = "DCGM_FI_DEV_FB_USED"
NEWER = "DCGM_FI_DEV_FB_USED_BYTES"


@pytest.mark.parametrize(
    ("name", "value", "stored"),
    [
        ("DCGM_FI_DEV_GPU_UTIL", 57, ("busy_ratio", 0.57)),
        ("DCGM_FI_DEV_GPU_UTIL", 0, ("busy_ratio", 0.0)),
        ("dcgm_gpu_utilization", 57, ("busy_ratio", 0.57)),
        ("DCGM_FI_DEV_MEMORY_UTIL_RATIO", 0.57, ("memory_busy_ratio", 0.57)),
        ("DCGM_FI_DEV_MEMORY_UTIL_RATIO", 57, ("memory_busy_ratio", 0.57)),
        ("DCGM_FI_DEV_ENC_UTIL", 1, ("encoder_ratio", 0.01)),
        ("DCGM_FI_DEV_DEC_UTIL_RATIO", 1, ("decoder_ratio", 1.0)),
        ("DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO", 0.25, ("graphics_active_ratio", 0.25)),
        ("DCGM_FI_PROF_SM_UTIL_RATIO", 0.25, ("sm_active_ratio", 0.25)),
        ("DCGM_FI_PROF_SM_OCCUPANCY_RATIO", 0.25, ("sm_occupancy_ratio", 0.25)),
        ("DCGM_FI_PROF_TENSOR_UTIL_RATIO", 0.25, ("tensor_active_ratio", 0.25)),
        ("DCGM_FI_PROF_DRAM_UTIL_RATIO", 0.25, ("dram_active_ratio", 0.25)),
        ("DCGM_FI_PROF_PIPE_FP64_ACTIVE", 0.25, ("fp64_active_ratio", 0.25)),
        ("DCGM_FI_PROF_FP32_UTIL_RATIO", 0.25, ("fp32_active_ratio", 0.25)),
        ("DCGM_FI_PROF_PIPE_FP16_ACTIVE", 0.25, ("fp16_active_ratio", 0.25)),
        ("DCGM_FI_DEV_FB_TOTAL", 15109, ("memory_total_bytes", 15109 * 2**20)),
        ("DCGM_FI_DEV_FB_CAPACITY_BYTES", 2**34, ("memory_total_bytes", 2**34)),
        ("DCGM_FI_DEV_FB_FREE_BYTES", 2**31 - 16, ("memory_free_bytes", 2**31 - 16)),
        ("dcgm_fb_used", 3, ("memory_used_bytes", 3 * 2**20)),
        ("DCGM_FI_DEV_BOARD_POWER_WATTS", 116.163, ("power_w", 116.163)),
        ("dcgm_power_usage", 30.982, ("power_w", 30.982)),
        ("dcgm_total_energy_consumption", 55491669881, ("energy_j", 55491669.881)),
        ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", 2**31 - 16, ("energy_j", 2147483.632)),
        ("DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL", 57585, ("energy_j", 57585.0)),
        ("DCGM_FI_DEV_GPU_TEMP_CELSIUS", 37, ("temperature_celsius", 37.0)),
        ("DCGM_FI_DEV_MEMORY_TEMP_CELSIUS", 0, ("memory_temperature_celsius", 0.0)),
        ("DCGM_FI_DEV_MEMORY_CLOCK_HERTZ", 1215e6, ("memory_clock_hz", 1_215_000_000)),
        ("dcgm_memory_clock", 1215, ("memory_clock_hz", 1_215_000_000)),
        ("DCGM_FI_PROF_PCIE_TX_BYTES", 16503, ("pcie_transmit_bytes_per_s", 16503.0)),
        ("dcgm_pcie_rx_throughput", 16, ("pcie_receive_bytes_per_s", 16000.0)),
        ("DCGM_FI_DEV_PCIE_REPLAY_TOTAL", 3, ("pcie_replay_count", 3)),
        ("DCGM_FI_DEV_NVLINK_THROUGHPUT_TOTAL", 1, ("nvlink_bytes_per_s", 1_024_000.0)),
        ("DCGM_FI_DEV_NVLINK_BANDWIDTH_L3", 1, ("nvlink_bytes_per_s", 1_024_000.0)),
        ("DCGM_FI_DEV_PCIE_TX_THROUGHPUT", 16, ("pcie_transmit_bytes_per_s", 16000.0)),
        ("DCGM_FI_PROF_PIPE_INT_ACTIVE", 0.25, ("integer_active_ratio", 0.25)),
        ("DCGM_FI_PROF_INT_UTIL_RATIO", 0.25, ("integer_active_ratio", 0.25)),
        ("DCGM_FI_DEV_ENFORCED_POWER_LIMIT", 400, ("power_limit_w", 400.0)),
        ("DCGM_FI_DEV_BOARD_POWER_LIMIT_ENFORCED_WATTS", 400, ("power_limit_w", 400.0)),
        ("DCGM_FI_DEV_POWER_MGMT_LIMIT", 400, ("power_limit_w", 400.0)),
        ("DCGM_FI_DEV_POWER_USAGE_INSTANT", 117, ("power_w", 117.0)),
        ("DCGM_FI_DEV_FAN_SPEED", 40, ("fan_ratio", 0.4)),
        ("DCGM_FI_DEV_FAN_SPEED_RATIO", 0.4, ("fan_ratio", 0.4)),
        ("DCGM_FI_DEV_CLOCKS_EVENT_REASONS", 0x24, ("clock_event_reason_bits", 36)),
        ("DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", 0, ("clock_event_reason_bits", 0)),
        ("DCGM_FI_DEV_POWER_VIOLATION", 2_500_000_000, ("power_throttled_s", 2.5)),
        ("DCGM_FI_DEV_POWER_VIOLATION", 2**31 - 16, ("power_throttled_s", 2.147483632)),
        ("DCGM_FI_DEV_GPU_POWER_THROTTLE_SECONDS_TOTAL", 2.5, ("power_throttled_s", 2.5)),
        ("DCGM_FI_DEV_THERMAL_VIOLATION", 0, ("thermal_throttled_s", 0.0)),
        ("DCGM_FI_DEV_GPU_THERMAL_THROTTLE_SECONDS_TOTAL", 3, ("thermal_throttled_s", 3.0)),
        ("DCGM_FI_DEV_ECC_SBE_AGG_TOTAL", 7, ("ecc_corrected_count", 7)),
        ("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", 1, ("ecc_uncorrected_count", 1)),
        ("dcgm_ecc_dbe_aggregate_total", 1, ("ecc_uncorrected_count", 1)),
        ("DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", 2, ("row_remap_corrected_count", 2)),
        ("DCGM_FI_DEV_ROW_REMAP_UNCORRECTABLE_TOTAL", 2, ("row_remap_uncorrected_count", 2)),
        ("DCGM_FI_DEV_ROW_REMAP_FAILED", 1, ("row_remap_failed_count", 1)),
    ],
)
def test_name_of_any_generation_in_base_units(
    name: str, value: float, stored: tuple[str, float]
) -> None:
    column, expected = stored
    assert cells(scrape_once(line(name, value)), column, "absences") == [(expected, None)]


@pytest.mark.parametrize(
    ("unit", "value", "absence"),
    [
        pytest.param(units.PERCENT, 105, None, id="percent at its limit"),
        pytest.param(units.PERCENT, 105.001, "out_of_range", id="percent past its limit"),
        pytest.param(units.PERCENT, -0.001, "out_of_range", id="negative percent"),
        pytest.param(units.PERCENT, 0, None, id="zero percent"),
        pytest.param(units.PROFILING_RATIO, 2.0, None, id="ratio at its limit"),
        pytest.param(units.PROFILING_RATIO, 2.001, "out_of_range", id="ratio past its limit"),
        pytest.param(units.PERCENT, 2147483631, "out_of_range", id="just below the blanks"),
        pytest.param(units.PERCENT, 2147483632, "blank", id="int32 blank"),
        pytest.param(units.PERCENT, 2147483633, "blank", id="int32 not found"),
        pytest.param(units.PERCENT, 2147483634, "not_supported", id="int32 not supported"),
        pytest.param(units.PERCENT, 2147483635, "no_permission", id="int32 not permitted"),
        pytest.param(units.PERCENT, 2147483636, "out_of_range", id="just above the blanks"),
        pytest.param(units.MILLIJOULES, 2147483632, None, id="wide counter passes int32 blank"),
        pytest.param(units.BYTES, 9223372036854775792, "blank", id="int64 blank"),
        pytest.param(units.BYTES, 9223372036854775794, "not_supported", id="int64 not supported"),
        pytest.param(units.BYTES, 9.223372036854776e18, "blank", id="int64 as a float"),
        pytest.param(units.WATTS, 140737488355330.0, "not_supported", id="fp64 not supported"),
        pytest.param(units.CELSIUS, float("nan"), "blank", id="not a number"),
        pytest.param(units.CELSIUS, float("inf"), "out_of_range", id="infinite"),
    ],
)
def test_number_that_is_no_reading(unit: Unit, value: float, absence: str | None) -> None:
    assert absence_of(value, unit=unit) == absence


@pytest.mark.parametrize(
    "unit", [unit for unit in vars(units).values() if isinstance(unit, Unit)], ids=lambda u: u.name
)
def test_plausible_span_of_a_unit_holds_no_sentinel(unit: Unit) -> None:
    """Fields that count ns or uJ are 64-bit integers, so only those blanks matter to them."""
    wide = 2**63 - 4096 if unit.name in {"ns", "uJ"} else 2**47
    assert unit.highest < (wide if unit.may_exceed_int32 else 2**31 - 16)
    assert not any(unit.lowest <= value <= unit.highest for value, _ in unit.sentinels)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        pytest.param([line(RATIO, 64)], [(0.64, None)], id="above 1: percent"),
        pytest.param([line(RATIO, 1.05)], [(1.0, "busy_ratio=clamped")], id="1.05: ratio, clamped"),
        pytest.param([line(RATIO, 2)], [(0.02, None)], id="2: percent"),
        pytest.param(
            [line(RATIO, 1), line(RATIO, 64, OTHER_GPU)],
            [(0.01, None), (0.64, None)],
            id="one value settles the family",
        ),
        pytest.param([line(RATIO, 0.37)], [(0.37, None)], id="part of one: ratio"),
        pytest.param([line(RATIO, 0)], [(0.0, None)], id="zero is zero in both"),
        pytest.param(
            [line(RATIO, 1)], [(None, "busy_ratio=ambiguous_unit")], id="1 alone: nothing tells"
        ),
        pytest.param(
            [line(RATIO, 1), line(RATIO, 0, OTHER_GPU)],
            [(None, "busy_ratio=ambiguous_unit"), (0.0, None)],
            id="1 and 0: nothing tells of the 1",
        ),
        pytest.param([line(RATIO, 1), line(OLDER, 5)], [(0.01, None)], id="beside older names"),
        pytest.param([line(RATIO, 1), line(NEWER, 5)], [(1.0, None)], id="beside newer names"),
        pytest.param(
            [line(RATIO, 1), line(OLDER, 5), line(NEWER, 5 * 2**20)],
            [(None, "busy_ratio=ambiguous_unit")],
            id="beside both",
        ),
        pytest.param(
            [line(RATIO, 0.5), line(RATIO, 4294967295, OTHER_GPU)],
            [(0.5, None), (None, "busy_ratio=out_of_range")],
            id="a corrupt value settles nothing",
        ),
        pytest.param(
            [line(RATIO, 2147483634)], [(None, "busy_ratio=not_supported")], id="sentinel alone"
        ),
    ],
)
def test_name_that_was_a_percent_before_it_was_a_ratio(
    lines: list[str], expected: list[tuple[float | None, str | None]]
) -> None:
    assert cells(scrape_once(*lines), "busy_ratio", "absences") == expected


@pytest.mark.parametrize(
    ("parts", "total"),
    [
        pytest.param({"USED": 1, "FREE": 2, "RESERVED": 3}, 6, id="all parts"),
        pytest.param({"USED": 0, "FREE": 2, "RESERVED": 0}, 2, id="zero is a part"),
        pytest.param({"USED": 1, "FREE": 2}, None, id="reserved not told"),
        pytest.param({"USED": 1, "FREE": 2, "RESERVED": 2147483634}, None, id="one not supported"),
        pytest.param({"USED": 1, "FREE": 2, "RESERVED": 3, "TOTAL": 9}, 9, id="total is told"),
    ],
)
def test_memory_total_is_told_or_the_sum_of_all_its_parts(
    parts: dict[str, int], total: int | None
) -> None:
    lines = [line(f"DCGM_FI_DEV_FB_{part}", value) for part, value in parts.items()]
    expected = None if total is None else total * 2**20
    scrape = scrape_once(*lines)
    assert cells(scrape, "memory_total_bytes") == [(expected,)]
    assert [row["memory_total_bytes"] for row in scrape.devices.to_pylist()] == [expected]


def test_zero_null_and_both_in_one_family() -> None:
    name = "DCGM_FI_DEV_GPU_UTIL"
    scrape = scrape_once(
        line(name, 0), line(name, 2147483632, OTHER_GPU), line(name, 5, GPU | {"UUID": "GPU-c"})
    )
    assert cells(scrape, "busy_ratio", "absences") == [
        (0.0, None),
        (None, "busy_ratio=blank"),
        (0.05, None),
    ]


@pytest.mark.parametrize(
    "name", [n for n, m in METRICS.items() if m.role is Role.MEASURE and "{" not in n]
)
def test_zero_is_measured_and_no_number_is_null_for_every_name(name: str) -> None:
    metric = METRICS[name]
    first, second = ({metric.dialect.uuid[0]: f"GPU-{letter}"} for letter in "ab")
    zero, nothing = cells(
        scrape_once(line(name, 0, first), line(name, "NaN", second)), metric.column, "absences"
    )
    doubt = f"{metric.column}=low_trust" if metric.is_doubtful else None
    is_reading = metric.unit.lowest <= 0
    assert zero == ((0, doubt) if is_reading else (None, f"{metric.column}=not_supported"))
    assert nothing == (None, f"{metric.column}=blank")


def test_absences_are_listed_by_column() -> None:
    scrape = scrape_once(
        line("DCGM_FI_DEV_POWER_USAGE", 2147483634), line("DCGM_FI_DEV_GPU_UTIL", 300)
    )
    assert cells(scrape, "absences") == [("busy_ratio=out_of_range,power_w=not_supported",)]


@pytest.mark.parametrize(
    ("profile", "model", "shares"),
    [
        ("1g.5gb", "NVIDIA A100-SXM4-40GB", (1 / 7, 1 / 8)),
        ("2g.10gb", None, (2 / 7, 2 / 8)),
        ("3g.20gb", None, (3 / 7, 4 / 8)),
        ("4g.20gb", None, (4 / 7, 4 / 8)),
        ("7g.40gb", None, (1.0, 1.0)),
        ("1g.10gb+me", None, (1 / 7, 1 / 8)),
        ("1c.2g.10gb", None, (2 / 7, 2 / 8)),
        ("2g.12gb", "NVIDIA A30", (2 / 4, 2 / 4)),
        ("8g.80gb", None, (None, None)),
        ("0g.5gb", None, (None, None)),
        ("", None, (None, None)),
        (None, None, (None, None)),
    ],
)
def test_share_of_an_instance(
    profile: str | None, model: str | None, shares: tuple[float | None, float | None]
) -> None:
    share = mig_share(profile, model=model)
    assert (share.sm_ratio, share.memory_ratio) == shares


@pytest.mark.parametrize(
    ("text", "expected"),
    [("x", "x"), ("", None), (None, None), ("<<<NULL>>>", None), ("<<<NOT_PERM>>>", None)],
)
def test_label_that_says_nothing(text: str | None, expected: str | None) -> None:
    assert meaning(text) == expected


def test_dictionary_reaches_every_measure_and_nothing_else() -> None:
    measured = {metric.column for metric in METRICS.values() if metric.role is Role.MEASURE}
    assert measured == set(MEASURES)
    counted = {metric.column for metric in METRICS.values() if metric.role is Role.COUNTER}
    assert counted <= {"", *MEASURES}
    others = {m.column for m in METRICS.values() if m.role not in (Role.MEASURE, Role.COUNTER)}
    assert others <= {"", XID, AFID, NPU_ERROR}


@pytest.mark.parametrize("name", METRICS)
def test_name_is_consistent_in_itself(name: str) -> None:
    metric = METRICS[name]
    assert metric.name == name
    assert (metric.index >= 0) == (metric.column in MEASURES)
    assert metric.reference is None or METRICS[metric.reference].role is Role.COUNTER
    assert metric.index < 0 or MEASURES[metric.index] == metric.column
    assert metric.is_plain == (
        metric.role is Role.MEASURE
        and metric.combine is Combine.ONE
        and metric.rank == 0
        and not metric.is_doubtful
    )
