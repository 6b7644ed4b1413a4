"""Which changes of a text are read by plan, and which send it the full way; both give the same."""

from __future__ import annotations

import pytest

from tests.support.exposition_texts import GPU, OTHER_GPU, instance, line, pod
from tests.support.planned_targets import Twins

UTIL = "DCGM_FI_DEV_GPU_UTIL"
RATIO = "DCGM_FI_DEV_GPU_UTIL_RATIO"
SM = "DCGM_FI_PROF_SM_ACTIVE"
TEMP = "DCGM_FI_DEV_GPU_TEMP"
XID = "DCGM_FI_DEV_XID_ERRORS"
USED, FREE, RESERVED = (f"DCGM_FI_DEV_FB_{part}" for part in ("USED", "FREE", "RESERVED"))
BASE = (
    f"# TYPE {UTIL} gauge",
    line(UTIL, 50),
    line(UTIL, 60, OTHER_GPU),
    line(SM, 0.5),
    line(XID, 0),
    line("vendor_unknown", 7),
    line("DCGM_FI_DEV_FB_TOTAL", 81_559),
)


def changed(number: int, text: str) -> tuple[str, ...]:
    """Return the base text with another line at this place."""
    return (*BASE[:number], text, *BASE[number + 1 :])


@pytest.mark.parametrize(
    ("lines", "is_full"),
    [
        pytest.param(BASE, False, id="the same text"),
        pytest.param(changed(1, line(UTIL, 0)), False, id="zero"),
        pytest.param(changed(1, line(UTIL, "1e1")), False, id="a float"),
        pytest.param(changed(1, line(UTIL, 100)), False, id="exactly at the end of the range"),
        pytest.param(changed(1, line(UTIL, 100.1)), True, id="just past it: clamped"),
        pytest.param(changed(1, line(UTIL, -0.1)), True, id="just below the range"),
        pytest.param(changed(1, line(UTIL, "NaN")), True, id="no number"),
        pytest.param(changed(1, line(UTIL, 2147483632)), True, id="a sentinel"),
        pytest.param(changed(1, line(UTIL, "5 1777896000000")), True, id="a time of its own"),
        pytest.param(changed(1, line(UTIL, "1_0")), True, id="a digit separator"),
        pytest.param(changed(1, line(UTIL, 50, GPU | pod("p"))), True, id="a pod came"),
        pytest.param(changed(1, "DCGM_FI_DEV_GPU_UTIL{ broken"), True, id="a broken line"),
        pytest.param(changed(0, "# TYPE DCGM_FI_DEV_GPU_UTIL counter"), True, id="a comment"),
        pytest.param(changed(4, line(XID, 31)), True, id="an XID"),
        pytest.param(changed(5, line("vendor_unknown", -1e300)), False, id="of unknown meaning"),
        pytest.param(changed(6, line("DCGM_FI_DEV_FB_TOTAL", 40_536)), True, id="a fact"),
        pytest.param(BASE[:-1], True, id="a line less"),
        pytest.param((*BASE, line(SM, 0.5, OTHER_GPU)), True, id="a line more"),
        pytest.param((BASE[2], BASE[1], *BASE[3:]), True, id="another order"),
    ],
)
def test_what_a_change_means(lines: tuple[str, ...], *, is_full: bool) -> None:
    twins = Twins()
    twins.scrape(*BASE)
    assert twins.scrape(*lines)[1] is is_full


def test_a_constant_oddity_does_not_keep_a_text_from_being_read_by_plan() -> None:
    twins = Twins()
    for busy in (10, 20, 0):
        odd = (line(SM, 1.2), line(TEMP, 2147483634), line("DCGM_FI_DEV_SM_CLOCK", "NaN"))
        given, is_full = twins.scrape(line(UTIL, busy), line(UTIL, 7, OTHER_GPU), *odd)
        (row, _) = given["device_sample"]
        assert (row["busy_ratio"], row["sm_active_ratio"]) == (busy / 100, 1.0)
        assert row["temperature_celsius"] is None
        assert row["absences"] == (
            "sm_active_ratio=clamped,sm_clock_hz=blank,temperature_celsius=not_supported"
        )
        assert is_full is (busy == 10)


def test_a_device_that_stays_away_is_lost_at_the_second_scrape() -> None:
    twins = Twins()
    both = (line(UTIL, 1), line(UTIL, 2, OTHER_GPU), line(TEMP, 30))
    kinds = []
    for lines in (both, both, *[(both[0], both[2])] * 4):
        given, is_full = twins.scrape(*lines)
        kinds.append(([row["kind"] for row in given.get("device_event", ())], is_full))
    assert kinds == [
        ([], True),
        ([], False),
        ([], True),
        (["lost"], True),
        ([], False),
        ([], False),
    ]


