"""The named queries of reports, on the warehouse's own tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path

import duckdb
import polars as pl
import pytest

from analytics.inputs import SCHEMAS, conform, queries
from analytics.reports.catalogue import REPORTS
from tests.support.analytics_frames import HOUR, MINUTE, NOON

SQL = Path(__file__).parents[3] / "sql"


class Store:
    """The warehouse's tables in memory."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Keep the connection that holds the tables."""
        self._connection = connection

    def add(self, table: str, *rows: Mapping[str, object]) -> None:
        """Insert rows; columns they do not name are null."""
        for row in rows:
            names, marks = ", ".join(row), ", ".join(f"${name}" for name in row)
            statement = f"insert into {table} ({names}) values ({marks})"  # noqa: S608  # names from the tests
            self._connection.sql(statement, params=dict(row))

    def ask(self, name: str, until_at: datetime = NOON + HOUR) -> pl.DataFrame:
        text = (SQL / "queries" / f"{name}.sql").read_text()
        ends = {"from_at": NOON, "until_at": until_at}
        rows = pl.DataFrame(self._connection.sql(text, params=ends).to_arrow_table())
        assert rows.columns == list(SCHEMAS[name])
        return conform(name, rows)


@pytest.fixture
def store() -> Iterator[Store]:
    with duckdb.connect() as connection:
        for path in sorted((SQL / "migrations" / "warehouse").glob("*.sql")):
            for statement in duckdb.extract_statements(path.read_text()):
                connection.sql(statement)
        yield Store(connection)


def test_reports_ask_only_declared_queries() -> None:
    for definition in REPORTS.values():
        assert set(definition.inputs) <= set(SCHEMAS)


@pytest.mark.parametrize("name", queries())
def test_query_on_empty_tables(store: Store, name: str) -> None:
    assert store.ask(name).is_empty()


@pytest.mark.parametrize("name", queries())
def test_query_header(name: str) -> None:
    lines = (SQL / "queries" / f"{name}.sql").read_text().splitlines()
    assert [line[:6] for line in lines if line.startswith("-- ") and line[3] != " "] == [
        "-- pur",
        "-- gra",
        "-- par",
    ]


NODE = {"cluster": "c", "node": "n1", "source": "t"}
DEVICE = {**NODE, "device_uuid": "GPU-a", "is_present": True}


def test_state_before_the_period_is_carried_in_once(store: Store) -> None:
    minutes = (-120, -60, 0, 30, 60)
    store.add(
        "node", *[{**NODE, "observed_at": NOON + m * MINUTE, "gpu_count": m} for m in minutes]
    )
    store.add("device", *[{**DEVICE, "observed_at": NOON + m * MINUTE} for m in minutes])
    assert store.ask("node_history")["gpu_count"].to_list() == [-60, 0, 30]
    assert store.ask("device_history").height == 3


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        pytest.param({"is_present": True, "gpu_count": 0, "cpu_milli": 0}, True, id="told"),
        pytest.param({"is_present": False, "gpu_count": 8}, False, id="told as removed"),
        pytest.param({}, True, id="nothing told"),
        pytest.param({"gpu_count": 0, "cpu_milli": 1, "memory_bytes": 0}, True, id="offers some"),
        pytest.param({"gpu_count": 0, "cpu_milli": 0}, True, id="told in part"),
        pytest.param({"gpu_count": 0, "cpu_milli": 0, "memory_bytes": 0}, False, id="has nothing"),
    ],
)
def test_a_node_is_there_unless_it_was_told_as_removed(
    store: Store, told: Mapping[str, object], *, expected: bool
) -> None:
    store.add("node", {**NODE, "observed_at": NOON, **told})
    assert store.ask("node_history")["is_present"].to_list() == [expected]


def test_the_last_sighting_of_an_absent_device_is_carried_in_too(store: Store) -> None:
    told = {-180: True, -120: True, -60: False, 0: False}
    store.add(
        "device",
        *[
            {**DEVICE, "observed_at": NOON + minute * MINUTE, "is_present": is_present}
            for minute, is_present in told.items()
        ],
    )
    found = store.ask("device_history")
    assert found["is_present"].to_list() == [True, False, False]
    assert found["observed_at"].min() == NOON - 2 * HOUR


