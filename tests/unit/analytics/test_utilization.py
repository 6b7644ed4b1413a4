"""What device-time was used for, and how the means are taken."""

from __future__ import annotations

import polars as pl
import pytest

from analytics.reports import utilization as report
from analytics.reports.grouping import GROUPINGS, grouping
from analytics.reports.model import Question, Report
from analytics.utilization import COLUMN_HOURS, LEAF_HOURS, leaves, means, unattributed
from steward.errors import UsageError
from tests.support.analytics_frames import ONE_HOUR, Row, frames
from tests.support.ledger_rows import free, held, ledger


def whole(*rows: Row) -> dict[str, object]:
    (found,) = leaves(ledger(*rows)).to_dicts()
    return found


def made(*rows: Row, by: str | None = None, caveat: Row | None = None) -> Report:
    world = frames(ledger=ledger(*rows))
    if caveat is not None:
        world["ledger_caveat"] = pl.DataFrame(
            [{**NO_CAVEAT, **caveat}], schema=world["ledger_caveat"].schema
        )
    inputs = {name: world[name] for name in report.DEFINITION.inputs}
    return report.build(inputs, Question(period=ONE_HOUR, by=by))


NO_CAVEAT: Row = {"stray_device_count": 0, "indistinct_device_count": 0,
                  "unplaced_allocation_count": 0, "unplaced_gpu_hours": 0.0,
                  "has_holders": True}  # fmt: skip


def value(found: Report, key: str) -> object:
    return next(figure.value for figure in found.figures if figure.key == key)


def table(found: Report, key: str) -> pl.DataFrame:
    return next(each.frame for each in found.tables if each.key == key)


ALL_LEAVES = (
    held(used_measured=1, used_estimated=2, ineffective=3, idle=4, unknown=5, down=6),
    free(stranded=7, reserved_unused=8, free_idle=9),
)


def test_leaves_and_columns_both_add_up_to_the_wall() -> None:
    found = whole(*ALL_LEAVES)
    assert found["wall_gpu_hours"] == 45
    assert [found[name] for name in LEAF_HOURS] == [3, 7, 5, 6, 7, 8, 9]
    assert [found[name] for name in COLUMN_HOURS] == [1, 2, 3, 4, 5, 6, 7, 8, 9]


def test_shares_say_of_what_they_are() -> None:
    found = whole(*ALL_LEAVES)
    assert found["occupancy_ratio"] == pytest.approx(15 / 45)
    assert found["used_of_capacity_ratio"] == pytest.approx(3 / 45)
    assert found["utilization_ratio"] == pytest.approx(3 / 10)
    assert found["estimated_of_used_ratio"] == pytest.approx(2 / 3)
    assert found["coverage_ratio"] == pytest.approx(10 / 15)


@pytest.mark.parametrize(
    ("rows", "utilization", "coverage"),
    [
        pytest.param([held(idle=1)], 0.0, 1.0, id="zero: held and measured at rest"),
        pytest.param([held(unknown=1)], None, 0.0, id="null: held, use not observed"),
        pytest.param([held(idle=1), held(unknown=1)], 0.0, 0.5, id="both: the known half"),
        pytest.param([free(free_idle=1)], None, None, id="nothing held"),
        pytest.param([], None, None, id="no device"),
    ],
)
def test_utilisation_with_its_coverage(
    rows: list[Row], utilization: float | None, coverage: float | None
) -> None:
    found = whole(*rows)
    assert (found["utilization_ratio"], found["coverage_ratio"]) == (utilization, coverage)


@pytest.mark.parametrize(
    ("rows", "memory"),
    [
        pytest.param([held(idle=2, idle_memory_byte_s=0.0)], 0.0, id="zero"),
        pytest.param([held(used=1)], None, id="null: never at rest"),
        pytest.param([held(idle=2, idle_memory_byte_s=7200.0 * 3e9)], 3e9, id="of a whole GPU"),
    ],
)
def test_memory_held_while_idle(rows: list[Row], memory: float | None) -> None:
    assert whole(*rows)["idle_memory_bytes"] == pytest.approx(memory)


def test_every_tier_has_its_own_means() -> None:
    rows = ledger(
        held(used=1, idle=1),
        held(used_estimated=4, tier=2, observed_s=14400.0, effective_s=3600.0 * 3,
             effective_known_s=3600.0 * 4, apparent_s=7200.0, apparent_known_s=14400.0,
             busy_source_s=7200.0, graphics_source_s=7200.0),
        held(unknown=4, tier=None),
    )  # fmt: skip
    found = means(rows, "model").select(
        "tier", "coverage_ratio", "effective_ratio", "apparent_ratio", "apparent_source"
    )
    assert found.rows() == [(1, 0.2, 0.5, None, None), (2, 0.4, 0.75, 0.5, "mixed")]


