"""The named queries on waiting, on the warehouse's own tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import duckdb
import polars as pl
import pytest

from analytics.inputs import SCHEMAS, conform
from tests.support.analytics_frames import HOUR, MINUTE, NOON

SQL = Path(__file__).parents[3] / "sql"
ENDS = {"from_at": NOON, "until_at": NOON + HOUR}


class Store:
    """The warehouse's tables in memory."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Keep the connection that holds the tables."""
        self._connection = connection

    def add(self, table: str, **row: object) -> None:
        """Insert a row; columns it does not name are null."""
        names, marks = ", ".join(row), ", ".join(f"${name}" for name in row)
        statement = f"insert into {table} ({names}) values ({marks})"  # noqa: S608  # names from the tests
        self._connection.sql(statement, params=dict(row))

    def ask(self, name: str) -> pl.DataFrame:
        text = (SQL / "queries" / f"{name}.sql").read_text()
        rows = pl.DataFrame(self._connection.sql(text, params=ENDS).to_arrow_table())
        assert rows.columns == list(SCHEMAS[name])
        return conform(name, rows)


@pytest.fixture
def store() -> Iterator[Store]:
    with duckdb.connect() as connection:
        for path in sorted((SQL / "migrations" / "warehouse").glob("*.sql")):
            for statement in duckdb.extract_statements(path.read_text()):
                connection.sql(statement)
        yield Store(connection)


def condition(store: Store, minute: int, **given: object) -> None:
    at = NOON + minute * MINUTE
    row = {"occurred_at": at, "observed_at": at, "cluster": "c", "kind": "Workload",
           "namespace": "team-a", "name": "job-w1-0a1b2", "object_uid": "q1",
           "condition": "QuotaReserved", "status": "False", "reason": "WaitingForQuota",
           "source": "t"}  # fmt: skip
    store.add("condition_change", **{**row, **given})


def step(store: Store, minute: int, transition: str, uid: str = "w1") -> None:
    at = NOON + minute * MINUTE
    store.add("workload_transition", occurred_at=at, observed_at=at, cluster="c", attempt=1,
              workload_uid=uid, transition=transition, source="t")  # fmt: skip


WAITS_SINCE = (
    pytest.param({"created": -15}, ["-10", "0", "59"], id="since before it was said"),
    pytest.param({"created": -10}, ["-10", "0", "59"], id="since exactly then"),
    pytest.param({"created": -9}, ["0", "59"], id="since just after"),
    pytest.param({"created": -15, "admitted": -12}, ["-10", "0", "59"], id="admitted, no place"),
    pytest.param({"created": -15, "scheduled": -12}, ["0", "59"], id="it waits no more"),
    pytest.param({"created": -15, "evicted": -12, "requeued": -12}, ["-10", "0", "59"],
                 id="it waits again"),
    pytest.param({}, ["0", "59"], id="nothing waited"),
)  # fmt: skip


def pod(store: Store, **given: object) -> None:
    row = {"observed_at": NOON, "cluster": "c", "pod_uid": "p1", "namespace": "team-a",
           "pod": "w1-0", "workload_uid": "w1", "phase": "Pending", "created_at": NOON,
           "source": "t"}  # fmt: skip
    store.add("pod", **{**row, **given})


@pytest.mark.parametrize(("steps", "found"), WAITS_SINCE)
def test_conditions_of_the_period_and_the_last_before(
    store: Store, steps: Mapping[str, int], found: list[str]
) -> None:
    for transition, minute in steps.items():
        step(store, minute, transition)
    for minute in (-20, -10, 0, 59, 60):
        condition(store, minute, message=str(minute))
    assert store.ask("condition_history")["message"].to_list() == found


def test_what_was_granted_before_is_no_reason_to_wait(store: Store) -> None:
    step(store, -30, "created")
    condition(store, -20)
    condition(store, -10, status="True", reason="QuotaReserved")
    assert store.ask("condition_history").is_empty()


@pytest.mark.parametrize(
    ("given", "count"),
    [
        pytest.param({"status": "False"}, 1, id="says no"),
        pytest.param({"status": "Unknown"}, 1, id="does not know"),
        pytest.param({"status": "True"}, 0, id="says yes"),
        pytest.param({"condition": "Unschedulable", "status": "True"}, 1, id="unschedulable"),
        pytest.param({"condition": "Unschedulable", "status": "False"}, 0, id="schedulable again"),
        pytest.param({"condition": "Ready"}, 0, id="of another matter"),
    ],
)
def test_only_what_says_no(store: Store, given: Mapping[str, object], count: int) -> None:
    condition(store, 0, **given)
    assert store.ask("condition_history").height == count


