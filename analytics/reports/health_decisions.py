"""The decisions worth taking, as health leads with them: text, money, evidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import polars as pl

from analytics import need
from analytics.cost.costing import INPUTS as COST_INPUTS
from analytics.cost.costing import Costing, cost_instants, costing
from analytics.cost.rounding import money_text
from analytics.inputs import conform
from analytics.need_cost import cheapest
from analytics.reports.grouping import with_jobs
from analytics.reports.model import Question, Table
from analytics.reports.shape import column, percent, table
from analytics.reports.tiers import device_memory
from analytics.stakes import Candidate, Charged, is_by_money

SHOWN_COUNT: Final = 3
"""More decisions than these nobody takes in one sitting; the others follow in a table."""
PRICE_INPUTS: Final = (
    *COST_INPUTS,
    "state.capability",
    "workload_current",
    "device_history",
    "node_history",
)
"""The inputs behind ``with_prices``."""
_COLUMNS: Final = (
    column("rank", "Rank", "count"),
    column("decision", "Decision", "text"),
    column("gpu_hours", "At stake", "GPU-hours", "in the period"),
    column("money", "Money", "currency", "of what has a price; a dash: nothing of it has one"),
    column("currency", "Currency", "text", "ISO 4217"),
    column("priced_ratio", "Priced", "ratio", "share of the GPU-hours that the money speaks for"),
    column("evidence", "Evidence", "text"),
    column("row_count", "Seen on", "count", "jobs, nodes, queues, attempts or models"),
    column("coverage_ratio", "Coverage", "ratio", "of held device-time; a dash: needs no readings"),
    column("rows", "Rows", "text", "the input that the evidence comes from"),
    column("kind", "Kind", "text", "stable name"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Priced:
    """The ledger at the prices in force, in one currency."""

    ledger: Charged
    currency: str | None
    """The one asked for, else the one that prices most device-time; None: nothing has a price."""
    above: pl.DataFrame
    """Rows of ``need_cost.cheapest``, with job: what a weaker GPU model would have carried."""


def cuts(state: Mapping[str, pl.DataFrame], question: Question) -> tuple[datetime, ...]:
    """Return the instants at which a price may change: there the ledger is divided."""
    return cost_instants(state, question.period)


def with_prices(frames: Mapping[str, pl.DataFrame], question: Question) -> Priced:
    """Return the ledger at the prices in force."""
    cost = costing(frames, question.period, currency=question.currency)
    rows = with_jobs(cost.rows, frames)
    return Priced(
        ledger=Charged(rows=rows, factors=cost.factors),
        currency=cost.currency,
        above=with_jobs(_above(frames, cost), frames),
    )


def _above(frames: Mapping[str, pl.DataFrame], cost: Costing) -> pl.DataFrame:
    ledger = conform("ledger", frames["ledger"])
    overrides = conform("state.capability", frames["state.capability"])
    models = need.models_here(ledger, overrides, device_memory(frames))
    jobs = need.jobs(ledger, conform("workload_current", frames["workload_current"]))
    return cheapest(need.alternatives(jobs, models), ledger, cost.book)


def decisions_table(ranked: tuple[Candidate, ...], currency: str | None) -> Table:
    """Return the decisions most worth taking, most at stake first."""
    return _table(
        "decisions",
        "Decisions worth taking",
        ranked=ranked[:SHOWN_COUNT],
        currency=currency,
        note=_note(ranked, currency),
    )


def others_table(ranked: tuple[Candidate, ...], currency: str | None) -> Table:
    """Return the decisions that came after those."""
    return _table(
        "other_decisions",
        "Other decisions",
        ranked=ranked[SHOWN_COUNT:],
        currency=currency,
        first_rank=SHOWN_COUNT + 1,
    )


def sentences(ranked: tuple[Candidate, ...], currency: str | None) -> tuple[str, ...]:
    """Return the decisions most worth taking as sentences."""
    return tuple(
        f"{one.text}: {one.stake.hours:,.1f} GPU-hours{_money_said(one, currency)}; {one.evidence}."
        for one in ranked[:SHOWN_COUNT]
    )


def _money_said(one: Candidate, currency: str | None) -> str:
    parts = one.stake.parts
    if one.is_last:
        return ""
    if parts is None or currency is None:
        return " (no price known)"
    ratio = one.stake.priced_ratio
    part = "" if ratio == 1 else f" for the {percent(ratio)} of it with a price"
    return f", {money_text(parts, currency)} {currency}{part}"


def _note(ranked: tuple[Candidate, ...], currency: str | None) -> str:
    if not ranked:
        return "Nothing at stake is more than 0.1 % of capacity."
    if currency is None:
        return "No price is known: ranked by GPU-hours."
    by = "money" if is_by_money(ranked) else "GPU-hours, as some have no price"
    return f"Ranked by {by}; money in {currency}, at the prices in force."


def _table(
    key: str,
    title: str,
    *,
    ranked: tuple[Candidate, ...],
    currency: str | None,
    first_rank: int = 1,
    note: str = "",
) -> Table:
    rows = [
        {
            "rank": rank,
            "decision": one.text,
            "gpu_hours": one.stake.hours,
            "money": None if currency is None else money_text(one.stake.parts, currency),
            "currency": None if one.stake.parts is None else currency,
            "priced_ratio": one.stake.priced_ratio,
            "evidence": one.evidence,
            "row_count": one.row_count,
            "coverage_ratio": one.coverage_ratio,
            "rows": one.rows,
            "kind": one.key,
        }
        for rank, one in enumerate(ranked, first_rank)
    ]
    frame = pl.DataFrame(rows, schema=_SCHEMA)
    return table(key, title, frame=frame, columns=_COLUMNS, rows="ledger", note=note)


_SCHEMA: Final = {
    each.name: pl.Int64
    if each.unit == "count"
    else pl.Float64
    if each.unit in {"ratio", "GPU-hours"}
    else pl.String
    for each in _COLUMNS
}
