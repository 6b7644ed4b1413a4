"""Reports with harmless defaults, and a reader that answers named queries from given frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import polars as pl

from analytics.reports.model import Column, Figure, Question, Report, ReportDefinition, Table
from steward.errors import QueryError
from steward.period import Period
from steward.ports import ArrowTable, Parameter

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
WEEK = Period(NOON, NOON + timedelta(days=7))


def figure(
    key: str = "effective_ratio",
    *,
    value: float | str | None = 0.4321,
    unit: str = "ratio",
    coverage_ratio: float | None = 0.978,
    title: str = "Effective utilisation",
) -> Figure:
    """Return one figure."""
    return Figure(
        key=key,
        title=title,
        value=value,
        unit=unit,
        coverage_ratio=coverage_ratio,
        definition="Share of known device time in which the device did useful work.",
        rows="utilization_sample",
    )


def table(
    key: str = "by_tenant",
    *,
    frame: pl.DataFrame | None = None,
    columns: tuple[Column, ...] | None = None,
    note: str = "",
) -> Table:
    """Return one table; columns come from the frame where none are given."""
    rows = tenants() if frame is None else frame
    titled = columns or tuple(
        Column(name=name, title=name.capitalize(), unit="text") for name in rows.columns
    )
    return Table(
        key=key,
        title="By tenant",
        frame=rows,
        columns=TENANT_COLUMNS if frame is None else titled,
        rows="utilization_sample",
        note=note,
    )


TENANT_COLUMNS = (
    Column(name="tenant_id", title="Tenant", unit="text"),
    Column(name="held_gpu_hours", title="Held", unit="GPU-hours"),
    Column(name="effective_ratio", title="Effective", unit="ratio"),
    Column(name="wait_s", title="Wait", unit="s"),
    Column(name="memory_used_bytes", title="Memory", unit="bytes"),
)


def tenants() -> pl.DataFrame:
    """Return a table's rows with a measured zero, an unknown and a risky text."""
    return pl.DataFrame(
        {
            "tenant_id": ["vision", "=cmd()", "语音", None],
            "held_gpu_hours": [51470.67, 12.0, 0.0, None],
            "effective_ratio": [0.8046, 0.0, None, 0.00004],
            "wait_s": [889.64, 2.0, 0.0, None],
            "memory_used_bytes": [85_899_345_920, 0, None, 512],
        }
    )


def money_table() -> Table:
    """Return a table with an amount of money and an unknown one."""
    return table(
        frame=pl.DataFrame({"team": ["a", "b"], "cost": ["1234567.10", None]}),
        columns=(
            Column(name="team", title="Team", unit="text"),
            Column(name="cost", title="Cost (EUR)", unit="currency"),
        ),
    )


def report(
    name: str = "utilization",
    *,
    figures: tuple[Figure, ...] | None = None,
    tables: tuple[Table, ...] | None = None,
    findings: tuple[str, ...] = ("vision holds 12 GPUs that did nothing for 3 days",),
) -> Report:
    """Return a report with one figure, one table and one finding."""
    return Report(
        name=name,
        title="Where GPU-hours went",
        period=WEEK,
        figures=(figure(),) if figures is None else figures,
        tables=(table(),) if tables is None else tables,
        findings=findings,
    )


def definition(name: str = "utilization", *inputs: str) -> ReportDefinition:
    """Return a definition whose report has one row-count figure per input."""

    def build(frames: Mapping[str, pl.DataFrame], question: Question) -> Report:
        counts = tuple(
            figure(f"{key}_count", value=frame.height, unit="count", coverage_ratio=None)
            for key, frame in sorted(frames.items())
        )
        return Report(name=name, title=name, period=question.period, figures=counts, tables=())

    return ReportDefinition(name=name, summary=f"About {name}", inputs=inputs, build=build)


@dataclass(slots=True)
class FrameReader:
    """Answers named queries from frames, and remembers what it was asked with."""

    frames: Mapping[str, pl.DataFrame]
    states: Mapping[str, Sequence[Mapping[str, object]]] = field(default_factory=dict)
    asked: list[tuple[str, Mapping[str, Parameter]]] = field(default_factory=list)

    def query(self, name: str, parameters: Mapping[str, Parameter] | None = None) -> ArrowTable:
        """Return the frame of this name."""
        self.asked.append((name, parameters or {}))
        if name not in self.frames:
            raise QueryError(f"no query {name!r}", hint="name one that exists")
        return self.frames[name]

    def state_rows(self, table: str) -> Sequence[Mapping[str, object]]:
        """Return the state rows of this name."""
        return self.states[table]

    def sql(self, statement: str, *, row_limit: int | None = None) -> ArrowTable:
        """Refuse: reports ask named queries only."""
        raise QueryError(f"refused: {statement!r} ({row_limit})", hint="use a named query")


def extent_frame(first_at: datetime | None, last_at: datetime | None) -> pl.DataFrame:
    """Return what the named query ``data_extent`` answers."""
    kind = pl.Datetime("us", "UTC")
    return pl.DataFrame(
        {"first_at": [first_at], "last_at": [last_at]}, schema={"first_at": kind, "last_at": kind}
    )
