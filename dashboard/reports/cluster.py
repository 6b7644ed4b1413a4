"""Keeping one cluster of the rows that a report reads."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from dashboard.reports.arrow import frame
from steward.errors import UsageError
from steward.ports import Reader

CLUSTER = "cluster"
DEVICE_KEY = "device_key"


def refuse_unknown(reader: Reader, cluster: str) -> None:
    """Refuse a cluster of which nothing is stored.

    Raises:
        UsageError: there is none of that name; the known ones are named.
    """
    known = frame(reader.query("known_cluster"))[CLUSTER].to_list()
    if cluster not in known:
        raise UsageError(
            f"there is no cluster {cluster!r}", hint=f"the clusters are {', '.join(known)}"
        )


def of_cluster(rows: Mapping[str, pl.DataFrame], cluster: str) -> dict[str, pl.DataFrame]:
    """Return the rows of one cluster, by input.

    Readings name their device by key only: they are kept where ``device_history`` is given and
    knows the device. Rows that belong to no cluster (a price for all of them) are kept.
    """
    kept = {name: _narrowed(each, cluster) for name, each in rows.items()}
    devices = kept.get("device_history")
    if devices is None:
        return kept
    keys = devices.select(DEVICE_KEY).unique()
    return {
        name: each.join(keys, on=DEVICE_KEY, how="semi")
        if DEVICE_KEY in each.columns and CLUSTER not in each.columns
        else each
        for name, each in kept.items()
    }


def _narrowed(rows: pl.DataFrame, cluster: str) -> pl.DataFrame:
    if CLUSTER not in rows.columns:
        return rows
    return rows.filter(pl.col(CLUSTER).is_null() | (pl.col(CLUSTER) == cluster))