def test_boards_and_instances_are_carried_in_apart(store: Store) -> None:
    early = NOON - HOUR
    store.add(
        "device",
        {**DEVICE, "observed_at": early},
        {**DEVICE, "observed_at": early, "instance_id": 3},
    )
    assert store.ask("device_history")["instance_id"].to_list() == [None, 3]


def test_open_losses_are_carried_in_and_old_errors_are_not(store: Store) -> None:
    event = {**NODE, "device_uuid": "GPU-a"}
    store.add(
        "device_event",
        {**event, "kind": "xid", "code": 31, "occurred_at": NOON - HOUR},
        {**event, "kind": "returned", "occurred_at": NOON - 2 * HOUR},
        {**event, "kind": "lost", "occurred_at": NOON - HOUR},
        {**event, "kind": "xid", "code": 79, "occurred_at": NOON},
    )
    assert store.ask("device_event_history").select("kind", "code").rows() == [
        ("lost", None),
        ("xid", 79),
    ]


def test_readings_around_the_ends_are_read_too(store: Store) -> None:
    sample = {**NODE, "device_uuid": "GPU-a", "busy_ratio": 0.5}
    minutes = (-61, -60, 0, 60, 119, 120)
    store.add("device_sample", *[{**sample, "sampled_at": NOON + m * MINUTE} for m in minutes])
    assert store.ask("utilization_sample").height == 4


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        pytest.param(0.0, 0.0, id="zero"),
        pytest.param(None, None, id="null"),
        pytest.param(1e300, None, id="no device's reading"),
        pytest.param(-1e300, None, id="nor its opposite"),
    ],
)
def test_a_reading_beyond_all_measure_is_missing(
    store: Store, told: float | None, expected: float | None
) -> None:
    sample = {**NODE, "device_uuid": "GPU-a", "sampled_at": NOON, "busy_ratio": told}
    store.add("device_sample", {**sample, "power_w": told})
    row = store.ask("utilization_sample").row(0, named=True)
    assert (row["busy_ratio"], row["power_w"]) == (expected, expected)


def test_readings_and_inventory_share_the_device_key(store: Store) -> None:
    store.add("device", {**DEVICE, "observed_at": NOON})
    store.add("device_sample", {**NODE, "device_uuid": "GPU-a", "sampled_at": NOON})
    keys = [
        store.ask(name)["device_key"].to_list() for name in ("device_history", "utilization_sample")
    ]
    assert keys[0] == keys[1]


def test_latest_reading(store: Store) -> None:
    sample = {**NODE, "device_uuid": "GPU-a"}
    store.add(
        "device_sample",
        {**sample, "sampled_at": NOON, "power_w": 1.0},
        {**sample, "sampled_at": NOON + MINUTE, "power_w": 2.0},
        {**sample, "sampled_at": NOON + MINUTE, "instance_id": 1},
        {**sample, "sampled_at": NOON + HOUR, "power_w": 3.0},
    )
    assert store.ask("latest_device_sample").select("instance_id", "power_w").rows() == [
        (None, 2.0),
        (1, None),
    ]


HELD = {**{k: v for k, v in NODE.items() if k != "source"}, "device_uuid": "GPU-a", "pod": "p",
        "namespace": "team-a", "gpu_share_ratio": 1.0, "sharing_mode": "exclusive",
        "attribution_source": "t"}  # fmt: skip


def test_an_allocation_counts_as_last_observed(store: Store) -> None:
    store.add(
        "allocation",
        {**HELD, "observed_at": NOON, "started_at": NOON},
        {**HELD, "observed_at": NOON + MINUTE, "started_at": NOON, "ended_at": NOON + MINUTE},
    )
    found = store.ask("allocation_history")
    assert found["ended_at"].to_list() == [NOON + MINUTE]


@pytest.mark.parametrize(
    ("started", "ended", "count"),
    [(-10, -1, 0), (-10, 0, 0), (-10, 1, 1), (59, None, 1), (60, None, 0)],
)
def test_allocations_that_touch_the_period(
    store: Store, *, started: int, ended: int | None, count: int
) -> None:
    end = None if ended is None else NOON + ended * MINUTE
    store.add(
        "allocation",
        {**HELD, "observed_at": NOON, "started_at": NOON + started * MINUTE, "ended_at": end},
    )
    assert store.ask("allocation_history").height == count


WORK = {"cluster": "c", "workload_uid": "w1", "kind": "Pod", "name": "w1", "source": "t"}


