"""The stored ledger, asked embedded and over HTTP: newest builds only, exact sums, any division."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from analytics.schemas.usage import ASKED
from dashboard.reports.ledger_compose import ledger_sums, without
from dashboard.reports.ledger_sums import by_span, narrowed
from sql.client import RemoteWarehouse
from sql.warehouse import EmbeddedWarehouse, open_embedded
from steward.period import Period
from tests.support.ledger_stored import build_row, day_row, hour_row, rest_row, store
from tests.support.warehouse_rows import samples
from tests.support.warehouse_server import remote

Warehouse = EmbeddedWarehouse | RemoteWarehouse
MONDAY = datetime(2026, 5, 4, tzinfo=UTC)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
LARGE = 2**62
"""Two of them are more than 63 bits hold."""


def hour(number: int) -> datetime:
    return MONDAY + number * HOUR


@pytest.fixture(scope="module", params=["embedded", "remote"])
def warehouse(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Warehouse]:
    data_dir = tmp_path_factory.mktemp("ledger")
    opener = closing(open_embedded(data_dir)) if request.param == "embedded" else remote(data_dir)
    with opener as opened:
        fill(opened)
        yield opened


def fill(warehouse: Warehouse) -> None:
    """Store two hours of two clusters, one hour built twice, and rows that no build vouches for."""
    store(
        warehouse,
        "ledger_hour",
        hour_row(hour(0), build_id="old", wall_ticks=1, used_measured_ticks=1),
        hour_row(hour(0), build_id="new", wall_ticks=LARGE, used_measured_ticks=LARGE),
        hour_row(hour(0), build_id="killed", wall_ticks=7, used_measured_ticks=7),
        hour_row(hour(1), build_id="b1", wall_ticks=LARGE, used_measured_ticks=LARGE),
        hour_row(hour(1), build_id="b1", device_uuid="GPU-1", apparent_s=2.5),
        hour_row(hour(1), build_id="b1", cluster="d", memory_peak_bytes=9),
        hour_row(hour(1), build_id="b1", cluster="d", memory_peak_bytes=None),
    )
    store(
        warehouse,
        "ledger_build",
        build_row(starts_at=hour(0), build_id="old", built_at=MONDAY),
        build_row(starts_at=hour(0), build_id="new", built_at=MONDAY + HOUR, stray_device_count=3),
        build_row(starts_at=hour(1), build_id="b1"),
        build_row(starts_at=MONDAY, grain="day", build_id="d1"),
    )
    store(
        warehouse,
        "rest_stretch",
        rest_row(hour(0), build_id="old"),
        rest_row(hour(0), build_id="new", device_uuid="GPU-7"),
        rest_row(hour(1), build_id="b1", cluster="d"),
    )
    store(warehouse, "ledger_day", day_row(MONDAY, build_id="d1"), day_row(MONDAY, build_id="no"))


def sums(
    warehouse: Warehouse,
    *pieces: tuple[Period, Period],
    query: str = "ledger_hours",
    cluster: str | None = None,
) -> pl.DataFrame:
    return ledger_sums(warehouse, query, pieces, cluster=cluster)


def whole(first: int, until: int) -> tuple[Period, Period]:
    period = Period(hour(first), hour(until))
    return period, period


def test_the_newest_build_of_an_hour_counts(warehouse: Warehouse) -> None:
    built = pl.DataFrame(
        warehouse.query("ledger_built", {"from_at": MONDAY, "until_at": hour(9), "grain": "hour"})
    )
    assert built.select("build_id", "build_count").rows() == [("new", 2), ("b1", 1)]


def test_a_day_is_another_grain(warehouse: Warehouse) -> None:
    built = pl.DataFrame(
        warehouse.query("ledger_built", {"from_at": MONDAY, "until_at": hour(9), "grain": "day"})
    )
    assert built["build_id"].to_list() == ["d1"]


def test_sums_are_exact_beyond_64_bits(warehouse: Warehouse) -> None:
    found = sums(warehouse, whole(0, 2), cluster="c")
    hour_ticks = 18_144_000_000_000
    assert found["wall_ticks"].to_list() == [Decimal(2 * LARGE + hour_ticks)]
    assert found["apparent_s"].to_list() == [2.5]


def test_a_sum_beyond_64_bits_is_shared_out_over_rows(warehouse: Warehouse) -> None:
    rows = narrowed(sums(warehouse, whole(0, 2), cluster="c"))
    assert rows.height > 1
    assert rows["wall_ticks"].cast(pl.Int128).sum() == 2 * LARGE + 18_144_000_000_000
    assert (rows["wall_ticks"] == rows["used_measured_ticks"]).all()
    assert rows["apparent_s"].sum() == 2.5


def test_unknown_and_zero_are_kept_apart(warehouse: Warehouse) -> None:
    found = sums(warehouse, whole(1, 2), cluster="d")
    assert found.select("memory_peak_bytes", "idle_memory_byte_s").rows() == [(9, 0.0)]
    assert sums(warehouse, whole(0, 1))["memory_peak_bytes"].to_list() == [None]


@pytest.mark.parametrize(
    ("pieces", "spans"),
    [
        pytest.param([whole(0, 1)], [0], id="one hour"),
        pytest.param([whole(0, 1), whole(1, 2)], [0, 1], id="a span for each hour"),
        pytest.param([whole(2, 9)], [], id="hours that are not built"),
        pytest.param(
            [(Period(hour(1), hour(2)), Period(hour(0), hour(4)))], [0], id="a piece of a span"
        ),
    ],
)
def test_hours_are_summed_by_the_span_they_belong_to(
    warehouse: Warehouse, pieces: list[tuple[Period, Period]], spans: list[int]
) -> None:
    found = sums(warehouse, *pieces, cluster="c")
    assert found["started_at"].to_list() == [hour(number) for number in spans]


@pytest.mark.parametrize(
    ("cluster", "names"),
    [
        pytest.param(None, ["c", "d"], id="all"),
        pytest.param("d", ["d"], id="one"),
        pytest.param("e", [], id="an unknown one"),
    ],
)
def test_one_cluster_or_all(warehouse: Warehouse, cluster: str | None, names: list[str]) -> None:
    assert sums(warehouse, whole(0, 2), cluster=cluster)["cluster"].to_list() == names


@pytest.mark.parametrize("query", ["ledger_hours", "ledger_days"])
@pytest.mark.parametrize(
    "columns",
    [
        pytest.param((), id="nothing"),
        pytest.param(("cluster",), id="one key"),
        pytest.param(("cluster", "model", "apparent_s"), id="keys and an overlay"),
        pytest.param(("memory_peak_bytes",), id="the peak"),
        pytest.param(ASKED, id="all"),
    ],
)
def test_sums_over_fewer_keys_are_sums_of_the_sums_over_all(
    warehouse: Warehouse, query: str, columns: tuple[str, ...]
) -> None:
    span = Period(MONDAY, MONDAY + DAY)
    found = ledger_sums(warehouse, query, [(span, span)], columns=columns)
    fine = ledger_sums(warehouse, query, [(span, span)])
    assert set(found.columns) == set(fine.columns) - (set(ASKED) - set(columns))
    assert_frame_equal(by_span(found), by_span(without(fine, columns)))


def test_days_are_summed_like_hours(warehouse: Warehouse) -> None:
    day = Period(MONDAY, MONDAY + DAY)
    assert sums(warehouse, (day, day), query="ledger_days")["wall_ticks"].to_list() == [
        Decimal(18_144_000_000_000)
    ]


@pytest.mark.parametrize(("cluster", "devices"), [(None, ["GPU-7", "GPU-0"]), ("d", ["GPU-0"])])
def test_rest_is_that_of_the_newest_builds(
    warehouse: Warehouse, cluster: str | None, devices: list[str]
) -> None:
    ends = {"from_at": MONDAY, "until_at": hour(9), "cluster": cluster}
    assert pl.DataFrame(warehouse.query("rest_hours", ends))["device_uuid"].to_list() == devices


def test_caveats_are_those_of_the_newest_builds(warehouse: Warehouse) -> None:
    ends = {"from_at": MONDAY, "until_at": hour(9)}
    found = pl.DataFrame(warehouse.query("ledger_caveats", ends))
    assert found.select("starts_at", "stray_device_count").rows() == [(hour(0), 3), (hour(1), 0)]


@pytest.mark.parametrize(
    ("query", "starts"),
    [
        ("ledger_by_hour", [(hour(0), "c"), (hour(1), "c"), (hour(1), "d")]),
        ("ledger_by_day", [(MONDAY, "c")]),
    ],
)
def test_a_chart_gets_one_point_per_hour_or_day(
    warehouse: Warehouse, query: str, starts: list[tuple[datetime, str]]
) -> None:
    ends = {"from_at": MONDAY, "until_at": MONDAY + DAY}
    found = pl.DataFrame(warehouse.query(query, ends))
    assert found.select(found.columns[0], "cluster").rows() == starts


def test_what_is_stored_of_an_hour_is_counted(warehouse: Warehouse) -> None:
    held = {
        "observed_at": hour(5),
        "cluster": "counted",
        "node": "n",
        "device_uuid": "GPU-0",
        "started_at": hour(4) + HOUR / 2,
        "ended_at": None,
        "gpu_share_ratio": 1.0,
        "sharing_mode": "exclusive",
        "attribution_source": "test",
    }
    store(warehouse, "allocation", held, {**held, "ended_at": hour(6)})
    warehouse.append("device_sample", samples(3, at=hour(5) - timedelta(seconds=1)), batch_id="s")
    ends = {"from_at": hour(3), "until_at": hour(7)}
    found = pl.DataFrame(warehouse.query("ledger_input", ends))
    assert found.select("reading_count", "holding_count").rows() == [(0, 0), (1, 1), (2, 1), (0, 0)]


def test_known_clusters_are_listed(warehouse: Warehouse) -> None:
    node = {"observed_at": MONDAY, "cluster": "z", "node": "n", "source": "test"}
    store(warehouse, "node", node)
    assert "z" in pl.DataFrame(warehouse.query("known_cluster"))["cluster"].to_list()
