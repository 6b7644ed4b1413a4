"""Which work to expect: learnt or kept, and known by the hash of its content."""

from __future__ import annotations

import polars as pl
import pytest

from analytics.shapes import (
    VERSION_LENGTH,
    expected_work,
    shapes_from_json,
    shapes_json,
    shapes_version,
    target_workload,
)
from steward.errors import InputError
from tests.support.analytics_frames import HOUR, NOON, ONE_HOUR, Row, rows
from tests.support.governance_rows import told


def asked(*given: Row) -> pl.DataFrame:
    return rows(
        "workload_current", *[{"workload_uid": f"w{n}", **row} for n, row in enumerate(given)]
    )


WORK = asked({"gpu_count": 1}, {"gpu_count": 1}, {"gpu_count": 8, "gpu_models": "H100"})


def test_learnt_from_the_period_where_none_is_kept() -> None:
    found = expected_work(WORK, ONE_HOUR, stored=told("state.target_workload"))
    assert (found.learnt_from_at, found.learnt_until_at) == (NOON, NOON + HOUR)
    assert not found.is_stored
    assert found.shapes.equals(target_workload(WORK))
    assert found.version == shapes_version(found.shapes)


def test_the_one_kept_last_counts() -> None:
    one, other = (shapes_json(target_workload(asked({"gpu_count": n}))) for n in (1, 2))
    stored = told(
        "state.target_workload",
        {"target_workload_id": 2, "version": "new", "shapes_json": other},
        {"target_workload_id": 1, "version": "old", "shapes_json": one},
    )
    found = expected_work(WORK, ONE_HOUR, stored=stored)
    assert (found.version, found.is_stored) == ("new", True)
    assert (found.learnt_from_at, found.learnt_until_at) == (NOON - HOUR, NOON)
    assert found.shapes["gpu_count"].to_list() == [2]


def test_the_version_is_the_content() -> None:
    shapes = target_workload(WORK)
    assert len(shapes_version(shapes)) == VERSION_LENGTH
    assert shapes_version(shapes) == shapes_version(shapes.reverse())
    assert shapes_version(shapes) != shapes_version(shapes.head(1))
    more = shapes.with_columns(pl.col("request_count") + 1)
    assert shapes_version(shapes) != shapes_version(more)


def test_kept_shapes_come_back_as_they_were() -> None:
    shapes = target_workload(WORK)
    assert shapes_from_json(shapes_json(shapes)).equals(shapes)


def test_no_requests_no_shapes() -> None:
    found = expected_work(asked(), ONE_HOUR)
    assert found.shapes.is_empty()
    assert shapes_from_json(shapes_json(found.shapes)).is_empty()


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("{", id="no JSON"),
        pytest.param('[{"cpu_milli": "much"}]', id="no number"),
        pytest.param('[{"cpu_milli": 1, "gpu_count": 1}]', id="a part missing"),
        pytest.param("[1, 2]", id="no shapes"),
        pytest.param("3", id="no list"),
    ],
)
def test_what_is_not_a_target_workload(text: str) -> None:
    with pytest.raises(InputError, match="kept target workload"):
        shapes_from_json(text)
