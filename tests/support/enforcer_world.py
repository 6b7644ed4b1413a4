"""A small cluster told row by row, asked as the enforcer asks a warehouse: SQL, then frames."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Self

import duckdb
import polars as pl
import pyarrow as pa

from enforcer.decisions import Judgement
from enforcer.facts import Evidence, Snapshot, Workload
from enforcer.history import History, history, whole
from enforcer.judging import judge
from enforcer.policies.model import Effect, IdleLimits, Match, Policy
from enforcer.policies.shipped import default_policy
from enforcer.snapshot import build
from sql.assets import sql_files
from sql.catalogue import named_query
from steward.period import Period
from steward.ports import Parameter
from steward.units import MIB_BYTES
from tests.support.enforcer_judged import LIMITS

START = datetime(2026, 5, 4, 0, tzinfo=UTC)
"""When every GPU of the world is first read."""
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
GIB_BYTES = 1024 * MIB_BYTES
CLUSTER = "c"
REST_W = 70.0

Reading = Mapping[str, object]
RESTING: Reading = {
    "busy_ratio": 0.0,
    "graphics_active_ratio": 0.0,
    "sm_active_ratio": 0.0,
    "tensor_active_ratio": 0.0,
    "dram_active_ratio": 0.0,
    "power_w": REST_W,
    "power_limit_w": 700.0,
    "memory_used_bytes": 500 * MIB_BYTES,
    "memory_total_bytes": 80 * GIB_BYTES,
    "pcie_transmit_bytes_per_s": 0.0,
    "pcie_receive_bytes_per_s": 0.0,
    "nvlink_bytes_per_s": 0.0,
    "process_count": 1,
    "temperature_celsius": 35.0,
}
WORKING: Reading = {
    "busy_ratio": 0.98,
    "graphics_active_ratio": 0.95,
    "sm_active_ratio": 0.8,
    "tensor_active_ratio": 0.5,
    "dram_active_ratio": 0.4,
    "power_w": 500.0,
    "pcie_receive_bytes_per_s": 5e8,
}


class World:
    """Nodes, GPUs, holders and readings of one cluster."""

    def __init__(self) -> None:
        """Hold nothing."""
        self._rows: defaultdict[str, list[dict[str, object]]] = defaultdict(list)
        self._state: dict[str, list[Mapping[str, object]]] = defaultdict(list)
        self._known: History | None = None

    def _add(self, table: str, row: dict[str, object]) -> Self:
        self._rows[table].append(row)
        self._known = None
        return self

    def node(self, name: str = "n1", **told: object) -> Self:
        """Add a node."""
        plain = {
            "observed_at": START,
            "cluster": CLUSTER,
            "node": name,
            "gpu_model": "H100",
            "gpu_count": 8,
            "cpu_milli": 96_000,
            "memory_bytes": 1_000 * GIB_BYTES,
            "is_schedulable": True,
            "source": "test",
        }
        return self._add("node", {**plain, **told})

    def gpu(self, uuid: str = "GPU-a", *, instance_id: int | None = None, **told: object) -> Self:
        """Add a GPU or an instance."""
        plain = {
            "observed_at": START,
            "cluster": CLUSTER,
            "node": "n1",
            "device_uuid": uuid,
            "instance_id": instance_id,
            "model": "H100",
            "is_present": True,
            "source": "test",
        }
        return self._add("device", {**plain, **told})

    def workload(self, uid: str = "w1", *, gpu_count: int = 1, **told: object) -> Self:
        """Add a training job, created when the world began."""
        plain = {
            "observed_at": START,
            "cluster": CLUSTER,
            "workload_uid": uid,
            "kind": "Job",
            "namespace": "team-a",
            "name": uid,
            "tenant_id": "team-a",
            "workload_class": "training",
            "cpu_milli": 8_000 * gpu_count,
            "memory_bytes": 64 * GIB_BYTES * gpu_count,
            "gpu_count": gpu_count,
            "gpu_milli": 1_000,
            "source": "test",
        }
        return self._add("workload", {**plain, **told}).step(uid, "created")

    def step(self, uid: str, transition: str, *, at: datetime = START, attempt: int = 1) -> Self:
        """Add a step of a workload's life."""
        return self._add(
            "workload_transition",
            {
                "occurred_at": at,
                "observed_at": at,
                "cluster": CLUSTER,
                "workload_uid": uid,
                "attempt": attempt,
                "transition": transition,
                "source": "test",
            },
        )

    def holds(
        self, uuid: str = "GPU-a", *, uid: str = "w1", at: datetime = START, **told: object
    ) -> Self:
        """Let a pod of a workload take a GPU."""
        plain = {
            "observed_at": at,
            "cluster": CLUSTER,
            "node": "n1",
            "device_uuid": uuid,
            "started_at": at,
            "gpu_share_ratio": 1.0,
            "sharing_mode": "exclusive",
            "namespace": "team-a",
            "pod": f"{uid}-0",
            "pod_uid": f"{uid}-0",
            "container": "main",
            "workload_uid": uid,
            "tenant_id": "team-a",
            "attribution_source": "test",
        }
        return self._add("allocation", {**plain, **told})

    def pod(self, name: str = "w1-0", *, uid: str = "w1", **told: object) -> Self:
        """Add a running pod."""
        plain = {
            "observed_at": START,
            "cluster": CLUSTER,
            "pod_uid": name,
            "namespace": "team-a",
            "pod": name,
            "node": "n1",
            "workload_uid": uid,
            "phase": "Running",
            "created_at": START,
            "gpu_count": 1,
            "labels_json": "{}",
            "source": "test",
        }
        return self._add("pod", {**plain, **told})

    def job(self, *uuids: str, uid: str = "w1", **told: object) -> Self:
        """Add a job with its GPUs: the whole of a simple world."""
        self.workload(uid, gpu_count=len(uuids), **told)
        for uuid in uuids:
            self.gpu(uuid).holds(uuid, uid=uid)
        return self

    def reads(
        self,
        uuid: str = "GPU-a",
        *,
        from_at: datetime = START,
        until_at: datetime,
        every: timedelta = MINUTE,
        **told: object,
    ) -> Self:
        """Add readings of a GPU at rest, with what they tell instead; energy counts up."""
        plain: dict[str, object] = {
            "cluster": CLUSTER,
            "node": "n1",
            "device_uuid": uuid,
            "instance_id": None,
            "source": "test",
            **RESTING,
        }
        plain.update(told)
        at = from_at
        while at < until_at:
            energy_j = (at - START).total_seconds() * REST_W
            self._add("device_sample", {"energy_j": energy_j, **plain, "sampled_at": at})
            at += every
        return self

    def process(
        self, uuid: str = "GPU-a", *, at: datetime, pod_uid: str | None, sm_ratio: float | None
    ) -> Self:
        """Add a process seen on a GPU."""
        return self._add(
            "device_process",
            {
                "sampled_at": at,
                "cluster": CLUSTER,
                "node": "n1",
                "device_uuid": uuid,
                "pid": 1,
                "pod_uid": pod_uid,
                "sm_ratio": sm_ratio,
                "source": "test",
            },
        )

    def quota(self, **told: object) -> Self:
        """Add what a queue has."""
        plain = {
            "observed_at": START,
            "cluster": CLUSTER,
            "queue": "q",
            "tenant_id": "team-a",
            "source": "test",
        }
        return self._add("quota_snapshot", {**plain, **told})

    def state(self, table: str, **row: object) -> Self:
        """Add a row of a state table; the newest is added last."""
        self._state[table].insert(0, row)
        self._known = None
        return self

    def without(self, is_lost: Callable[[datetime, str], bool]) -> World:
        """Return the same world with the readings left out of which this is true."""
        other = World()
        other._state = self._state
        for table, rows in self._rows.items():
            other._rows[table] = [
                row
                for row in rows
                if table != "device_sample"
                or not is_lost(_instant(row["sampled_at"]), str(row["device_uuid"]))
            ]
        return other

    def frames(self) -> dict[str, pl.DataFrame]:
        """Return the rows by table of the warehouse."""
        return {table: _frame(rows) for table, rows in self._rows.items() if rows}

    @contextmanager
    def stored(self) -> Iterator[Answers]:
        """Put the rows into a warehouse for the length of a block."""
        with _stored(self.frames()) as connection:
            yield Answers(connection, self._state)

    def history(self, until_at: datetime, *, from_at: datetime = START) -> History:
        """Return what is stored until an instant."""
        with self.stored() as answers:
            return history(answers, answers, Period(from_at, until_at), cluster=CLUSTER)

    def snapshot(self, now: datetime, *, limits: IdleLimits = LIMITS) -> Snapshot:
        """Return the snapshot of an instant, with evidence for these limits, from all that is told.

        Rows of later than the instant change nothing: another test shows it.
        """
        if self._known is None:
            self._known = self.history(self._told_until())
        return build(self._known, [policy(limits)], now=now)

    @staticmethod
    def snapshot_of(told: History, now: datetime, *, limits: IdleLimits = LIMITS) -> Snapshot:
        """Return the snapshot of an instant, from this history."""
        return build(told, [policy(limits)], now=now)

    def _told_until(self) -> datetime:
        rows = [row for table in self._rows.values() for row in table]
        told = [value for row in rows for value in row.values() if isinstance(value, datetime)]
        return whole(max(told)) + MINUTE

    def seen(self, now: datetime, uid: str = "w1", *, limits: IdleLimits = LIMITS) -> Workload:
        """Return one workload with its evidence."""
        return next(each for each in self.snapshot(now, limits=limits).workloads if each.uid == uid)

    def evidence(self, now: datetime, uid: str = "w1", *, limits: IdleLimits = LIMITS) -> Evidence:
        """Return the evidence of one workload, which has some."""
        found = self.seen(now, uid, limits=limits).evidence
        assert found is not None
        return found

    def judged(self, now: datetime, uid: str = "w1", *, limits: IdleLimits = LIMITS) -> Judgement:
        """Return the verdict on one workload."""
        return judge(self.seen(now, uid, limits=limits), limits, now=now)


