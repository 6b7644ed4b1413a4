"""The words of ``--by``: which columns of the ledger each stands for, and how its table reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import polars as pl

from analytics import capability
from analytics.inputs import conform
from analytics.reports.model import Column
from analytics.reports.shape import column
from steward.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouping:
    """One way to divide the ledger."""

    word: str
    """What a person writes after ``--by``."""
    title: str
    keys: tuple[str, ...]
    """Columns of the ledger; what is named inside a cluster only is told apart by cluster too."""
    table_key: str
    """Stable name in keys of tables: ``by_<table_key>``."""
    is_of_holder: bool
    """Whether it speaks of who held device-time, rather than of the device itself."""

    @property
    def key(self) -> str:
        """Return the column that the word names."""
        return self.keys[-1]

    @property
    def asks(self) -> tuple[str, ...]:
        """Return the keys of the ledger that it divides by."""
        own = tuple("model" if name == "capability" else name for name in self.keys)
        return (*own, "is_held") if self.is_of_holder else own

    def columns(self) -> tuple[Column, ...]:
        """Return the columns that open a table of this grouping."""
        outer = tuple(column(name, name.capitalize(), "text") for name in self.keys[:-1])
        note = "empty: not recorded" if self.is_of_holder else ""
        return (*outer, column(self.key, self.title, "text", note))

    def scope(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return the rows that the grouping divides: all of them, or those that name a holder.

        Of a holder also the time that is reserved for it and unused.
        """
        if not self.is_of_holder:
            return rows
        reserved = (pl.col("reserved_unused_ticks") > 0) & pl.col(self.key).is_not_null()
        return rows.filter(pl.col("is_held") | reserved)


def _of_device(word: str, title: str, *keys: str) -> Grouping:
    return Grouping(word=word, title=title, keys=keys, table_key=word, is_of_holder=False)


def _of_holder(word: str, title: str, *keys: str) -> Grouping:
    table_key = "tenant" if word == "team" else word
    return Grouping(word=word, title=title, keys=keys, table_key=table_key, is_of_holder=True)


GROUPINGS: Final[Mapping[str, Grouping]] = MappingProxyType(
    {
        each.word: each
        for each in (
            _of_device("cluster", "Cluster", "cluster"),
            _of_device("model", "GPU model", "model"),
            _of_device("capability", "Capability", "capability"),
            _of_device("node", "Node", "cluster", "node"),
            _of_holder("team", "Tenant", "tenant_id"),
            _of_holder("class", "Workload class", "workload_class"),
            _of_holder("workload", "Workload", "cluster", "workload_uid"),
            _of_holder("user", "User", "owner"),
            _of_holder("queue", "Queue", "queue"),
            _of_holder("priority", "Priority", "priority_class"),
        )
    }
)
"""All words, in the order in which help names them."""


def words() -> tuple[str, ...]:
    """Return every word, for a report that takes all of them."""
    return tuple(GROUPINGS)


def grouping(word: str, *, allowed: tuple[str, ...] | None = None) -> Grouping:
    """Return what the word stands for.

    Raises:
        UsageError: there is no such word, or the report does not take it.
    """
    taken = words() if allowed is None else allowed
    if word not in taken:
        raise UsageError(f"cannot group by {word!r}", hint=f"use one of {', '.join(taken)}")
    return GROUPINGS[word]


def asking(*columns: str, words: Iterable[str] = ()) -> tuple[str, ...]:
    """Return what a report asks of the ledger: its columns, and those of groupings, each once."""
    keys = (key for word in words for key in GROUPINGS[word].asks if word in GROUPINGS)
    return tuple(dict.fromkeys((*columns, *keys)))


CAPABILITY_INPUTS: Final = ("state.capability",)
"""The inputs that grouping by capability needs beside the ledger."""


def with_capability(rows: pl.DataFrame, frames: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Return the rows with ``capability``, the tier of their GPU model, null where not known."""
    own = conform("state.capability", frames["state.capability"])
    return capability.with_capability(rows, own)


def with_jobs(rows: pl.DataFrame, frames: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Return rows in their order with job, the name that their workload was last seen with.

    Args:
        rows: with cluster and workload_uid; where no name is known, job is the uid.
        frames: ``workload_current`` among them.
    """
    names = (
        conform("workload_current", frames["workload_current"])
        .select("cluster", "workload_uid", job="name")
        .unique(["cluster", "workload_uid"], keep="last", maintain_order=True)
    )
    return rows.join(
        names, on=["cluster", "workload_uid"], how="left", maintain_order="left"
    ).with_columns(job=pl.coalesce("job", "workload_uid"))
