"""Charts by their specification and the frame behind them."""

from __future__ import annotations

from datetime import timedelta

import polars as pl
import pytest

from dashboard import charts
from dashboard.i18n.en import TEXTS
from tests.support.report_builders import NOON


def leaves(**hours: float) -> pl.DataFrame:
    total = sum(hours.values())
    return pl.DataFrame(
        {
            "leaf": list(hours),
            "title": [leaf.upper() for leaf in hours],
            "gpu_hours": list(hours.values()),
            "share_ratio": [value / total for value in hours.values()],
        }
    )


def test_segments_lie_end_to_end_from_nothing_to_all() -> None:
    spec = charts.where_hours_went(leaves(used=50.0, allocated_idle=30.0, free_idle=20.0)).to_dict()
    segments = next(iter(spec["datasets"].values())) if "datasets" in spec else None
    values = segments or spec["data"]["values"]
    ends = [(row["start_ratio"], row["end_ratio"]) for row in values]
    assert ends == [
        (0.0, pytest.approx(0.5)),
        (pytest.approx(0.5), pytest.approx(0.8)),
        (pytest.approx(0.8), pytest.approx(1.0)),
    ]


@pytest.mark.parametrize(
    ("part", "label"),
    [
        pytest.param(5.9, "", id="just too narrow for a label"),
        pytest.param(6.0, "6 %", id="exactly wide enough"),
        pytest.param(6.1, "6 %", id="just past"),
    ],
)
def test_narrow_segments_carry_no_label(part: float, label: str) -> None:
    spec = charts.where_hours_went(leaves(down=part, free_idle=100 - part)).to_dict()
    values = next(iter(spec["datasets"].values())) if "datasets" in spec else spec["data"]["values"]
    assert values[0]["label"] == label


def test_a_leaf_keeps_its_colour_whatever_stands_beside_it() -> None:
    alone = charts.where_hours_went(leaves(down=1.0)).to_dict()
    among = charts.where_hours_went(leaves(used=1.0, down=1.0)).to_dict()
    scales = [spec["layer"][0]["encoding"]["color"]["scale"] for spec in (alone, among)]
    colours = [dict(zip(one["domain"], one["range"], strict=True))["DOWN"] for one in scales]
    assert colours == [charts.LEAF_COLORS["down"]] * 2


def test_every_leaf_has_a_colour_of_its_own_and_a_name() -> None:
    assert len(set(charts.LEAF_COLORS.values())) == len(charts.LEAF_COLORS)
    assert {f"leaf.{leaf}" for leaf in charts.LEAF_COLORS} <= TEXTS.keys()


def test_no_time_at_all_draws_an_empty_bar() -> None:
    spec = charts.where_hours_went(leaves(down=1.0).clear()).to_dict()
    assert spec["layer"][0]["encoding"]["color"]["scale"]["domain"] == []


def test_waiting_and_idle_keep_gaps_where_nothing_is_known() -> None:
    points = pl.DataFrame(
        {
            "at": [NOON, NOON + timedelta(hours=1)],
            "waiting_gpu_count": [4.0, None],
            "idle_gpu_count": [0.0, 2.0],
        }
    )
    spec = charts.waiting_and_idle(points, waiting="asked", idle="idle").to_dict()
    values = next(iter(spec["datasets"].values())) if "datasets" in spec else spec["data"]["values"]
    assert values == [
        {"at": "2026-05-01T12:00:00Z", "line": "asked", "value": 4.0},
        {"at": "2026-05-01T13:00:00Z", "line": "asked", "value": None},
        {"at": "2026-05-01T12:00:00Z", "line": "idle", "value": 0.0},
        {"at": "2026-05-01T13:00:00Z", "line": "idle", "value": 2.0},
    ]