def policy(limits: IdleLimits) -> Policy:
    """Return a policy that judges every workload by these limits."""
    shipped = default_policy()
    rule = replace(shipped.rules[-1], idle=limits, effect=Effect.ACT, match=Match())
    return replace(shipped, rules=(rule,))


class Answers:
    """Answers named queries and state tables."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        state: Mapping[str, list[Mapping[str, object]]],
    ) -> None:
        """Keep both."""
        self.connection = connection
        self.state = state

    def query(self, name: str, parameters: Mapping[str, Parameter] | None = None) -> pa.Table:
        """Return the rows of a named query."""
        text = named_query(name).text
        return self.connection.sql(text, params=dict(parameters or {})).to_arrow_table()

    def sql(self, statement: str, *, row_limit: int | None = None) -> pa.Table:
        """Refuse: nothing asks."""
        raise AssertionError(statement, row_limit)

    def state_rows(self, table: str) -> Sequence[Mapping[str, object]]:
        """Return the rows of a state table, newest first."""
        return self.state.get(table, [])


@cache
def _empty() -> duckdb.DuckDBPyConnection:
    """Return a connection to an empty warehouse; its tables are emptied after each use."""
    connection = duckdb.connect(config={"threads": 1})
    connection.execute("set timezone = 'UTC'")
    for file in sql_files("migrations/warehouse"):
        for statement in duckdb.extract_statements(file.text):
            connection.execute(statement)
    return connection


class _stored:  # noqa: N801 - reads as a verb where it is used
    """Rows put into the empty warehouse for the length of a block."""

    def __init__(self, frames: Mapping[str, pl.DataFrame]) -> None:
        self._frames = frames

    def __enter__(self) -> duckdb.DuckDBPyConnection:
        connection = _empty()
        for table, frame in self._frames.items():
            connection.register("incoming", frame.to_arrow())
            columns = ", ".join(frame.columns)
            connection.execute(f"insert into {table} ({columns}) select {columns} from incoming")  # noqa: S608 - names of our own tables
        return connection

    def __exit__(self, *_error: object) -> None:
        for table in self._frames:
            _empty().execute(f"delete from {table}")  # noqa: S608 - names of our own tables


def _frame(rows: Sequence[Mapping[str, object]]) -> pl.DataFrame:
    names = sorted({name for row in rows for name in row})
    return pl.DataFrame({name: [row.get(name) for row in rows] for name in names}, strict=False)


def _instant(value: object) -> datetime:
    assert isinstance(value, datetime)
    return value