def test_memory_that_adds_up_to_something_else_is_read_in_full() -> None:
    twins = Twins()

    def memory(used: int, free: int, reserved: str) -> list[str]:
        return [line(USED, used), line(FREE, free), line(RESERVED, reserved), line(UTIL, 1)]

    assert twins.scrape(*memory(10, 80, "10"))[1] is True
    assert twins.scrape(*memory(30, 60, "10"))[1] is False
    assert twins.scrape(*memory(30, 61, "10"))[1] is True
    assert twins.scrape(*memory(30, 61, " 10"))[1] is True, "a line that is not split"
    assert twins.scrape(*memory(31, 60, " 10"))[1] is True
    assert twins.scrape(*memory(31, 66, " 10"))[1] is True


def test_a_family_is_read_by_plan_only_as_a_whole() -> None:
    twins = Twins()
    for first, is_full in ((50, True), (60, True), (1, True)):
        lines = [
            line(RATIO, first),
            line(RATIO, " 0.5", OTHER_GPU),
            line("DCGM_FI_DEV_MEM_COPY_UTIL", 3),
            line(TEMP, 30),
        ]
        assert twins.scrape(*lines)[1] is is_full


def test_a_family_whose_unit_changes_is_read_in_full() -> None:
    twins = Twins()
    told = []
    for value in (0.5, 0.25, 1, 2, 50, 60):
        given, is_full = twins.scrape(line(RATIO, value), line(TEMP, 30), line(SM, 0.1))
        told.append((given["device_sample"][0]["busy_ratio"], is_full))
    assert told[:3] == [(0.5, True), (0.25, False), (None, True)]
    assert told[3:] == [(0.02, True), (0.5, True), (0.6, False)]


def test_values_of_a_board_that_instances_repeat() -> None:
    twins = Twins()

    def temperatures(*values: float) -> list[str]:
        places = (GPU, instance(7), instance(9))
        shown = [line(TEMP, value, place) for value, place in zip(values, places, strict=True)]
        return [*shown, line(UTIL, 5, instance(7)), line(SM, 0.2, instance(7))]

    assert twins.scrape(*temperatures(30, 30, 30))[1] is True
    assert twins.scrape(*temperatures(31, 31, 31))[1] is False
    given, is_full = twins.scrape(*temperatures(31, 32, 31))
    assert (given["device_sample"][0]["temperature_celsius"], is_full) == (32, True)


def test_second_choices_and_the_largest_of_several() -> None:
    twins = Twins()
    gpu = {"gpu_uuid": "u", "gpu_id": "0", "hostname": "n1"}
    for power, average, clock, is_full in ((300, 290, 900, True), (310, 1, 1_000, False)):
        given, was_full = twins.scrape(
            line("gpu_package_power", power, gpu),
            line("gpu_average_package_power", average, gpu),
            line("gpu_clock", clock, gpu | {"clock_type": "system", "clock_index": "0"}),
            line("gpu_clock", 950, gpu | {"clock_type": "system", "clock_index": "1"}),
            line("gpu_gfx_activity", 50, gpu),
        )
        (row,) = given["device_sample"]
        assert (row["power_w"], row["sm_clock_hz"]) == (power, max(clock, 950) * 1_000_000)
        assert was_full is is_full


def test_a_line_repeated_in_another_spelling_stays_a_repeat() -> None:
    twins = Twins()
    for number in (70, 80, 90):
        given, is_full = twins.scrape(line(UTIL, "5 "), line(UTIL, number), line(SM, 0.1))
        assert (given["device_sample"][0]["busy_ratio"], is_full) == (0.05, True)


def test_processes_are_told_by_plan_too() -> None:
    twins = Twins()
    labels = {"uuid": "GPU-a", "gpu": "0", "node": "n1", "instance_id": ""}
    pid = labels | {"pid": "17", "process": "python", "pod_uid": "p1"}
    for used, ratio, is_full in ((1_000, 0.5, True), (2_000, 0.0, False), (3_000, 7.5, False)):
        given, was_full = twins.scrape(
            line("steward_gpu_busy_ratio", ratio / 10, labels),
            line("steward_gpu_power_watts", 100, labels),
            line("steward_gpu_process_memory_used_bytes", used, pid),
            line("steward_gpu_process_sm_ratio", ratio, pid),
        )
        (row,) = given["device_process"]
        assert (row["memory_used_bytes"], row["pod_uid"]) == (used, "p1")
        assert row["sm_ratio"] == (ratio if ratio <= 1 else None)
        assert was_full is is_full


def test_texts_that_never_fit_are_tried_less_and_less_often() -> None:
    twins = Twins()
    planner = twins.planned.targets[0].planner
    made = []
    for number in range(40):
        twins.scrape(line(UTIL, 5), line(SM, 0.1), line(XID, number))
        made.append(planner.has_plan)
    assert [n for n, has_plan in enumerate(made) if has_plan] == [0, 2, 6, 14, 30]