def test_unattributed_is_held_by_nobody_known_or_busy_without_holder() -> None:
    rows = ledger(
        held(used=1, tenant_id=None),
        held(used=2),
        free(unknown=3, reason="busy_without_holder"),
        free(unknown=4, reason="no_holder_recorded"),
        free(free_idle=5),
    )
    assert leaves(unattributed(rows))["allocated_gpu_hours"].to_list() == [4]


@pytest.mark.parametrize("word", GROUPINGS)
def test_any_grouping_gives_hours_and_means(word: str) -> None:
    found = made(*ALL_LEAVES, by=word)
    keys = [each.key for each in found.tables]
    key = grouping(word).table_key
    assert keys == ["leaves", "columns", "by_tier", f"by_{key}", f"means_by_{key}"]
    assert table(found, f"by_{key}").height == 1


def test_an_unknown_grouping_is_refused() -> None:
    with pytest.raises(UsageError, match="cannot group by 'shoe size'"):
        made(*ALL_LEAVES, by="shoe size")


def test_a_capability_that_nobody_knows_is_null() -> None:
    found = made(held(used=1), held(used=1, model="Abacus 9"), by="capability")
    assert table(found, "by_capability")["capability"].to_list() == ["S", None]


def test_a_team_is_shown_what_is_reserved_for_it() -> None:
    found = table(
        made(held(used=1), free(reserved_unused=2, tenant_id="team-b"), free(free_idle=9)),
        "by_tenant",
    )
    columns = ("tenant_id", "held_gpu_hours", "reserved_unused_gpu_hours")
    assert found.select(columns).rows() == [("team-a", 1.0, 0.0), ("team-b", 0.0, 2.0)]


def test_without_holders_nothing_is_called_idle() -> None:
    found = made(free(unknown=3, reason="no_holder_recorded"), caveat={"has_holders": False})
    assert [value(found, key) for key in ("allocated_gpu_hours", "idle_gpu_hours")] == [None, None]
    assert value(found, "unknown_use_gpu_hours") == 3
    (said,) = found.findings
    assert said.startswith("No holder is recorded in this period")


@pytest.mark.parametrize(
    ("caveat", "words"),
    [
        pytest.param({"stray_device_count": 2}, "2 devices send readings", id="strays"),
        pytest.param({"indistinct_device_count": 3}, "3 devices share their id", id="indistinct"),
        pytest.param(
            {"unplaced_allocation_count": 1, "unplaced_gpu_hours": 2.5},
            "1 allocations (2.5 GPU-hours) name a GPU",
            id="unplaced",
        ),
    ],
)
def test_what_could_not_be_placed_is_told(caveat: Row, words: str) -> None:
    assert any(words in text for text in made(held(used=1), caveat=caveat).findings)
    assert made(held(used=1), caveat={}).findings == ()


@pytest.mark.parametrize(
    ("unknown", "is_told"),
    [
        pytest.param(0.1999, False, id="just enough is known"),
        pytest.param(0.2, False, id="exactly enough"),
        pytest.param(0.2001, True, id="too little"),
    ],
)
def test_thin_coverage_is_told(unknown: float, *, is_told: bool) -> None:
    found = made(held(used=1 - unknown), held(unknown=unknown, reason="unobserved"))
    assert any("not yet fit to publish" in text for text in found.findings) is is_told
    assert any("because no reading covers it" in text for text in found.findings)


@pytest.mark.parametrize(
    ("stuck_s", "is_told"),
    [
        pytest.param(35.9, False, id="just under a hundredth of held time"),
        pytest.param(36.0, True, id="exactly a hundredth"),
        pytest.param(36.1, True, id="more"),
    ],
)
def test_time_that_looks_busy_in_vain_is_told(stuck_s: float, *, is_told: bool) -> None:
    found = made(held(ineffective=1, stuck_s=stuck_s))
    assert any("suspected stuck" in text for text in found.findings) is is_told


@pytest.mark.parametrize(
    ("nameless", "is_told"),
    [
        pytest.param(1.99, False, id="just within the target"),
        pytest.param(2.0, False, id="exactly at it"),
        pytest.param(2.01, True, id="past it"),
    ],
)
def test_what_nobody_answers_for_is_told(nameless: float, *, is_told: bool) -> None:
    found = made(held(used=100 - nameless), held(used=nameless, tenant_id=None))
    assert any("nobody answers for them" in text for text in found.findings) is is_told