def test_a_repeated_condition_counts_once(store: Store) -> None:
    condition(store, 0)
    condition(store, 0, observed_at=NOON + MINUTE)
    assert store.ask("condition_history").height == 1


def test_a_condition_of_a_pod_names_its_workload(store: Store) -> None:
    pod(store, workload_uid=None)
    pod(store, observed_at=NOON + MINUTE)
    condition(store, 0, kind="Pod", name="w1-0", object_uid="p1", condition="PodScheduled")
    condition(store, 1)
    found = store.ask("condition_history").select("object_uid", "workload_uid")
    assert found.rows() == [("p1", "w1"), ("q1", None)]


def event(store: Store, minute: int, **given: object) -> None:
    row = {"occurred_at": NOON + minute * MINUTE, "cluster": "c", "event_uid": "e",
           "namespace": "team-a", "kind": "Pod", "name": "w1-0", "object_uid": "p1",
           "reason": "FailedScheduling", "message": str(minute)}  # fmt: skip
    store.add("kubernetes_event", **{**row, **given})


@pytest.mark.parametrize(("steps", "found"), WAITS_SINCE)
def test_events_of_the_period_and_the_last_before(
    store: Store, steps: Mapping[str, int], found: list[str]
) -> None:
    for transition, minute in steps.items():
        step(store, minute, transition)
    for minute in (-20, -10, 0, 59, 60):
        event(store, minute)
    event(store, 5, reason="Killing")
    assert store.ask("scheduling_event")["message"].to_list() == found


@pytest.mark.parametrize(
    ("object_uid", "found"),
    [
        pytest.param("p1", "w1", id="of a pod"),
        pytest.param("w2", "w2", id="of the workload itself"),
        pytest.param("other", None, id="of what was never stored"),
        pytest.param(None, None, id="without an identity"),
    ],
)
def test_an_event_names_its_workload(store: Store, object_uid: str | None, found: str) -> None:
    pod(store)
    for minute in (0, 1):
        store.add("workload", observed_at=NOON + minute * MINUTE, cluster="c", workload_uid="w2",
                  kind="Job", name="w2", source="t")  # fmt: skip
    event(store, 0, object_uid=object_uid)
    assert store.ask("scheduling_event")["workload_uid"].to_list() == [found]


def test_a_worker_asks_for_what_its_largest_pod_does(store: Store) -> None:
    pod(store, gpu_count=0)
    pod(store, pod_uid="p2", gpu_count=8)
    pod(store, pod_uid="p3", gpu_count=2)
    pod(store, pod_uid="p4", gpu_count=4, workload_uid=None)
    pod(store, pod_uid="p5", gpu_count=16, observed_at=NOON + HOUR)
    assert store.ask("worker_request").rows() == [("c", "w1", 8)]


def test_only_losses_of_the_period(store: Store) -> None:
    for minute, transition in ((-1, "preempted"), (0, "preempted"), (0, "preempted"),
                               (1, "evicted"), (2, "suspended"), (60, "evicted")):  # fmt: skip
        at = NOON + minute * MINUTE
        store.add("workload_transition", occurred_at=at, observed_at=at, cluster="c", attempt=1,
                  workload_uid="w1", transition=transition, message="m", source="t")  # fmt: skip
    assert store.ask("interruption_history")["transition"].to_list() == ["preempted", "evicted"]


def test_the_same_uid_in_two_clusters(store: Store) -> None:
    for cluster in ("c", "d"):
        store.add("workload_transition", occurred_at=NOON, observed_at=NOON, cluster=cluster,
                  attempt=1, workload_uid="w1", transition="created", source="t")  # fmt: skip
        store.add("workload", observed_at=NOON, cluster=cluster, workload_uid="w1", kind="Job",
                  name="w1", queue=f"{cluster}-queue", priority=7, memory_bytes=1,
                  source="t")  # fmt: skip
    assert store.ask("transition_history")["cluster"].to_list() == ["c", "d"]
    asked = store.ask("workload_current").select("cluster", "queue", "priority", "memory_bytes")
    assert asked.rows() == [("c", "c-queue", 7, 1), ("d", "d-queue", 7, 1)]
