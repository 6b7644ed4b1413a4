"""What was stored until now, read once: the only place where rules' facts come from a warehouse.

The same history gives the snapshot of any instant in it, so that a backtest sees what was seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from analytics.evidence.found import CELL_S, Readings, readings
from analytics.evidence.stored import CELLED, QUERIES, frame_of, of_cluster
from enforcer.pages import pages
from enforcer.policies.model import Policy
from steward.period import Period
from steward.ports import Reader, StateLog, StateReader

if TYPE_CHECKING:
    import polars as pl

LOOK_BACK: Final = timedelta(hours=12)
"""How long before an instant readings are looked at, at least: longer idle times are told as
this."""
ACTION: Final = "action"
STATE_TABLES: Final = (ACTION, "enforcement_switch", "exemption", "notice")

StateRows = Sequence[Mapping[str, object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Rows of one cluster."""

    cluster: str
    period: Period
    """Of readings; other rows reach as far back as they still hold."""
    frames: Mapping[str, pl.DataFrame]
    """Rows by query, of ``analytics.evidence.stored.QUERIES``."""
    readings: Readings
    state: Mapping[str, StateRows]
    """Rows by state table, of ``STATE_TABLES``, newest first."""


def whole(at: datetime, *, cell_s: int = CELL_S) -> datetime:
    """Return the last end of a cell at or before an instant.

    Snapshots are taken of such instants only: then what is seen now and what is seen of now later
    are the same cells.
    """
    seconds = int(at.timestamp())
    return datetime.fromtimestamp(seconds - seconds % cell_s, tz=at.tzinfo)


def look_back(policies: Iterable[Policy]) -> timedelta:
    """Return how much history a snapshot needs, for every window and rung of these policies."""
    rules = [rule for policy in policies for rule in policy.rules]
    windows = [rule.idle.window for rule in rules if rule.idle is not None]
    rungs = [rung.after for rule in rules for rung in rule.ladder]
    longest = max(windows, default=timedelta()) + max(rungs, default=timedelta())
    return max(LOOK_BACK, longest)


def history(
    reader: Reader, state: StateReader, period: Period, *, cluster: str, cell_s: int = CELL_S
) -> History:
    """Return what is stored of a cluster.

    Args:
        reader: of the warehouse.
        state: of the state beside it.
        period: of readings, both ends ends of cells; for a snapshot at its end it begins
            ``LOOK_BACK`` before.
        cluster: whose rows.
        cell_s: length of the cells in which readings come; a large fleet may take five minutes.

    Raises:
        QueryError: a named query is missing.
        WarehouseError: the warehouse cannot serve.
    """
    frames = of_cluster(
        {name: asked(reader, name, period, cell_s=cell_s) for name in QUERIES}, cluster
    )
    return History(
        cluster=cluster,
        period=period,
        frames=frames,
        readings=readings(frames, cell_s=cell_s),
        state=state_of(state),
    )


def state_of(state: StateReader) -> dict[str, StateRows]:
    """Return the rows of ``STATE_TABLES``, newest first.

    Every act counts, however old: a workload that was taken long ago is still taken. Of the other
    tables the newest rows are enough.
    """
    found = {table: state.state_rows(table) for table in STATE_TABLES}
    if isinstance(state, StateLog):
        found[ACTION] = [row for page in pages(state, ACTION) for row in page][::-1]
    return found


def asked(reader: Reader, name: str, period: Period, *, cell_s: int) -> pl.DataFrame:
    """Return the rows of one of ``QUERIES``."""
    ends = {"from_at": period.from_at, "until_at": period.until_at}
    parameters = ends | {"cell_s": cell_s} if name in CELLED else ends
    return frame_of(name, reader.query(name, parameters))