def test_tenant_comes_from_the_workload_then_the_namespace(store: Store) -> None:
    store.add("workload", {**WORK, "observed_at": NOON, "tenant_id": "owner"})
    store.add(
        "allocation",
        {**HELD, "observed_at": NOON, "started_at": NOON, "workload_uid": "w1"},
        {**HELD, "observed_at": NOON, "started_at": NOON, "pod": "q"},
    )
    assert sorted(store.ask("allocation_history")["tenant_id"]) == ["owner", "team-a"]


def test_what_becomes_known_of_a_holder_corrects_its_row(store: Store) -> None:
    late = {"observed_at": NOON + MINUTE, "pod_uid": "u1", "workload_uid": "w1", "tenant_id": "t"}
    store.add(
        "allocation",
        {**HELD, "observed_at": NOON, "started_at": NOON},
        {**HELD, "started_at": NOON, "workload_class": "inference", **late},
    )
    found = store.ask("allocation_history").select("tenant_id", "workload_class", "workload_uid")
    assert found.rows() == [("t", "inference", "w1")]


def test_the_class_comes_from_the_allocation_then_the_workload(store: Store) -> None:
    store.add("workload", {**WORK, "observed_at": NOON, "workload_class": "training"})
    held = {**HELD, "observed_at": NOON, "started_at": NOON, "workload_uid": "w1"}
    store.add("allocation", {**held, "workload_class": "development"}, {**held, "pod": "q"})
    classes = store.ask("allocation_history")["workload_class"]
    assert sorted(classes) == ["development", "training"]


def test_two_shares_of_one_pod_are_two_allocations(store: Store) -> None:
    held = {**HELD, "observed_at": NOON, "started_at": NOON}
    store.add("allocation", {**held, "replica": 0}, {**held, "replica": 1})
    assert store.ask("allocation_history").height == 2


def test_unattributed_time_has_no_tenant_and_says_why(store: Store) -> None:
    nobody = {**HELD, "observed_at": NOON, "attribution_source": "none", "pod": None,
              "namespace": None, "ownership_level": "unattributed"}  # fmt: skip
    store.add(
        "allocation",
        {**HELD, "observed_at": NOON, "started_at": NOON, "ownership_level": "unattributed",
         "conflict": "indirect"},
        {**nobody, "started_at": NOON + MINUTE, "ended_at": NOON + 2 * MINUTE,
         "conflict": "busy_without_holder;exporter_label=a/b"},
        {**nobody, "started_at": NOON + 2 * MINUTE, "conflict": "unobserved"},
    )  # fmt: skip
    assert store.ask("allocation_history").select("tenant_id", "unheld_reason").rows() == [
        (None, None),
        (None, "busy_without_holder"),
        (None, "unobserved"),
    ]


def test_work_over_before_the_period_is_left_out(store: Store) -> None:
    step = {"cluster": "c", "observed_at": NOON, "attempt": 1, "source": "t"}
    for uid, ended in (("over", -1), ("ends inside", 1), ("open", None)):
        store.add("workload", {**WORK, "workload_uid": uid, "observed_at": NOON})
        store.add(
            "workload_transition",
            {**step, "workload_uid": uid, "transition": "created", "occurred_at": NOON - HOUR},
        )
        if ended is not None:
            store.add(
                "workload_transition",
                {**step, "workload_uid": uid, "transition": "finished",
                 "occurred_at": NOON + ended * MINUTE},
            )  # fmt: skip
    assert store.ask("workload_current")["workload_uid"].to_list() == ["ends inside", "open"]
    assert store.ask("transition_history")["workload_uid"].unique().sort().to_list() == [
        "ends inside",
        "open",
    ]


def test_scrapes_by_target(store: Store) -> None:
    scrape = {
        "cluster": "c",
        "target": "n1",
        "duration_s": 0.1,
        "body_bytes": 1,
        "sample_count": 5,
        "dropped_line_count": 1,
        "duplicate_count": 23,
        "unknown_metric_count": 0,
    }
    store.add(
        "scrape",
        {**scrape, "scraped_at": NOON, "is_ok": True},
        {**scrape, "scraped_at": NOON + MINUTE, "is_ok": False},
    )
    row = store.ask("scrape_health").row(0, named=True)
    assert (row["scrape_count"], row["failed_count"], row["duplicate_count"]) == (2, 1, 46)
